"""Content encodings of request bodies (RFC 9110 section 8.4.1): taken off, so that a body can be read."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Mapping

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LARGEST_BODY = 256 << 20
"""Bytes that a compressed body may have once its encoding is taken off."""

DECODED_BY_CLIENT = frozenset(("gzip", "deflate", "br", "zstd"))
"""What aiohttp's client takes off answers by itself, with the libraries that this package requires."""


class Undecodable(Exception):
    """The body stays as it is; the message says why, without content."""


def decoded(body: bytes, encodings: str) -> bytes:
    """The body without the encodings that its `Content-Encoding` names. Raises Undecodable."""
    names = [name for part in encodings.split(",") if (name := part.strip().lower())]
    for name in reversed(names):
        decoder = _DECODERS.get(name)
        if decoder is None:
            raise Undecodable(f"the request has an unknown content encoding ({name[:40]})")
        try:
            body = decoder(body)
        except (zlib.error, zstd.ZstdError, brotli.error, EOFError) as error:
            raise Undecodable(f"the request's body is not {name} as its header says") from error
        if len(body) > LARGEST_BODY:
            raise Undecodable(
                f"the request's body is larger than {LARGEST_BODY:,} bytes without its encoding"
            )
    return body


def _zlib(window: int) -> Callable[[bytes], bytes]:
    def decode(body: bytes) -> bytes:
        pieces: list[bytes] = []
        left = LARGEST_BODY + 1
        while body and left > 0:  # gzip allows several members in a row
            decoder = zlib.decompressobj(window)
            piece = decoder.decompress(body, left)
            left -= len(piece)
            if left > 0 and not decoder.eof:
                raise EOFError
            pieces.append(piece)
            body = decoder.unused_data
        return b"".join(pieces)

    return decode


def _deflate(body: bytes) -> bytes:
    try:
        return _zlib(zlib.MAX_WBITS)(body)
    except zlib.error:
        # Some clients leave out the zlib header that the RFC asks for.
        return _zlib(-zlib.MAX_WBITS)(body)


def _brotli(body: bytes) -> bytes:
    decoder = brotli.Decompressor()
    pieces = [decoder.process(body, output_buffer_limit=LARGEST_BODY + 1)]
    size = len(pieces[0])
    while not decoder.is_finished() and size <= LARGEST_BODY:
        piece = decoder.process(b"", output_buffer_limit=LARGEST_BODY + 1)
        if not piece:
            raise EOFError
        size += len(piece)
        pieces.append(piece)
    return b"".join(pieces)


def _zstd(body: bytes) -> bytes:
    pieces: list[bytes] = []
    left = LARGEST_BODY + 1
    while body and left > 0:  # RFC 8878 section 3.1: frames in a row
        decoder = zstd.ZstdDecompressor()
        piece = decoder.decompress(body, left)
        left -= len(piece)
        if left > 0 and not decoder.eof:
            raise EOFError
        pieces.append(piece)
        body = decoder.unused_data
    return b"".join(pieces)


_DECODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "identity": lambda body: body,
    "gzip": _zlib(zlib.MAX_WBITS | 16),
    "x-gzip": _zlib(zlib.MAX_WBITS | 16),
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
