"""The library's API over a real socket: envelopes, codes, limits, identities."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from planning_model import new_rule, plan, scripted_model
from proxy_under_test import Workspace
from strict_anthropic import listening
from structlog.testing import capture_logs

from ttsr_proxy.config import AuthSettings, CompilerSettings, LibrarySettings
from ttsr_proxy.web.app import create_app
from ttsr_proxy.web.library_auth import Authenticator, KeyFileError
from ttsr_proxy.web.server import make_runner

ROOT = "viking://user/default/memories/rules"
LICENSE = "When a repository declares itself open source, it must provide a complete project license text."


class Client:
    """Calls the API; every answer is (status, document)."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self._session = session
        self.headers: dict[str, str] = {}
        self.answered: aiohttp.ClientResponse

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        headers = {**self.headers, **options.pop("headers", {})}
        async with self._session.request(method, self.url + path, headers=headers, **options) as answer:
            self.answered = answer
            return answer.status, await answer.json()

    async def get(self, path: str, **query: str) -> tuple[int, Any]:
        return await self.call("GET", path, params=query)

    async def compile(self, **body: Any) -> tuple[int, Any]:
        return await self.call("POST", "/api/v1/rules/compile", json=body)

    async def search(self, **body: Any) -> tuple[int, Any]:
        return await self.call("POST", "/api/v1/rules/search", json=body)

    async def task(self, task_id: str) -> dict[str, Any]:
        """The task once it is finished."""
        while True:
            _, answer = await self.get(f"/api/v1/tasks/{task_id}")
            if answer["result"]["status"] in ("completed", "failed", "cancelled"):
                return answer["result"]  # type: ignore[no-any-return]
            await asyncio.sleep(0.02)

    async def compiled(self, **body: Any) -> dict[str, Any]:
        """Compile; the finished task."""
        status, answer = await self.compile(**body)
        assert status == 202, answer
        return await self.task(answer["result"]["task_id"])

    async def upload(self, name: str, data: bytes, **fields: str) -> tuple[int, Any]:
        form = aiohttp.FormData()
        form.add_field("file", data, filename=name, content_type="application/octet-stream")
        for key, value in fields.items():
            form.add_field(key, value)
        return await self.call("POST", "/api/v1/resources/temp_upload", data=form)


Start = Callable[..., Awaitable[Client]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Start a proxy; keyword arguments are fields of `LibrarySettings`."""
    workspace = Workspace(tmp_path)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())

        async def run(**library: Any) -> Client:
            settings = replace(workspace.settings("http://127.0.0.1:9"), library=LibrarySettings(**library))
            runner = make_runner(create_app(settings), drain_seconds=0.1)
            return Client(await stack.enter_async_context(listening(runner)), session)

        yield run


@pytest.fixture
async def client(start: Start) -> Client:
    return await start()


def packed(**files: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.md", text)
    return data.getvalue()


async def test_health_is_no_envelope(client: Client) -> None:
    assert await client.get("/health") == (200, {"status": "ok"})


async def test_compile_answers_with_a_task_that_completes(client: Client) -> None:
    status, answer = await client.compile(instruction=LICENSE)
    assert (status, answer["status"]) == (202, "ok")
    task = answer["result"]
    assert task["task_type"] == "rule_compile"
    assert task["task_id"].startswith("rule_compile_")
    assert task["status"] in ("pending", "running")
    assert task["resource_id"] == ROOT
    assert (task["result"], task["error"]) == (None, None)
    done = await client.task(task["task_id"])
    result = done["result"]
    assert (done["status"], done["error"]) == ("completed", None)
    assert result["rules_root"] == ROOT
    assert (result["source_uris"], result["batch_count"]) == ([], 1)
    (operation,) = result["operations"]
    assert operation["operation"] == "NEW"
    assert operation["uri"] in result["written_uris"]
    assert operation["uri"].rpartition("/")[0] + "/abstract.md" in result["written_uris"]
    index = await client.task(result["write_result"]["task_id"])
    assert (index["task_type"], index["status"]) == ("rule_index", "completed")


async def test_what_was_written_can_be_read_and_listed(client: Client) -> None:
    done = await client.compiled(instruction=LICENSE)
    (operation,) = done["result"]["operations"]
    _, read = await client.get("/api/v1/content/read", uri=operation["uri"], offset="0", limit="-1")
    assert read["result"].startswith("---\natomic_id: ")
    assert read["result"].endswith(LICENSE + "\n")
    _, lines = await client.get("/api/v1/content/read", uri=operation["uri"], offset="1", limit="1")
    assert lines["result"] == f"atomic_id: {operation['atomic_id']}\n"
    _, folders = await client.get("/api/v1/fs/ls", uri="viking://user/memories/rules")
    assert [entry["name"] for entry in folders["result"]] == [operation["scenario_id"]]
    _, files = await client.get("/api/v1/fs/ls", uri=folders["result"][0]["uri"])
    assert [entry["uri"] for entry in files["result"]] == done["result"]["written_uris"]


@pytest.mark.parametrize(
    ("uri", "code", "status"),
    [
        ("viking://user/default/memories/rules/a/b.md", "NOT_FOUND", 404),
        ("viking://user/bob/memories/rules", "NOT_FOUND", 404),
        ("viking://user/default/memories/rules/../../x", "INVALID_URI", 400),
        ("", "INVALID_URI", 400),
    ],
)
async def test_what_cannot_be_read(client: Client, uri: str, code: str, status: int) -> None:
    got, answer = await client.get("/api/v1/content/read", uri=uri)
    assert (got, answer["status"], answer["error"]["code"]) == (status, "error", code)


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({}, ["body", "instruction"]),
        ({"instruction": "  \n"}, ["body", "instruction"]),
        ({"instruction": None, "sources": []}, ["body", "instruction"]),
        ({"instruction": "x" * 64_001}, ["body", "instruction"]),
        ({"instruction": 5}, ["body", "instruction"]),
        ({"instruction": "Never \ud800."}, ["body", "instruction"]),
        ({"instruction": "Do.", "limit": 3}, ["body", "limit"]),
        ({"sources": "x"}, ["body", "sources"]),
        ({"sources": [{"path": "https://example.com"}] * 17}, ["body", "sources"]),
        ({"sources": [{}]}, ["body", "sources", "0"]),
        ({"sources": ["viking://resources/x"]}, ["body", "sources", "0"]),
        (
            {"sources": [{"path": "https://a.example", "resource_uri": "viking://x"}]},
            ["body", "sources", "0"],
        ),
        ({"sources": [{"path": "https://a.example", "to": "x"}]}, ["body", "sources", "0", "to"]),
    ],
)
async def test_a_wrong_body_is_refused_with_its_place(
    client: Client, body: dict[str, Any], loc: list[str]
) -> None:
    status, answer = await client.compile(**body)
    assert status == 422
    assert answer["status"] == "error"
    assert answer["error"]["code"] == "INVALID_ARGUMENT"
    (error,) = answer["error"]["details"]["validation_errors"]
    assert error["loc"] == loc
    assert error["message"] in answer["error"]["message"]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b"{}", "text/plain"),
        (b"\xff", "application/json"),
    ],
)
async def test_what_is_no_json_object_is_refused(client: Client, data: bytes, kind: str) -> None:
    path = "/api/v1/rules/compile"
    status, answer = await client.call("POST", path, data=data, headers={"Content-Type": kind})
    assert (status, answer["error"]["code"]) == (422, "INVALID_ARGUMENT")


async def test_an_instruction_of_exactly_the_limit_is_taken(client: Client) -> None:
    status, _ = await client.compile(instruction="Never print. " + "é" * (64_000 - 13))
    assert status == 202


async def test_a_body_that_is_too_large_is_refused(client: Client) -> None:
    status, answer = await client.compile(instruction="x" * 1_100_000)
    assert (status, answer["error"]["code"]) == (422, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("source", "status", "code"),
    [
        ({"temp_file_id": "upload_00000000000000000000000000000000.md"}, 403, "PERMISSION_DENIED"),
        ({"path": "/etc/passwd"}, 403, "PERMISSION_DENIED"),
        ({"path": "http://127.0.0.1/x"}, 403, "PERMISSION_DENIED"),
        ({"path": "http://2130706433/x"}, 403, "PERMISSION_DENIED"),
        ({"path": "ftp://example.com/x"}, 422, "INVALID_ARGUMENT"),
    ],
)
async def test_a_source_that_cannot_be_right_is_refused_before_there_is_a_task(
    client: Client, source: dict[str, str], status: int, code: str
) -> None:
    got, answer = await client.compile(sources=[source])
    assert (got, answer["error"]["code"]) == (status, code)
    assert await client.get("/api/v1/tasks") == (200, {"status": "ok", "result": []})


async def test_urls_can_be_switched_off(start: Start) -> None:
    from ttsr_proxy.config import SourceSettings

    client = await start(sources=SourceSettings(allow_urls=False))
    status, answer = await client.compile(sources=[{"path": "https://example.com/x.md"}])
    assert (status, answer["error"]["code"]) == (403, "PERMISSION_DENIED")


async def test_an_unknown_resource_fails_the_task_with_its_reason(client: Client) -> None:
    done = await client.compiled(sources=[{"resource_uri": "viking://resources/none.md"}])
    assert done["status"] == "failed"
    assert done["error"].startswith("RULE_COMPILE_FAILED: there is no resource")
    assert done["meta"]["error_code"] == "RULE_COMPILE_FAILED"


async def test_an_uploaded_file_is_compiled_and_is_a_resource_from_then_on(client: Client) -> None:
    status, answer = await client.upload("standards.md", b"# HTTP\n\n- Every request must time out.\n")
    assert status == 200
    upload = answer["result"]["temp_file_id"]
    done = await client.compiled(sources=[{"temp_file_id": upload, "source_name": "standards.md"}])
    assert [op["operation"] for op in done["result"]["operations"]] == ["NEW"]
    (uri,) = done["result"]["source_uris"]
    assert uri == "viking://user/default/resources/uploads/standards.md"
    again = await client.compiled(sources=[{"resource_uri": uri}])
    assert [op["operation"] for op in again["result"]["operations"]] == ["NOOP"]
    assert again["result"]["written_uris"] == []


async def test_an_uploaded_archive_is_read_file_by_file(client: Client) -> None:
    data = packed(a="Never print.", b="Never log secrets.", c="Never skip tests.")
    _, answer = await client.upload("temp_upload_1.zip", data, upload_mode="local")
    upload = answer["result"]["temp_file_id"]
    # The reference's client names an archive after its directory, without an extension.
    source = {"temp_file_id": upload, "source_name": "docs", "exclude": "c.md"}
    done = await client.compiled(sources=[source])
    assert [op["operation"] for op in done["result"]["operations"]] == ["NEW", "NEW"]
    assert done["result"]["source_uris"] == ["viking://user/default/resources/uploads/docs"]


@pytest.mark.parametrize(
    ("data", "part"), [(b"PK\x03\x04broken", "archive"), (b"a\0b", "neither text nor"), (packed(), "no text")]
)
async def test_an_upload_that_holds_no_text_fails_the_task(client: Client, data: bytes, part: str) -> None:
    _, answer = await client.upload("x.md", data)
    done = await client.compiled(sources=[{"temp_file_id": answer["result"]["temp_file_id"]}])
    assert done["status"] == "failed"
    assert part in done["error"]


async def test_a_broken_upload_is_refused(client: Client) -> None:
    path = "/api/v1/resources/temp_upload"
    status, answer = await client.call("POST", path, json={})
    assert (status, answer["error"]["code"]) == (400, "INVALID_ARGUMENT")
    form = aiohttp.FormData({"upload_mode": "local"}, default_to_multipart=True)
    status, answer = await client.call("POST", path, data=form)
    assert (status, answer["error"]["code"]) == (400, "INVALID_ARGUMENT")
    status, answer = await client.upload("x.md", b"x", upload_mode="elsewhere")
    assert (status, answer["error"]["code"]) == (400, "INVALID_ARGUMENT")


async def test_an_upload_beyond_the_limit_is_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttsr_proxy.web.library_api.MAX_UPLOAD", 10)
    status, answer = await client.upload("x.md", b"x" * 11)
    assert (status, answer["error"]["code"]) == (400, "INVALID_ARGUMENT")


async def test_tasks_can_be_listed_and_filtered(client: Client) -> None:
    await client.compiled(instruction="Never print.")
    await client.compiled(instruction="Never skip tests.")
    _, everything = await client.get("/api/v1/tasks")
    assert [task["task_type"] for task in everything["result"]].count("rule_compile") == 2
    _, some = await client.get("/api/v1/tasks", task_type="rule_compile", status="completed", limit="1")
    assert len(some["result"]) == 1
    _, none = await client.get("/api/v1/tasks", resource_id="elsewhere")
    assert none["result"] == []
    for limit in ("0", "201", "x"):
        status, answer = await client.get("/api/v1/tasks", limit=limit)
        assert (status, answer["error"]["code"]) == (400, "INVALID_ARGUMENT")


async def test_cancelling_a_finished_task_is_refused(client: Client) -> None:
    done = await client.compiled(instruction="Never print.")
    status, answer = await client.call("POST", f"/api/v1/tasks/{done['task_id']}/cancel")
    assert (status, answer["error"]["code"]) == (412, "FAILED_PRECONDITION")


async def test_an_unknown_task_is_not_found(client: Client) -> None:
    for method, path in (("GET", "/api/v1/tasks/none"), ("POST", "/api/v1/tasks/none/cancel")):
        status, answer = await client.call(method, path)
        assert (status, answer["error"]["code"]) == (404, "NOT_FOUND")


async def test_a_required_model_that_is_not_configured_fails_the_task(start: Start) -> None:
    client = await start(compiler=CompilerSettings(require_model=True))
    done = await client.compiled(instruction="Never print.")
    assert done["status"] == "failed"
    assert done["error"].startswith("RULE_COMPILE_FAILED: a compiler model is required")


async def test_a_configured_model_compiles_and_its_failure_is_the_tasks(start: Start) -> None:
    async with scripted_model() as server:
        client = await start(compiler=CompilerSettings(kind="openai", model="m-1", base_url=server.url))
        server.script(plan(new_rule("Never print.")), "nonsense")
        done = await client.compiled(instruction="Never print.")
        assert done["meta"] == {"compiler": "llm", "model": "m-1", "attempts": 1}
        assert [op["operation"] for op in done["result"]["operations"]] == ["NEW"]
        done = await client.compiled(instruction="Never log.")
    assert done["status"] == "failed"
    assert done["error"].startswith("RULE_COMPILE_FAILED: no usable plan after 3 attempts")
    _, folders = await client.get("/api/v1/fs/ls", uri=ROOT)
    assert len(folders["result"]) == 1


async def test_request_ids_are_echoed_or_made(client: Client) -> None:
    await client.call("GET", "/api/v1/tasks", headers={"X-Request-ID": "my:id/1"})
    assert client.answered.headers["X-Request-ID"] == "my:id/1"
    await client.call("GET", "/api/v1/tasks", headers={"X-Request-ID": "not <fine>"})
    assert len(client.answered.headers["X-Request-ID"]) == 36


async def test_a_wrong_method_is_refused_and_other_paths_go_upstream(client: Client) -> None:
    status, answer = await client.call("DELETE", "/api/v1/rules/compile")
    assert (status, answer["error"]["code"]) == (405, "METHOD_NOT_ALLOWED")
    status, _ = await client.call("POST", "/api/v1/rules/other", json={})
    assert status == 502


async def test_a_file_that_is_no_rule_is_an_error_with_its_uri(client: Client, tmp_path: Path) -> None:
    await client.compiled(instruction="Never print.")
    folder = tmp_path / "state/library/users/default/memories/rules/broken"
    folder.mkdir()
    (folder / "x.md").write_bytes(b"\xff")
    status, answer = await client.get("/api/v1/fs/ls", uri=ROOT)
    assert (status, answer["error"]["code"]) == (500, "PROCESSING_ERROR")
    assert answer["error"]["details"] == {"uri": f"{ROOT}/broken/x.md"}


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


async def with_keys(start: Start, tmp_path: Path, mode: Any = "api_key") -> Client:
    keys = tmp_path / "keys"
    keys.write_text(f"# users\nalice {digest('a-key')}\n\nbob {digest('b-key')}\n")
    return await start(auth=AuthSettings(mode=mode, keys_file=keys, root_key_hash=digest("root-key")))


async def test_keys_name_users_whose_libraries_never_mix(start: Start, tmp_path: Path) -> None:
    client = await with_keys(start, tmp_path)
    client.headers = {"X-API-Key": "a-key", "X-OpenViking-User": "bob"}
    done = await client.compiled(instruction="Alice must do this.")
    assert done["resource_id"] == "viking://user/alice/memories/rules"
    _, answer = await client.upload("x.md", b"Never.")
    upload = answer["result"]["temp_file_id"]
    client.headers = {"Authorization": "Bearer b-key"}
    assert (await client.get(f"/api/v1/tasks/{done['task_id']}"))[0] == 404
    assert (await client.get("/api/v1/tasks"))[1]["result"] == []
    assert (await client.get("/api/v1/content/read", uri=done["result"]["written_uris"][0]))[0] == 404
    assert (await client.get("/api/v1/fs/ls", uri="viking://user/memories/rules"))[1]["result"] == []
    assert (await client.compile(sources=[{"temp_file_id": upload}]))[0] == 403


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "UNAUTHENTICATED"),
        ({"X-API-Key": "wrong"}, 401, "UNAUTHENTICATED"),
        ({"X-API-Key": "root-key"}, 403, "PERMISSION_DENIED"),
    ],
)
async def test_without_a_users_key_there_is_no_access(
    start: Start, tmp_path: Path, headers: dict[str, str], status: int, code: str
) -> None:
    client = await with_keys(start, tmp_path)
    client.headers = headers
    got, answer = await client.get("/api/v1/tasks")
    assert (got, answer["error"]["code"]) == (status, code)
    assert (await client.get("/health"))[0] == 200


async def test_a_trusted_gateway_names_the_user(start: Start, tmp_path: Path) -> None:
    client = await with_keys(start, tmp_path, "trusted")
    assert (await client.get("/api/v1/tasks"))[0] == 401
    client.headers = {"X-OpenViking-Account": "team", "X-OpenViking-User": "carol"}
    done = await client.compiled(instruction="Never print.")
    assert done["resource_id"] == "viking://user/carol/memories/rules"
    client.headers["X-OpenViking-User"] = "../carol"
    assert (await client.get("/api/v1/tasks"))[0] == 401


async def test_without_keys_only_this_machine_under_its_own_name_is_answered(client: Client) -> None:
    assert (await client.call("GET", "/api/v1/tasks", headers={"Host": "rebound.example"}))[0] == 421
    assert (await client.call("GET", "/api/v1/tasks", headers={"Host": "localhost:1"}))[0] == 200


@pytest.mark.parametrize("content", ["alice\n", "al/ice " + "0" * 64, "alice " + "0" * 63])
def test_a_wrong_file_of_keys_is_told_with_its_line(tmp_path: Path, content: str) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"# users\n{content}\n")
    with pytest.raises(KeyFileError, match="line 2"):
        Authenticator.load(AuthSettings(mode="api_key", keys_file=keys))


def test_keys_are_demanded_where_they_are_configured(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="names no keys"):
        Authenticator.load(AuthSettings(mode="api_key"))
    with pytest.raises(KeyFileError, match="cannot be read"):
        Authenticator.load(AuthSettings(mode="api_key", keys_file=tmp_path / "none"))


async def test_a_compiled_rule_is_found_whole(client: Client) -> None:
    done = await client.compiled(instruction=LICENSE)
    (operation,) = done["result"]["operations"]
    status, answer = await client.search(task_context="README says open source; next, inspect LICENSE text.")
    assert (status, answer["status"]) == (200, "ok")
    result = answer["result"]
    (rule,) = result["rules"]
    assert (rule["atomic_id"], rule["uri"]) == (operation["atomic_id"], operation["uri"])
    assert rule["content"].endswith(LICENSE + "\n")
    assert rule["content"].rstrip() in result["rendered"]
    assert (result["judge"], rule["probability"]) == ("pass", 1.0)
    await client.compiled(instruction=f"pause {operation['atomic_id']}")
    _, answer = await client.search(task_context="README says open source")
    assert (answer["result"]["rules"], answer["result"]["scenario_selection"]) == ([], None)
    assert answer["result"]["delivery"] == {"complete": True, "rule_count": 0, "rendered_chars": 730}


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({}, "task_context"),
        ({"task_context": " \n"}, "task_context"),
        ({"task_context": "x" * 64_001}, "task_context"),
        ({"task_context": 5}, "task_context"),
        ({"task_context": "x", "rule_probability_threshold": True}, "rule_probability_threshold"),
        ({"task_context": "x", "rule_probability_threshold": 1.01}, "rule_probability_threshold"),
        ({"task_context": "x", "rule_probability_threshold": -0.01}, "rule_probability_threshold"),
        ({"task_context": "x", "rule_probability_threshold": "0.5"}, "rule_probability_threshold"),
        ({"task_context": "x", "limit": 3}, "limit"),
    ],
)
async def test_a_wrong_search_is_refused_with_its_field(
    client: Client, body: dict[str, Any], name: str
) -> None:
    status, answer = await client.search(**body)
    assert (status, answer["error"]["code"]) == (422, "INVALID_ARGUMENT")
    (error,) = answer["error"]["details"]["validation_errors"]
    assert error["loc"] == ["body", name]


async def test_a_file_that_cannot_be_read_fails_the_search(client: Client, tmp_path: Path) -> None:
    done = await client.compiled(instruction=LICENSE)
    (operation,) = done["result"]["operations"]
    (file,) = await asyncio.to_thread(lambda: list(tmp_path.rglob(f"{operation['atomic_id']}.md")))
    file.write_bytes(b"---\natomic_id: [\xff\n---\n")
    status, answer = await client.search(task_context="anything")
    assert (status, answer["error"]["code"]) == (500, "PROCESSING_ERROR")
    assert answer["error"]["details"]["uri"] == operation["uri"]


CREDENTIAL = "Bearer sk-caller-0123456789abcdef0123456789abcdef"


def model_settings(url: str, **more: Any) -> CompilerSettings:
    return CompilerSettings(
        kind="openai", model="m-1", base_url=url, api_key_env="PLAN_KEY", use_request_credentials=True, **more
    )


@pytest.mark.parametrize(
    ("mode", "headers", "sent"),
    [
        ("dev", {"Authorization": CREDENTIAL}, CREDENTIAL),
        ("dev", {"X-API-Key": "anything"}, "Bearer configured"),
        ("dev", {}, "Bearer configured"),
        ("api_key", {"X-API-Key": "k-alice", "Authorization": CREDENTIAL}, CREDENTIAL),
        ("api_key", {"X-API-Key": "k-alice"}, "Bearer configured"),
        ("api_key", {"Authorization": "Bearer k-alice"}, "Bearer configured"),
    ],
)
async def test_the_model_is_asked_with_the_callers_credential_and_never_with_a_library_key(
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: Any,
    headers: dict[str, str],
    sent: str,
) -> None:
    monkeypatch.setenv("PLAN_KEY", "configured")
    keys = tmp_path / "keys"
    keys.write_text(f"alice {hashlib.sha256(b'k-alice').hexdigest()}\n")
    async with scripted_model() as model:
        model.script(plan(new_rule(LICENSE)))
        client = await start(compiler=model_settings(model.url), auth=AuthSettings(mode, keys))
        client.headers = headers
        assert (await client.compiled(instruction=LICENSE))["status"] == "completed"
    (asked,) = model.headers
    assert asked["authorization"] == sent


async def test_without_the_setting_the_callers_credential_stays_here(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAN_KEY", "configured")
    async with scripted_model() as model:
        model.script(plan(new_rule(LICENSE)))
        compiler = replace(model_settings(model.url), use_request_credentials=False)
        client = await start(compiler=compiler)
        client.headers = {"Authorization": CREDENTIAL}
        await client.compiled(instruction=LICENSE)
    assert model.headers[0]["authorization"] == "Bearer configured"


def files_with(folder: Path, text: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


@pytest.mark.parametrize("answer", ["a plan", "an error that repeats it"])
async def test_the_callers_credential_is_in_no_file_task_or_log_line(
    start: Start, tmp_path: Path, answer: str
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def answered(body: dict[str, Any]) -> Any:
        reached.set()
        await go_on.wait()
        if answer == "a plan":
            return plan(new_rule(LICENSE))
        return web.json_response({"error": f"bad key {CREDENTIAL}"}, status=401)

    secret = CREDENTIAL.removeprefix("Bearer ").encode()
    with capture_logs() as logs:
        async with scripted_model() as model:
            model.script(answered)
            client = await start(compiler=model_settings(model.url))
            client.headers = {"Authorization": CREDENTIAL}
            _, accepted = await client.compile(instruction=LICENSE)
            await asyncio.wait_for(reached.wait(), 5)
            assert files_with(tmp_path, b"rule_compile")
            assert files_with(tmp_path, secret) == []
            go_on.set()
            task = await client.task(accepted["result"]["task_id"])
    assert task["status"] == ("completed" if answer == "a plan" else "failed")
    assert secret.decode() not in str(task) + str(logs)
    assert files_with(tmp_path, secret) == []


async def test_an_archived_rule_cannot_be_restored(client: Client) -> None:
    (made,) = (await client.compiled(instruction=LICENSE))["result"]["operations"]
    name = made["atomic_id"]
    for line, expected in ((f"archive {name}", "ARCHIVE"), (f"restore {name}", "UNCERTAIN")):
        (operation,) = (await client.compiled(instruction=line))["result"]["operations"]
        assert operation["operation"] == expected
    assert (await client.search(task_context="A licence."))[1]["result"]["rules"] == []


async def test_a_rule_against_something_is_not_named_after_it(client: Client) -> None:
    (made,) = (await client.compiled(instruction="Never log passwords."))["result"]["operations"]
    assert made["atomic_id"] == "never-log-passwords"
