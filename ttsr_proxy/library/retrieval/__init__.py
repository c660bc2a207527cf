"""Search: which rules of a library are for a task."""

from ttsr_proxy.library.retrieval.searcher import Searcher

__all__ = ["Searcher"]
