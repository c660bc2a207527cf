"""What the proxy counts and measures, for Prometheus.

`FAMILIES` is the whole list; documentation and tests follow from it. Labels have few values: names of
protocols, configured projects and rules, words of this program, never anything that a request brought.

Several workers count into one directory, which `shared_directory` makes before they start, and any of them
answers for all (https://prometheus.github.io/client_python/multiprocess/).
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, multiprocess
from prometheus_client.exposition import choose_encoder

from ttsr_proxy.interrupts.record import INTERRUPTING
from ttsr_proxy.protocols.anthropic import ANTHROPIC
from ttsr_proxy.protocols.openai_chat import OPENAI_CHAT
from ttsr_proxy.protocols.openai_responses import OPENAI_RESPONSES

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Combined: TypeAlias = Literal["all", "livesum", "livemax", "livemin"]

Labels = TypeVar("Labels", bound=tuple[str, ...])

MOST_VALUES: Final = 1_000
"""Values of one label of a counter that are told apart; further ones are counted as `other`."""

_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"

_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108

_INSPECTED: Final = tuple(protocol.name for protocol in (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES))

_LATENCY: Final = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 13, 20, 30, 60, 120, 300)
"""Seconds. Models take from half a second to minutes for their first word."""

_DURATION: Final = (0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200)


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. `combined` says how a gauge's values of several workers become one."""

    kind: Kind
    name: str
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    combined: Combined = "all"
    known: tuple[tuple[str, ...], ...] = ()
    """Labels that are there from the start, at 0: Prometheus sees no increase of what was not there."""


REQUESTS = Family(
    "counter",
    "ttsr_requests_total",
    "Requests of clients that are over, by what became of them.",
    ("protocol", "outcome"),
)
INSPECTED = Family(
    "counter",
    "ttsr_inspected_requests_total",
    "Requests whose answers went through the matchers.",
    ("protocol",),
)
NOT_INSPECTED = Family(
    "counter", "ttsr_not_inspected_requests_total", "Requests that passed without matching.", ("reason",)
)
BYPASSES = Family(
    "counter",
    "ttsr_bypass_requests_total",
    "Requests that ask to be bypassed, and whether they may.",
    ("allowed",),
)
OPEN = Family(
    "gauge",
    "ttsr_open_requests",
    "Requests of clients under way, streams included.",
    ("protocol",),
    combined="livesum",
    known=tuple((protocol,) for protocol in (*_INSPECTED, "other")),
)
HELD = Family(
    "gauge", "ttsr_held_bytes", "Bytes of upstream's answers that are held back now.", combined="livesum"
)
MATCHES = Family("counter", "ttsr_matches_total", "Matches by rule and what was done.", ("rule", "action"))
INTERRUPTS = Family(
    "counter",
    "ttsr_interrupts_total",
    "Answers stopped: asked for again (`interrupted`) or ended early (`truncated`).",
    ("protocol", "action"),
    known=tuple((protocol, action) for protocol in _INSPECTED for action in sorted(INTERRUPTING)),
)
RETRIES = Family(
    "counter",
    "ttsr_retries_total",
    "Upstream calls beyond the first of their request.",
    ("protocol",),
    known=tuple((protocol,) for protocol in _INSPECTED),
)
WASTED_TOKENS = Family(
    "counter", "ttsr_wasted_tokens_total", "Tokens of attempts that were stopped, mostly estimated."
)
ADDED_SECONDS = Family(
    "counter", "ttsr_added_seconds_total", "Seconds from an interrupt to the first content of its retry."
)
CALLS = Family(
    "counter",
    "ttsr_upstream_calls_total",
    "Upstream calls, by how they went.",
    ("protocol", "result"),
)
UPSTREAM_FIRST = Family(
    "histogram",
    "ttsr_upstream_first_event_seconds",
    "From an upstream call to the first bytes of its stream, on inspected requests.",
    ("protocol",),
    _LATENCY,
)
CLIENT_FIRST = Family(
    "histogram",
    "ttsr_first_event_seconds",
    "From an inspected request to the first bytes of the stream that the client gets.",
    ("protocol",),
    _LATENCY,
)
DURATION = Family(
    "histogram",
    "ttsr_request_duration_seconds",
    "From a request to the end of its answer.",
    ("protocol",),
    _DURATION,
)
EVENTS = Family(
    "counter",
    "ttsr_exchange_events_total",
    "What went otherwise than usual: output that could not be inspected (`not_inspected`), a condition that "
    "took too long (`condition_muted`), a request form that upstream refused (`request_refused`).",
    ("event",),
)
FAULTS = Family("counter", "ttsr_matching_faults_total", "Faults of the program while it matched.")
STORE_ERRORS = Family(
    "counter", "ttsr_store_errors_total", "Uses of the state store that failed.", ("operation",)
)
STORE_UP = Family(
    "gauge", "ttsr_store_up", "1 if the last use of the state store went well, else 0.", combined="livemin"
)
AST_REPLACED = Family(
    "counter",
    "ttsr_ast_worker_replacements_total",
    "ast-grep processes that were replaced: crashed, too slow, or not started.",
    ("reason",),
)
RULES = Family(
    "gauge", "ttsr_rules", "Rules of a project by state.", ("project", "state"), combined="livemax"
)
SEARCHES = Family(
    "counter", "ttsr_library_searches_total", "Searches of the rule library, by who judged.", ("judge",)
)
JUDGED = Family(
    "counter",
    "ttsr_judged_questions_total",
    "Questions of judged rules, by answer: the rule is `broken`, `kept`, or there was none (`unanswered`).",
    ("result",),
)
JUDGEMENTS = Family("counter", "ttsr_judge_questions_total", "Questions to the library's judge.", ("result",))
TASKS = Family(
    "counter", "ttsr_library_tasks_total", "Compilations of the library that are over.", ("status",)
)
STARTS = Family(
    "counter",
    "ttsr_worker_starts_total",
    "Serving processes that were started; more than `workers` if some died and were replaced.",
)
BUILD = Family("gauge", "ttsr_build_info", "1, with the version.", ("version",), combined="livemax")

FAMILIES: Final = (
    REQUESTS,
    INSPECTED,
    NOT_INSPECTED,
    BYPASSES,
    OPEN,
    HELD,
    MATCHES,
    INTERRUPTS,
    RETRIES,
    WASTED_TOKENS,
    ADDED_SECONDS,
    CALLS,
    UPSTREAM_FIRST,
    CLIENT_FIRST,
    DURATION,
    EVENTS,
    FAULTS,
    STORE_ERRORS,
    STORE_UP,
    AST_REPLACED,
    RULES,
    JUDGED,
    SEARCHES,
    JUDGEMENTS,
    TASKS,
    STARTS,
    BUILD,
)


class Metrics:
    """This process's share of every family.

    A figure that cannot be kept, for want of room in the workers' directory, is lost and costs nobody more.
    """

    def __init__(self) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.shared = _VARIABLE in os.environ
        """Several processes count together."""
        self._registry = CollectorRegistry()
        self._counters: dict[Family, Counter] = {}
        self._gauges: dict[Family, Gauge] = {}
        self._histograms: dict[Family, Histogram] = {}
        self._copied: dict[tuple[Family, tuple[str, ...]], int] = {}
        self._given: dict[Family, set[tuple[str, ...]]] = {}
        """Labels of gauges that have a value."""
        self._values: dict[tuple[Family, int], set[str]] = {}
        """What is told apart: values of counters' labels, by the label's place."""
        for family in FAMILIES:
            self._make(family)
        if not self.shared:
            for collector in (
                prometheus_client.ProcessCollector,
                prometheus_client.PlatformCollector,
                prometheus_client.GCCollector,
            ):
                collector(registry=self._registry)

    def _make(self, family: Family) -> None:
        name, text, labels, registry = family.name, family.text, family.labels, self._registry
        match family.kind:
            case "counter":
                self._counters[family] = Counter(name, text, labels, registry=registry)
                for known in family.known:
                    self.count(family, *known, by=0)
            case "gauge":
                self._gauges[family] = Gauge(
                    name, text, labels, registry=registry, multiprocess_mode=family.combined
                )
                self.set(family, dict.fromkeys(family.known, 0))
            case "histogram":
                self._histograms[family] = Histogram(
                    name, text, labels, registry=registry, buckets=family.buckets
                )

    def count(self, family: Family, *labels: str, by: float = 1) -> None:
        """Add to a counter. Labels are in the family's order."""
        counter = self._counters[family]
        with contextlib.suppress(OSError):
            if labels:
                counter = counter.labels(*self._bounded(family, labels))
            counter.inc(by)

    def copy(self, family: Family, counts: Mapping[Labels, int]) -> None:
        """Bring a counter up to counts that something else keeps, by labels."""
        for labels, total in list(counts.items()):
            grown = total - self._copied.get((family, labels), 0)
            if grown > 0:
                self._copied[family, labels] = total
                self.count(family, *labels, by=grown)

    def observe(self, family: Family, seconds: float, *labels: str) -> None:
        """Add a measured time to a histogram."""
        with contextlib.suppress(OSError):
            self._histograms[family].labels(*labels).observe(seconds)

    def set(self, family: Family, values: Mapping[Labels, float]) -> None:
        """The values of a gauge by labels. Where there was a value before and is none now, it is 0."""
        gauge, given = self._gauges[family], self._given.setdefault(family, set())
        for labels in given - values.keys():
            gauge.labels(*labels).set(0)
        for labels, value in values.items():
            (gauge.labels(*labels) if labels else gauge).set(value)
        given.update(values)

    def totals(self, family: Family) -> dict[tuple[str, ...], int]:
        """What all processes have counted of a family, by its labels."""
        return {
            tuple(sample.labels[label] for label in family.labels): int(sample.value)
            for metric in self._of_all().collect()
            for sample in metric.samples
            if sample.name == family.name
        }

    def text(self, accept: str) -> tuple[bytes, str]:
        """What `/metrics` answers for an `Accept` header, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._of_all()), content_type

    def _of_all(self) -> CollectorRegistry:
        """The figures of all processes."""
        if not self.shared:
            return self._registry
        registry = CollectorRegistry()
        try:
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        except ValueError:
            # Somebody has tidied the directory away: what this process has counted is left.
            return self._registry
        return registry

    def _bounded(self, family: Family, labels: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._told_apart(family, place, value) for place, value in enumerate(labels))

    def _told_apart(self, family: Family, place: int, value: str) -> str:
        known = self._values.setdefault((family, place), set())
        if value not in known:
            if len(known) >= MOST_VALUES:
                return "other"
            known.add(value)
        return value


def _in_memory() -> str | None:
    """Where Linux keeps files in memory: no full disk and no tidying of old files concerns them."""
    return _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None


@contextlib.contextmanager
def shared_directory() -> Iterator[str]:
    """Where the workers that are started within count together."""
    with tempfile.TemporaryDirectory(prefix="ttsr-proxy-metrics-", dir=_in_memory()) as directory:
        os.environ[_VARIABLE] = directory
        try:
            yield directory
        finally:
            del os.environ[_VARIABLE]


def remove_own_share() -> None:
    """For a worker at its end whose supervisor is gone, so that nobody else removes the directory."""
    directory = Path(os.environ[_VARIABLE])
    for file in directory.glob("*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        if pid == os.getpid() or not _lives(pid):
            file.unlink(missing_ok=True)
    # The last worker succeeds.
    with contextlib.suppress(OSError):
        directory.rmdir()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def worker_ended(pid: int, directory: str) -> None:
    """A worker is gone, and with it what it had open."""
    multiprocess.mark_process_dead(pid, directory)  # type: ignore[no-untyped-call]
