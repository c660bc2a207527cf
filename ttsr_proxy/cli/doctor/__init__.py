"""`ttsr-proxy doctor`: what is wrong with an installation, and how to mend it."""

from ttsr_proxy.cli.doctor.command import doctor

__all__ = ["doctor"]
