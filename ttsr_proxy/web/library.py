"""The rule library as a part of the server: a library that fails never stops an agent's traffic."""

from __future__ import annotations

from dataclasses import dataclass, field

import structlog

from ttsr_proxy.config import Settings
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.judges.question import Judge
from ttsr_proxy.library.compilation.by_model import ModelCompiler
from ttsr_proxy.library.compilation.compiler import Compiler, DeterministicCompiler
from ttsr_proxy.library.compilation.models import plan_model
from ttsr_proxy.library.compilation.prover import Prover
from ttsr_proxy.library.ingestion.addresses import PublicResolver
from ttsr_proxy.library.ingestion.resources import Resources
from ttsr_proxy.library.ingestion.uploads import Uploads
from ttsr_proxy.library.ingestion.urls import Fetcher
from ttsr_proxy.library.retrieval import Searcher
from ttsr_proxy.library.service import LibraryService
from ttsr_proxy.library.sources import SourceReader
from ttsr_proxy.models import JsonModel
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.web.library_api import LibraryApi
from ttsr_proxy.web.library_auth import Authenticator
from ttsr_proxy.web.library_mcp import LibraryMcp

_log = structlog.get_logger()


@dataclass(slots=True)
class Library:
    """The service, its API, and the rules that are enforced."""

    service: LibraryService
    api: LibraryApi
    mcp: LibraryMcp
    prover: Prover
    model: JsonModel | None
    _last: dict[str, tuple[tuple[str, Rule], ...]] = field(default_factory=dict)
    _told: str = ""

    @classmethod
    def build(cls, settings: Settings, judge: Judge) -> Library:
        """The library that the settings describe; the judge stays its owner's.

        Raises KeyFileError for a wrong file of keys.
        """
        root, sources = settings.library_root, settings.library.sources
        uploads = Uploads(root)
        fetcher = Fetcher(PublicResolver()) if sources.allow_urls else None
        prover = Prover()
        model = plan_model(
            settings.library.compiler,
            openai=settings.upstreams.openai,
            anthropic=settings.upstreams.anthropic,
        )
        searcher = Searcher(settings.library.recall, judge, root)
        compiler: Compiler | None = None
        if model is not None:
            compiler = ModelCompiler(model, prover, settings.library.compiler.max_attempts, searcher.recall)
        elif not settings.library.compiler.require_model:
            compiler = DeterministicCompiler(prover, searcher.recall)
        reader = SourceReader(uploads, Resources(root, sources.resources), fetcher)
        service = LibraryService(root, compiler, reader)
        authenticator = Authenticator.load(settings.library.auth)
        takes_credentials = settings.library.compiler.use_request_credentials
        api = LibraryApi(service, searcher, uploads, authenticator, takes_credentials)
        return cls(service, api, LibraryMcp(service, searcher, authenticator), prover, model)

    async def start(self) -> None:
        """Take up the tasks that an earlier process left."""
        try:
            await self.service.start()
        except TtsrError as error:
            _log.error("library_failed", doing="start", error=str(error))

    async def close(self) -> None:
        await self.mcp.close()
        await self.service.close()
        await self.api.searcher.close()
        self.prover.close()
        if self.model is not None:
            await self.model.close()

    async def enforced(self, user: str) -> tuple[tuple[str, Rule], ...]:
        """The user's active rules with triggers; the last that could be read when they now cannot be."""
        try:
            self._last[user] = await self.service.enforced(user)
            self._told = ""
        except TtsrError as error:
            if str(error) != self._told:
                self._told = str(error)
                _log.error("library_failed", doing="enforce", error=self._told)
        return self._last.get(user, ())
