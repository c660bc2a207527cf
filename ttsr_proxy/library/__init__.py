"""The rule library: durable rules compiled from constraints in plain words, and their search."""
