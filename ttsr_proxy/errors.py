"""The errors of this package that a caller is meant to handle."""

from __future__ import annotations


class TtsrError(Exception):
    """Root of the package's own exceptions. The message is written for the person who runs the proxy."""


class StoreError(TtsrError):
    """A store could not do what was asked. The message names the store and says what to do about it."""
