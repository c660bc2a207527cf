"""What is installed and configured besides the proxy: extras, the worker for ast-grep, models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from importlib.util import find_spec

from ttsr_proxy.cli.doctor.finding import Finding, fail, ok, warn
from ttsr_proxy.config import LibrarySettings, Settings
from ttsr_proxy.judges import why_no_judge
from ttsr_proxy.triggers.ast import AstCheck
from ttsr_proxy.web.ast_worker import AstWorker

_FOR_DEVELOPERS = frozenset({"dev", "fuzz", "audit"})
_REQUIREMENT = re.compile(r"""(?P<name>[A-Za-z0-9._-]+).*;.*\bextra == ['"](?P<extra>[^'"]+)['"]""")


def of_extras() -> Iterator[Finding]:
    """Each optional part of the package, installed or not; neither is wrong."""
    missing: dict[str, list[str]] = {}
    for requirement in metadata.requires("ttsr-proxy") or ():
        if (found := _REQUIREMENT.match(requirement)) and found["extra"] not in _FOR_DEVELOPERS:
            names = missing.setdefault(found["extra"], [])
            if not _is_installed(found["name"]):
                names.append(found["name"])
    for extra, names in sorted(missing.items()):
        if names:
            yield ok(f"extra {extra} is not installed (pip install 'ttsr-proxy[{extra}]')")
        else:
            yield ok(f"extra {extra} is installed")


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


async def of_ast_worker() -> Finding:
    """Whether the process that ast-grep runs in can be started, and finds what it should."""
    worker = AstWorker()
    try:
        (hits,) = await worker.run([AstCheck("python", "eval(x)\n", ("eval($CODE)",))])
    finally:
        worker.close()
    if hits:
        return ok("the worker for astCondition starts and matches")
    return fail(
        "the worker for astCondition does not start: rules with ast-grep patterns cannot match",
        "check the process limit (`ulimit -u`) and memory, and `pip install --force-reinstall ast-grep-py`",
    )


def of_models(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """The models that the library may ask."""
    library = settings.library
    yield from _of_compiler(library, environ)
    yield from _of_recall(library, environ)
    judge = library.judge
    if judge.provider == "pass":
        yield ok("no judge: a search of the library takes what is near, and judged rules are off")
    elif judge.provider == "jev" and find_spec("typesafe_sdk") is None:
        yield fail("library.judge.provider is jev, but it is not installed", "pip install 'ttsr-proxy[jev]'")
    elif (reason := why_no_judge(judge, environ)) is not None:
        yield fail(f"the judge ({judge.provider}) cannot be asked: {reason}", "correct library.judge")
    else:
        yield ok(f"the judge is configured: {judge.provider}")


def _of_compiler(library: LibrarySettings, environ: Mapping[str, str]) -> Iterator[Finding]:
    compiler = library.compiler
    if compiler.kind == "none":
        if compiler.require_model:
            yield fail(
                "library.compiler.requireModel is true, but library.compiler.kind is none",
                "name a model, or set requireModel to false",
            )
        else:
            yield ok("no compiler model: rules are compiled without one")
        return
    if not compiler.model:
        yield fail("library.compiler.model names no model", "set it to the name of one")
    yield from _of_key("compiler model", "library.compiler", compiler.api_key_env, environ)


def _of_recall(library: LibrarySettings, environ: Mapping[str, str]) -> Iterator[Finding]:
    recall = library.recall
    if recall.backend == "minilm" and (find_spec("onnxruntime") is None or find_spec("tokenizers") is None):
        yield fail(
            "library.recall.backend is minilm, but it is not installed", "pip install 'ttsr-proxy[semantic]'"
        )
    for key, path in (("modelPath", recall.model_path), ("tokenizerPath", recall.tokenizer_path)):
        if path is not None and not path.is_file():
            yield fail(f"library.recall.{key}: there is no file {path}", "correct the path")
    if recall.backend == "openai":
        yield from _of_key("embedding model", "library.recall", recall.api_key_env or "", environ)


def _of_key(what: str, section: str, variable: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the variable that holds the key is set; its value is nobody's business."""
    if not variable:
        yield warn(
            f"the {what} is asked without a key ({section}.apiKeyEnv)", "name the variable that holds the key"
        )
    elif not environ.get(variable):
        yield fail(f"the {what}'s key is not in the environment: {variable} is not set", f"set {variable}")
    else:
        yield ok(f"the {what} is configured, and {variable} is set")
