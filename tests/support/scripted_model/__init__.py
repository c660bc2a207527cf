"""One script, played over three APIs to agents with different tools."""

from scripted_model.anthropic import as_turn
from scripted_model.asked import Asked, read
from scripted_model.openai import OpenAiUpstream, openai_upstream
from scripted_model.plan import Model, Plan, Step
from scripted_model.steps import Edit, Read, Say, Shell, Spawn, Think, Write

__all__ = [
    "Asked",
    "Edit",
    "Model",
    "OpenAiUpstream",
    "Plan",
    "Read",
    "Say",
    "Shell",
    "Spawn",
    "Step",
    "Think",
    "Write",
    "as_turn",
    "openai_upstream",
    "read",
]
