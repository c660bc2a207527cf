"""The program's own log."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest
import structlog

from ttsr_proxy.cli.logging import configure_logging


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_events_are_json_lines_when_nobody_reads_them_on_a_terminal() -> None:
    stream = io.StringIO()
    configure_logging(stream)
    structlog.get_logger().info("rules_reloaded", rules=3)
    event = json.loads(stream.getvalue())
    assert (event["event"], event["level"], event["rules"]) == ("rules_reloaded", "info", 3)
    assert event["timestamp"].endswith("Z")


def test_events_are_lines_for_people_on_a_terminal() -> None:
    stream = Terminal()
    configure_logging(stream)
    structlog.get_logger().info("rules_reloaded", rules=3)
    assert "rules_reloaded" in stream.getvalue()
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(stream.getvalue())


def test_the_form_can_be_chosen_whatever_reads_it() -> None:
    terminal, file = Terminal(), io.StringIO()
    configure_logging(terminal, form="json")
    structlog.get_logger().info("rules_reloaded", rules=3)
    assert json.loads(terminal.getvalue())["rules"] == 3
    configure_logging(file, form="text")
    structlog.get_logger().info("rules_reloaded", rules=3)
    logging.getLogger("aiohttp.server").warning("odd request")
    assert re.search(r"rules_reloaded +rules=3\n.* odd request", file.getvalue())
    assert "\x1b" not in file.getvalue()


@pytest.mark.parametrize("stream_type", [io.StringIO, Terminal])
def test_secrets_are_masked_wherever_they_stand(stream_type: type[io.StringIO]) -> None:
    secret = "sk-ant-" + "a1b2c3d4" * 4
    stream = stream_type()
    configure_logging(stream)
    log = structlog.get_logger()
    log.info(
        "a", x_api_key="plain-password-1", headers={"Authorization": "plain-password-2"}, why=f"key {secret}"
    )
    log.info("b", given=[{"note": secret}])
    try:
        raise ValueError(f"refused {secret}")
    except ValueError:
        log.exception("c")
    logging.getLogger("aiohttp.server").warning("bad %s", secret)
    text = stream.getvalue()
    assert text.count("[masked]") == 6
    assert secret not in text
    assert "plain-password" not in text


def test_tracebacks_do_not_show_variables() -> None:
    stream = Terminal()
    configure_logging(stream)
    body = "the customer's prompt"
    try:
        raise ValueError(len(body))
    except ValueError:
        structlog.get_logger().exception("failed")
    assert "ValueError" in stream.getvalue()
    assert "customer" not in stream.getvalue().replace('body = "the customer', "")


def test_warnings_of_libraries_come_in_the_same_form() -> None:
    stream = io.StringIO()
    configure_logging(stream)
    logging.getLogger("aiohttp.server").warning("odd request")
    event = json.loads(stream.getvalue())
    assert (event["event"], event["logger"], event["level"]) == ("odd request", "aiohttp.server", "warning")
