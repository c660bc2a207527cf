"""Takes texts apart into blocks: list items, paragraphs, table rows, code, each with its place.

Both compilers work on blocks. What a block says is data, never an instruction to the program.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ttsr_proxy.library.slugs import slug_of

BATCH_CHARACTERS = 24_000
"""How much text one batch may hold."""

MAX_BATCHES = 100

Kind: TypeAlias = Literal["item", "paragraph", "row", "heading", "code", "quote"]

_RULE_COLUMN = re.compile(r"(?i)\b(?:rules?|requirements?|regeln?|anforderung(?:en)?)\b|规则|要求")


@dataclass(frozen=True, slots=True)
class SourceText:
    """One text to compile. `uri` is empty for the instruction."""

    uri: str
    text: str
    name: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a text. Lines count from 1."""

    source: SourceText
    number: int
    """The text's number among the texts of a compilation, from 1."""
    kind: Kind
    text: str
    headings: tuple[str, ...]
    first_line: int
    last_line: int
    code_language: str = ""
    column: str = ""
    """The heading of a table row's column."""

    @property
    def id(self) -> str:
        return f"B{self.number}.L{self.first_line}-L{self.last_line}"

    @property
    def section(self) -> str:
        """The heading path as an anchor."""
        return "/".join(slug_of(heading, default="section") for heading in self.headings)


def split_blocks(source: SourceText, number: int = 1) -> list[Block]:
    """The blocks of a Markdown or plain text, in order. Front matter must have been taken off."""
    return list(_Walk(source, number).blocks())


def batches(blocks: Sequence[Block]) -> list[list[Block]]:
    """Blocks in batches of at most `BATCH_CHARACTERS`, cut before a heading where possible.

    A longer block is a batch of its own.
    """
    result: list[list[Block]] = []
    size = 0
    for block in blocks:
        length = len(block.text)
        if not result or size + length > BATCH_CHARACTERS:
            carried = _carried_headings(result[-1]) if result else []
            result.append(carried)
            size = sum(len(heading.text) for heading in carried)
        result[-1].append(block)
        size += length
    return result


def _carried_headings(batch: list[Block]) -> list[Block]:
    """Take the headings off the end of a batch: they belong to what follows."""
    carried: list[Block] = []
    while len(batch) > 1 and batch[-1].kind == "heading":
        carried.insert(0, batch.pop())
    return carried


class _Walk:
    """One pass over the tokens of a document."""

    def __init__(self, source: SourceText, number: int) -> None:
        self._source = source
        self._number = number
        self._headings: list[tuple[int, str]] = []
        self._open: list[str] = []
        self._columns: list[str] = []
        self._cell = 0
        self._in_head = False
        self._level = 1

    def blocks(self) -> Iterator[Block]:
        tokens = MarkdownIt("commonmark").enable("table").parse(self._source.text)
        item: Block | None = None
        place = (0, 0)
        for token in tokens:
            if token.map:
                place = (token.map[0], token.map[1])
            if token.type == "inline":
                block = self._inline(token, place)
                if block is not None and block.kind == "item" and item is not None:
                    # A further paragraph of the same item.
                    text = f"{item.text}\n\n{block.text}"
                    item = self._block("item", text, (item.first_line - 1, place[1]))
                    continue
                if block is not None and block.kind == "item":
                    item = block
                    continue
                if block is not None:
                    yield block
            elif token.type in ("fence", "code_block"):
                if item is not None:
                    yield item
                    item = None
                yield self._block("code", token.content, place, language=token.info.strip())
            else:
                if item is not None and token.type in ("list_item_open", "list_item_close"):
                    yield item
                    item = None
                self._follow(token)

    def _inline(self, token: Token, place: tuple[int, int]) -> Block | None:
        text = token.content
        if "heading" in self._open:
            self._headings = [entry for entry in self._headings if entry[0] < self._level]
            block = self._block("heading", text, place)
            self._headings.append((self._level, _plain(text)))
            return block
        if "table" in self._open:
            return self._table_cell(text, place)
        if "blockquote" in self._open:
            return self._block("quote", text, place)
        return self._block("item" if "list_item" in self._open else "paragraph", text, place)

    def _table_cell(self, text: str, place: tuple[int, int]) -> Block | None:
        if self._in_head:
            self._columns.append(_plain(text))
            return None
        column = self._columns[self._cell] if self._cell < len(self._columns) else ""
        self._cell += 1
        return self._block("row", text, place, column=column) if _RULE_COLUMN.search(column) else None

    def _follow(self, token: Token) -> None:
        name = token.type.rpartition("_")[0]
        if token.type.endswith("_open"):
            self._open.append(name)
            if name == "heading":
                self._level = int(token.tag[1:])
            elif name == "table":
                self._columns = []
            elif name == "thead":
                self._in_head = True
            elif name == "tr":
                self._cell = 0
        elif token.type.endswith("_close"):
            self._open.pop()
            if name == "thead":
                self._in_head = False

    def _block(
        self, kind: Kind, text: str, place: tuple[int, int], language: str = "", column: str = ""
    ) -> Block:
        headings = tuple(heading for _, heading in self._headings)
        first, last = place
        return Block(
            self._source,
            self._number,
            kind,
            text,
            headings,
            first + 1,
            max(last, first + 1),
            language,
            column,
        )


def _plain(text: str) -> str:
    """A heading without its marks."""
    return re.sub(r"[*_`#]+", "", text).strip()
