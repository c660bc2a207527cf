"""Whole exchanges as files: what is kept of them, and in which form."""
