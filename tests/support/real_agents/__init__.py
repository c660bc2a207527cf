"""Real coding agents, run headless in a project and a home of their own."""

from real_agents.agents import AGENTS, Agent
from real_agents.process import Run
from real_agents.scene import Scene, available, played

__all__ = ["AGENTS", "Agent", "Run", "Scene", "available", "played"]
