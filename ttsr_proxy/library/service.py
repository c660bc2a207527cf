"""The rule library as the server and the command line use it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ttsr_proxy.jsontext import JsonObject, decode_object, encode
from ttsr_proxy.library.compilation.blocks import MAX_BATCHES, SourceText
from ttsr_proxy.library.compilation.compiler import Compiled, Compiler
from ttsr_proxy.library.enforcement import enforced_rules
from ttsr_proxy.library.errors import CompileFailed, LibraryBusy, LibraryError
from ttsr_proxy.library.model import Snapshot
from ttsr_proxy.library.sources import SourceReader, SourceRequest, check_size
from ttsr_proxy.library.storage import durable
from ttsr_proxy.library.storage.libraries import Libraries
from ttsr_proxy.library.storage.user_library import CHECK_SECONDS, STATE, Changes, LibraryChanged
from ttsr_proxy.library.tasks.record import Task, TaskStatus
from ttsr_proxy.library.tasks.runner import Done, Progress, TaskRunner, new_task
from ttsr_proxy.library.tasks.store import TaskStore
from ttsr_proxy.library.uris import rules_root
from ttsr_proxy.rules.model import Rule

COMPILE = "rule_compile"
INDEX = "rule_index"

REPORT_SECONDS = 86_400.0
"""How long a commit's report is kept for a task that a crash may have cut short."""

REPLANS = 3
"""How often a compilation is planned anew because the library changed meanwhile."""


class LibraryService:
    """Libraries, their compilation, and the rules that they enforce."""

    def __init__(self, root: Path, compiler: Compiler | None, reader: SourceReader) -> None:
        """`compiler` is None where a model is required and none is configured."""
        self.libraries = Libraries(root)
        self._compiler = compiler
        self._reader = reader
        self._store = TaskStore(root)
        self.tasks = TaskRunner(self._store, self._compile, self._achieved)
        self._enforced: dict[str, _Enforced] = {}

    async def start(self) -> None:
        """Take up the tasks that an earlier process left. Raises StoreError."""
        if self._store.exists:
            await self.tasks.start()

    async def close(self) -> None:
        await self.tasks.close()

    @property
    def ended(self) -> Mapping[TaskStatus, int]:
        """Tasks that this process brought to an end, by status."""
        return self._store.ended

    async def submit_compile(
        self,
        user: str,
        instruction: str,
        sources: Sequence[SourceRequest],
        credential: str | None = None,
    ) -> Task:
        """Queue a compilation. Raises LibraryError for sources that cannot be right.

        `credential` is what the model is asked with, as an `Authorization` header has it; None for the
        configured key. It stays in memory for this task.
        """
        for source in sources:
            await self._reader.check(user, source)
        payload = {"instruction": instruction, "sources": [source.to_json() for source in sources]}
        return await self.tasks.submit(user, COMPILE, rules_root(user), payload, credential)

    async def task_page(
        self, user: str, *, task_type: str | None, status: str | None, resource_id: str | None, limit: int
    ) -> list[Task]:
        return await self._store.page(
            user, task_type=task_type, status=status, resource_id=resource_id, limit=limit
        )

    async def snapshot(self, user: str, *, fresh: bool = False) -> Snapshot:
        """The user's library, read off the event loop. Raises LibraryError."""
        library = await asyncio.to_thread(self.libraries.of, user)
        return await asyncio.to_thread(library.snapshot, fresh=fresh)

    async def enforced(self, user: str) -> tuple[tuple[str, Rule], ...]:
        """The user's active rules with triggers, for rule discovery.

        The same object as long as nothing has changed. The disk is looked at once a second. Raises
        LibraryError.
        """
        known = self._enforced.get(user)
        now = time.monotonic()
        if known is not None and now - known.checked < CHECK_SECONDS:
            return known.rules
        snapshot = await self.snapshot(user)
        if known is None or known.snapshot is not snapshot:
            rules = await asyncio.to_thread(enforced_rules, snapshot)
        else:
            rules = known.rules
        self._enforced[user] = _Enforced(now, snapshot, rules)
        return rules

    async def _compile(self, task: Task, progress: Progress) -> Done:
        payload = task.payload or {}
        if self._compiler is None:
            raise CompileFailed("a compiler model is required (library.compiler) and none is configured")
        try:
            return await self._compile_with(self._compiler, task, progress, payload)
        except CompileFailed:
            raise
        except LibraryError as error:
            raise CompileFailed(str(error)) from error

    async def _compile_with(
        self, compiler: Compiler, task: Task, progress: Progress, payload: JsonObject
    ) -> Done:
        await progress.stage("fetching")
        uris: list[str] = []
        texts: list[SourceText] = []
        for entry in payload["sources"]:
            uri, found = await self._reader.read(task.user, SourceRequest(**entry))
            uris.append(uri)
            texts += found
            check_size(texts)
        for _ in range(REPLANS):
            await progress.stage("planning")
            base = await self.snapshot(task.user, fresh=True)
            compiled = await _plan(compiler, base, payload["instruction"], texts, progress.secret)
            await progress.stage("writing")
            try:
                return await asyncio.shield(self._write(task, base, compiled, uris))
            except LibraryChanged:
                continue
        raise LibraryBusy("the library kept changing while this was planned; compile again")

    async def _write(self, task: Task, base: Snapshot, compiled: Compiled, uris: list[str]) -> Done:
        draft = compiled.draft
        changes = draft.changes()
        generation = base.generation + 1 if changes else base.generation
        index = new_task(task.user, INDEX, rules_root(task.user))
        result: JsonObject = {
            "rules_root": base.root,
            "source_uris": uris,
            "plan_reason": compiled.plan_reason,
            "batch_count": compiled.batch_count,
            "operations": draft.operations,
            "written_uris": draft.written_uris if changes else [],
            "write_result": {
                "task_id": index.id,
                **draft.counts(),
                "generation": generation,
                "vector_status": "complete",
            },
        }
        done = Done(result, compiled.meta)
        if changes:
            # The result is part of the commit: after a crash it tells whether the commit happened.
            report = encode({"result": result, "meta": compiled.meta}).decode()
            library = self.libraries.of(task.user)
            files = {**changes.files, _report_name(task.id): report, **_old_reports(library.folder)}
            await asyncio.to_thread(library.commit, Changes(files), base)
            self._enforced.pop(task.user, None)
        # Vectors are made when a search first needs them, so that the index is never behind.
        await self._store.add(replace(index, status="completed", stage="completed", result={}))
        return done

    async def _achieved(self, task: Task) -> Done | None:
        library = self.libraries.of(task.user)
        # An unreadable rule says nothing about this task; recovery has been done all the same.
        with contextlib.suppress(LibraryError):
            await asyncio.to_thread(library.snapshot, fresh=True)
        report = library.folder / _report_name(task.id)
        try:
            document = decode_object(await asyncio.to_thread(durable.read_file, report))
        except OSError:
            return None
        return None if document is None else Done(document["result"], document["meta"])


async def _plan(
    compiler: Compiler,
    base: Snapshot,
    instruction: str,
    texts: Sequence[SourceText],
    credential: str | None,
) -> Compiled:
    compiled = await compiler.compile(base, instruction, texts, credential)
    if compiled.batch_count > MAX_BATCHES:
        raise CompileFailed(f"the sources make more than {MAX_BATCHES} batches; compile them in parts")
    return compiled


@dataclass(frozen=True, slots=True)
class _Enforced:
    checked: float
    snapshot: Snapshot
    rules: tuple[tuple[str, Rule], ...]


def _old_reports(folder: Path) -> dict[str, str | None]:
    """Reports of tasks that were settled long ago, to be removed."""
    reports = (folder / STATE / "results").glob("*.json")
    limit = time.time() - REPORT_SECONDS
    return {_report_name(path.stem): None for path in reports if path.stat().st_mtime < limit}


def _report_name(task_id: str) -> str:
    return f"{STATE}/results/{task_id}.json"
