"""The library for agents that ask by themselves: an MCP endpoint with `rule_search` and `read_rule`.

It needs the extra `mcp`; the package is imported with the first request.
"""

from __future__ import annotations

import asyncio
import importlib.util
from contextvars import ContextVar
from typing import TYPE_CHECKING

from aiohttp import web

from ttsr_proxy.library.errors import InvalidArgument, LibraryError
from ttsr_proxy.library.retrieval.searcher import Searcher
from ttsr_proxy.library.service import LibraryService
from ttsr_proxy.library.uris import rules_place
from ttsr_proxy.web.asgi import AsgiApp, answer
from ttsr_proxy.web.library_auth import Authenticator
from ttsr_proxy.web.library_wire import enveloped

if TYPE_CHECKING:
    from mcp.server import MCPServer

PATH = "/mcp"
ENDPOINT = ("POST", PATH, "the library for agents, over the Model Context Protocol")

INSTRUCTIONS = """\
Rules that bind you. Before you act, call rule_search with your goal, your planned action, the concrete
facts and what you do not know. A rule applies when facts support its applies_when and its exception does not
hold. Search again when the facts change. A call that fails does not mean that there are no rules."""

MAX_CONTEXT = 64_000
DEFAULT_THRESHOLD = 0.65

_user: ContextVar[str] = ContextVar("mcp_user")
"""Who asks, for the tool that a request leads to."""


class NotInstalled(LibraryError):
    """The extra is missing."""

    code = "UNIMPLEMENTED"


class LibraryMcp:
    """The endpoint. The MCP server is started with the first request."""

    def __init__(self, service: LibraryService, searcher: Searcher, authenticator: Authenticator) -> None:
        self._service = service
        self._searcher = searcher
        self._authenticator = authenticator
        self._lock = asyncio.Lock()
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._app: AsgiApp | None = None

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", PATH, enveloped(self.handle))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        user = self._authenticator.user(request)
        app = await self._started()
        _user.set(user)
        return await answer(request, app)

    async def close(self) -> None:
        self._stop.set()
        if self._running is not None:
            await self._running

    async def _started(self) -> AsgiApp:
        async with self._lock:
            if self._app is None:
                if importlib.util.find_spec("mcp") is None:
                    raise NotInstalled("MCP needs the extra: pip install 'ttsr-proxy[mcp]'")
                ready: asyncio.Future[AsgiApp] = asyncio.get_running_loop().create_future()
                self._running = asyncio.create_task(self._serve(ready))
                self._app = await ready
            return self._app

    async def _serve(self, ready: asyncio.Future[AsgiApp]) -> None:
        """Keep the server's life in one task, as its task group demands."""
        try:
            app = (await asyncio.to_thread(self._server)).streamable_http_app(
                streamable_http_path=PATH,
                json_response=True,
                stateless_http=True,
                # Hosts and origins are checked for all of the proxy's own endpoints.
                host="",
            )
            async with app.router.lifespan_context(app):
                ready.set_result(app)
                await self._stop.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)

    def _server(self) -> MCPServer:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError

        server: MCPServer = MCPServer("ttsr-proxy", title="Rule library", instructions=INSTRUCTIONS)

        @server.tool(structured_output=False)
        async def rule_search(
            task_context: str, rule_probability_threshold: float = DEFAULT_THRESHOLD
        ) -> str:
            """The rules that apply to a task, complete, with the protocol of their application.

            task_context: the goal, the planned action, concrete facts, and what is not known.
            """
            try:
                return await self._search(task_context, rule_probability_threshold)
            except LibraryError as error:
                raise ToolError(str(error)) from error

        @server.tool(structured_output=False)
        async def read_rule(uri: str) -> str:
            """The file of one rule or scenario, by its viking:// URI as rule_search gives it."""
            try:
                library = self._service.libraries.of(_user.get())
                return await asyncio.to_thread(library.text, rules_place(uri, _user.get()))
            except LibraryError as error:
                raise ToolError(str(error)) from error

        return server

    async def _search(self, context: str, threshold: float) -> str:
        if not context.strip() or len(context) > MAX_CONTEXT:
            raise InvalidArgument(f"task_context must have 1 to {MAX_CONTEXT:,} characters")
        if not 0 <= threshold <= 1:
            raise InvalidArgument("rule_probability_threshold must be from 0 to 1")
        library = await self._service.snapshot(_user.get(), fresh=True)
        result = await self._searcher.search(library, context, threshold)
        warning = f"\n\nWarning: {result['warning']}" if result.get("warning") else ""
        return f"{result['rendered']}{warning}"
