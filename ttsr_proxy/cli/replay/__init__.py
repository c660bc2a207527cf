"""`ttsr-proxy replay`: what the rules would have done in conversations that were recorded."""

from ttsr_proxy.cli.replay.command import replay

__all__ = ["replay"]
