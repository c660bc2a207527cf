"""Work on many files, in worker processes when there is much of it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeVar

from ttsr_proxy.errors import TtsrError

_M = TypeVar("_M")
_R = TypeVar("_R")


def judge_batches(
    make: Callable[[_M], Callable[[Sequence[Path]], _R]],
    manner: _M,
    batches: Sequence[Sequence[Path]],
    jobs: int,
) -> Iterator[_R]:
    """The answer for each batch of files, in order.

    `make(manner)` gives the function that judges a batch. With several jobs it is called in every worker, so
    that both must be picklable.

    Raises TtsrError when a worker process dies.
    """
    if jobs <= 1:
        judge = make(manner)
        yield from map(judge, batches)
        return
    # Spawned, not forked: the progress bar has a thread.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(jobs, len(batches)), mp_context=context, initializer=_start, initargs=(make, manner)
    ) as pool:
        answers = pool.map(_judge_batch, batches)
        for batch in batches:
            try:
                yield next(answers)
            except BrokenProcessPool as error:
                raise TtsrError(
                    f"a worker died while judging one of the files {batch[0]} to {batch[-1]} or a later one;"
                    " name fewer files, or use --jobs 1 to find it"
                ) from error


_judge: Callable[[Sequence[Path]], Any] | None = None
"""In a worker process: what `_start` made."""


def _start(make: Callable[[_M], Callable[[Sequence[Path]], Any]], manner: _M) -> None:
    global _judge
    _judge = make(manner)


def _judge_batch(paths: Sequence[Path]) -> Any:
    if _judge is None:
        raise RuntimeError("the worker was not started")
    return _judge(paths)
