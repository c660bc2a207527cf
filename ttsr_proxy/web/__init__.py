"""The aiohttp application: the proxy route and the proxy's own endpoints."""
