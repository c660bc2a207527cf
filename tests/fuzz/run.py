"""One fuzzing target under atheris: `python tests/fuzz/run.py TARGET [libFuzzer options]`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

with atheris.instrument_imports(include=["ttsr_proxy"]):
    from fuzz_targets import TARGETS


def main() -> None:
    target, pieces = TARGETS[sys.argv.pop(1)]
    with TemporaryDirectory() as seeds:
        for number, piece in enumerate((*pieces, b"".join(pieces))):
            (Path(seeds) / str(number)).write_bytes(b"\x07" + piece)
        words = Path(seeds) / "words.dict"
        words.write_text("".join(f'"{_escaped(piece)}"\n' for piece in pieces if len(piece) < 64))
        atheris.Setup([*sys.argv, f"-dict={words}", seeds], target)
        atheris.Fuzz()


def _escaped(piece: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in piece)


if __name__ == "__main__":
    main()
