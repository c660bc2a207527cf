"""`ttsr-proxy rules draft`: a rule file from a complaint or from what happened."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ttsr_proxy.cli.options import place_options, settings_for, state_option
from ttsr_proxy.cli.terminal import printable
from ttsr_proxy.config import Settings, State
from ttsr_proxy.errors import TtsrError
from ttsr_proxy.interrupts.place import interrupts_at, is_there
from ttsr_proxy.interrupts.record import InterruptRecord


@click.command("draft")
@click.argument("complaint", required=False, default="")
@click.option("--from-log", "record_id", metavar="ID", help="The entry of the interrupt log to start from.")
@click.option(
    "--save",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the file into this directory, after asking.",
)
@click.option("--yes", is_flag=True, help="Save without asking.")
@place_options
@state_option
def draft_rule_file(
    complaint: str,
    record_id: str | None,
    directory: Path | None,
    yes: bool,
    project: Path,
    config: Path | None,
    state: str | None,
) -> None:
    """Draft a rule file from COMPLAINT in plain words, from a log entry, or from both, and try it.

    A configured compiler model (library.compiler) writes it; without one the pattern is literal.
    """
    if not complaint.strip() and record_id is None:
        raise click.UsageError("give a COMPLAINT or --from-log ID")
    settings = settings_for(project, config, state=state)
    name, text, found, remarks = asyncio.run(_draft(settings, complaint.strip(), record_id))
    click.echo(printable(text, keep="\n\t"), nl=False)
    for remark in remarks:
        click.echo(f"ttsr-proxy: {printable(remark)}", err=True)
    if found is not None:
        told = "matches" if found else "DOES NOT match"
        click.echo(f"ttsr-proxy: it {told} the recorded output", err=True)
    if directory is None:
        return
    path = directory / f"{name}.md"
    if path.exists():
        raise TtsrError(f"{path} exists already; it is left as it is")
    if yes or click.confirm(f"Save it as {path}?", err=True):
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


async def _draft(
    settings: Settings, complaint: str, record_id: str | None
) -> tuple[str, str, bool | None, tuple[str, ...]]:
    # Imported here: other commands should not wait for the compiler.
    from ttsr_proxy.library.authoring import draft_rule
    from ttsr_proxy.library.compilation.by_model import ModelCompiler
    from ttsr_proxy.library.compilation.models import plan_model
    from ttsr_proxy.library.compilation.prover import Prover

    if record_id is None:
        record = None
    elif (record := await _record(settings.state, record_id)) is None:
        raise TtsrError(f"the interrupt log at {settings.state} has no entry {record_id!r}")
    compiler, upstreams = settings.library.compiler, settings.upstreams
    model = plan_model(compiler, openai=upstreams.openai, anthropic=upstreams.anthropic)
    prover = Prover()
    try:
        writer = None if model is None else ModelCompiler(model, prover, compiler.max_attempts)
        draft = await draft_rule(complaint, record, writer, prover)
    finally:
        prover.close()
        if model is not None:
            await model.close()
    return draft.name, draft.text, draft.finds_it, draft.remarks


async def _record(state: State, record_id: str) -> InterruptRecord | None:
    if not is_there(state):
        return None
    store = interrupts_at(state)
    try:
        return await store.get(record_id)
    finally:
        await store.close()
