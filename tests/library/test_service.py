"""The library as a whole: sources in, rules out, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from rule_library import NOW, TIMEOUT, add, text_of

from ttsr_proxy.library import service as service_module
from ttsr_proxy.library.compilation.blocks import SourceText
from ttsr_proxy.library.compilation.compiler import Compiled, DeterministicCompiler
from ttsr_proxy.library.compilation.prover import Prover
from ttsr_proxy.library.drafting import Draft
from ttsr_proxy.library.errors import Refused
from ttsr_proxy.library.ingestion.addresses import PublicResolver
from ttsr_proxy.library.ingestion.resources import Resources
from ttsr_proxy.library.ingestion.uploads import Uploads
from ttsr_proxy.library.ingestion.urls import Fetcher
from ttsr_proxy.library.model import Scenario, Snapshot
from ttsr_proxy.library.service import LibraryService
from ttsr_proxy.library.sources import SourceReader, SourceRequest
from ttsr_proxy.library.tasks.record import FINISHED, Task
from ttsr_proxy.library.tasks.store import TaskStore


class Compiler:
    """Makes one rule of the instruction, after whatever the test wants to happen meanwhile."""

    def __init__(self, meanwhile: Callable[[], None] | None = None) -> None:
        self.meanwhile = meanwhile
        self.planned = 0

    async def compile(
        self,
        base: Snapshot,
        instruction: str,
        sources: Sequence[SourceText],
        credential: str | None = None,
    ) -> Compiled:
        self.planned += 1
        if self.meanwhile is not None:
            self.meanwhile()
        draft = Draft(base, NOW, "test")
        draft.new("made", text_of(instruction), Scenario("s", "S"))
        return Compiled(draft, "as told", 1)


@pytest.fixture
async def prover() -> AsyncIterator[Prover]:
    prover = Prover()
    yield prover
    prover.close()


def service_at(root: Path, compiler: object, fetcher: Fetcher | None = None) -> LibraryService:
    reader = SourceReader(Uploads(root), Resources(root, None), fetcher)
    return LibraryService(root, compiler, reader)  # type: ignore[arg-type]


async def compiled(service: LibraryService, user: str, instruction: str, *sources: SourceRequest) -> Task:
    task = await service.submit_compile(user, instruction, sources)
    while task.status not in FINISHED:
        await asyncio.sleep(0.01)
        task = await service.tasks.get(user, task.id)
    return task


async def test_two_users_compile_side_by_side_and_never_meet(tmp_path: Path, prover: Prover) -> None:
    service = service_at(tmp_path, DeterministicCompiler(prover))
    texts = [f"Widget {number} must be painted {number * 7} times." for number in range(3)]
    tasks = await asyncio.gather(
        *(compiled(service, user, f"{user}: {text}") for user in ("alice", "bob") for text in texts)
    )
    assert {task.status for task in tasks} == {"completed"}
    for user in ("alice", "bob"):
        snapshot = await service.snapshot(user, fresh=True)
        assert snapshot.rules
        assert all(rule.constraint.startswith(user) for rule in snapshot.rules.values())
    await service.close()


async def test_a_library_that_changes_while_it_is_planned_is_planned_anew(tmp_path: Path) -> None:
    compiler = Compiler()
    service = service_at(tmp_path, compiler)
    library = service.libraries.of("alice")
    changes = iter(("first", "second"))

    def change() -> None:
        if name := next(changes, None):
            add(library, name, TIMEOUT)

    compiler.meanwhile = change
    task = await compiled(service, "alice", "It must be.")
    assert (task.status, compiler.planned) == ("completed", 3)
    assert sorted(library.snapshot(fresh=True).rules) == ["first", "made", "second"]
    await service.close()


async def test_a_library_that_never_rests_fails_the_task(tmp_path: Path) -> None:
    compiler = Compiler()
    service = service_at(tmp_path, compiler)
    compiler.meanwhile = lambda: (add(service.libraries.of("alice"), "more", TIMEOUT), None)[1]
    task = await compiled(service, "alice", "It must be.")
    assert task.status == "failed"
    assert "kept changing" in (task.error or "")
    assert "made" not in service.libraries.of("alice").snapshot(fresh=True).rules
    await service.close()


@pytest.mark.parametrize("written", [False, True])
async def test_after_a_crash_a_task_is_what_its_commit_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, written: bool
) -> None:
    service = service_at(tmp_path, Compiler())
    task = await compiled(service, "alice", "It must be.")
    # As if the process had ended before it could note the end of the task.
    store = TaskStore(tmp_path)
    await store.change(task.id, status="running", stage="writing", result=None)
    await store.close()
    await service.close()
    if not written:
        (service.libraries.of("alice").folder / f".state/results/{task.id}.json").unlink()
    later = service_at(tmp_path, Compiler())
    await later.start()
    settled = await later.tasks.get("alice", task.id)
    assert settled.status == ("completed" if written else "failed")
    assert settled.result == (task.result if written else None)
    await later.close()


async def test_reports_of_commits_are_removed_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = service_at(tmp_path, Compiler())
    await compiled(service, "alice", "It must be.")
    monkeypatch.setattr(service_module, "REPORT_SECONDS", -1.0)
    second = await compiled(service, "alice", "It must be so.")
    reports = service.libraries.of("alice").folder / ".state/results"
    assert [path.stem for path in reports.iterdir()] == [second.id]
    await service.close()


async def test_a_full_library_fails_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttsr_proxy.library.drafting.MAX_RULES", 0)
    service = service_at(tmp_path, Compiler())
    task = await compiled(service, "alice", "It must be.")
    assert task.status == "failed"
    assert task.error == "RULE_COMPILE_FAILED: the library is full: a user may have 0 rules"
    await service.close()


async def test_a_page_is_fetched_compiled_and_kept(tmp_path: Path, prover: Prover) -> None:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="- Every request must time out.\n", content_type="text/markdown")

    app = web.Application()
    app.router.add_get("/standards.md", page)
    async with TestServer(app, host="127.0.0.1") as server:
        assert server.port is not None
        fetcher = Fetcher(PublicResolver(allowed=("127.0.0.1",)), ports=(server.port,))
        service = service_at(tmp_path, DeterministicCompiler(prover), fetcher)
        source = SourceRequest(path=f"http://127.0.0.1:{server.port}/standards.md")
        task = await compiled(service, "alice", "", source)
    assert task.result is not None, task.error
    uri = "viking://user/alice/resources/urls/standards.md"
    assert task.result["source_uris"] == [uri]
    again = await compiled(service, "alice", "", SourceRequest(resource_uri=uri))
    assert again.result is not None
    assert [operation["operation"] for operation in again.result["operations"]] == ["NOOP"]
    await service.close()


async def test_sources_that_are_too_long_fail_the_task(
    tmp_path: Path, prover: Prover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttsr_proxy.library.sources.MAX_CHARACTERS", 10)
    service = service_at(tmp_path, DeterministicCompiler(prover))
    upload = Uploads(tmp_path).add("alice", "x.md", b"- Never print anything.\n")
    task = await compiled(service, "alice", "", SourceRequest(temp_file_id=upload))
    assert "more than 10 characters" in (task.error or "")
    await service.close()


async def test_enforced_rules_are_the_same_object_until_something_changes(tmp_path: Path) -> None:
    service = service_at(tmp_path, Compiler())
    add(service.libraries.of("alice"), "http-timeout", TIMEOUT)
    first = await service.enforced("alice")
    assert [rule.name for _, rule in first] == ["http-timeout"]
    assert await service.enforced("alice") is first
    await compiled(service, "alice", "It must be.")
    assert [rule.name for _, rule in await service.enforced("alice")] == ["http-timeout"]
    await service.close()


async def test_without_a_fetcher_no_url_is_taken(tmp_path: Path) -> None:
    service = service_at(tmp_path, Compiler())
    with pytest.raises(Refused, match="switched off"):
        await service.submit_compile("alice", "", [SourceRequest(path="https://example.com/x")])
    await service.close()
