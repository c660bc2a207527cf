"""`ttsr-proxy log`: the interrupt log on the terminal."""

from ttsr_proxy.cli.log.commands import log

__all__ = ["log"]
