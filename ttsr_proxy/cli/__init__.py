"""The command line."""

from ttsr_proxy.cli.main import main

__all__ = ["main"]
