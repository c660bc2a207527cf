"""Make a private environment: `python3 make_venv.py DIR`.

Kept to what any Python 3 can parse, so that an old one gets the message below and not a syntax error.
"""

import importlib.util
import os
import subprocess
import sys
import venv

MINIMUM = (3, 11)

NO_PIP = """\
This Python can make no environment with pip: it lacks the module 'ensurepip' and has no pip of its own.
  Debian, Ubuntu:   apt-get install python3-venv
  or use another:   make PYTHON=/path/to/python3.11"""


def main(directory):
    if sys.version_info < MINIMUM:
        wanted = ".".join(map(str, MINIMUM))
        found = ".".join(map(str, sys.version_info[:3]))
        return (
            f"ttsr-proxy needs Python {wanted} or newer, and {sys.executable} is {found}. "
            f"Try: make PYTHON=python{wanted}"
        )
    if importlib.util.find_spec("ensurepip"):
        venv.create(directory, with_pip=True)
        return None
    if importlib.util.find_spec("pip"):
        venv.create(directory, with_pip=False)
        python = os.path.join(directory, "bin", "python")
        command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "pip"]
        return subprocess.run(command, check=False).returncode or None
    return NO_PIP


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
