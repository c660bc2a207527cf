"""Which model plans compilations."""

from __future__ import annotations

from ttsr_proxy.config import CompilerSettings
from ttsr_proxy.models import AnthropicModel, JsonModel, ModelEndpoint, OpenAiModel


def plan_model(settings: CompilerSettings, *, openai: str, anthropic: str) -> JsonModel | None:
    """The configured model; None when there is none. The URLs are the upstreams."""
    match settings.kind:
        case "openai":
            return OpenAiModel(_endpoint(settings, openai))
        case "anthropic":
            return AnthropicModel(_endpoint(settings, anthropic))
        case "none":
            return None


def _endpoint(settings: CompilerSettings, upstream: str) -> ModelEndpoint:
    return ModelEndpoint(
        base_url=settings.base_url or upstream,
        model=settings.model,
        api_key_env=settings.api_key_env,
        key_setting="library.compiler.apiKeyEnv",
        timeout=settings.timeout,
        max_output_tokens=settings.max_output_tokens,
        schema_name="rule_plan",
    )
