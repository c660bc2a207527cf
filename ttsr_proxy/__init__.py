"""Keeps coding agents to your rules while the model is still streaming."""
