"""Judges: who answers yes/no questions, for the library's search and for judged rules."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping

from ttsr_proxy.config import JudgeSettings
from ttsr_proxy.judges.jev import JevJudge
from ttsr_proxy.judges.question import Judge, PassJudge

_JEV_URL = "https://api.typesafe.ai"
_JEV_MODEL = "jev-latest"
_JEV_KEY = "TYPESAFE_API_KEY"
_OPENAI_URL = "https://api.openai.com"
_OPENAI_KEY = "OPENAI_API_KEY"

_MAX_ANSWER_TOKENS = 16_384


def why_no_judge(settings: JudgeSettings, environ: Mapping[str, str] = os.environ) -> str | None:
    """Why nobody can be asked with these settings; None if somebody can. Asks nothing of the network."""
    match settings.provider:
        case "pass":
            return "no judge is configured (library.judge.provider)"
        case "jev" if importlib.util.find_spec("typesafe_sdk") is None:
            return "the extra is not installed: pip install 'ttsr-proxy[jev]'"
        case "openai" if not settings.model:
            return "library.judge.model is not given"
    name = _key_name(settings)
    if name is not None and not environ.get(name):
        return f"the environment variable {name} is not set"
    return None


def make_judge(settings: JudgeSettings) -> Judge:
    """The configured judge; where there is none that can be used, one that judges nothing and says why."""
    if (reason := why_no_judge(settings)) is not None:
        return PassJudge(reason)
    if settings.provider == "jev":
        key = os.environ[_key_name(settings) or ""]
        return JevJudge(settings.base_url or _JEV_URL, settings.model or _JEV_MODEL, key, settings.timeout)
    # Imported here: a command that lists rules should not wait for an HTTP client.
    from ttsr_proxy.judges.by_model import ModelJudge
    from ttsr_proxy.models import ModelEndpoint, OpenAiModel

    endpoint = ModelEndpoint(
        base_url=settings.base_url or _OPENAI_URL,
        model=settings.model or "",
        api_key_env=_key_name(settings) or "",
        key_setting="library.judge.apiKeyEnv",
        timeout=settings.timeout,
        max_output_tokens=_MAX_ANSWER_TOKENS,
        schema_name="answers",
    )
    return ModelJudge(OpenAiModel(endpoint))


def _key_name(settings: JudgeSettings) -> str | None:
    """The variable that holds the key; None for a model on a server of one's own, which needs none."""
    if settings.api_key_env:
        return settings.api_key_env
    if settings.provider == "jev":
        return _JEV_KEY
    return None if settings.base_url else _OPENAI_KEY
