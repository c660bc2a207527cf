"""The interrupt log as web pages, below `/ttsr/`."""
