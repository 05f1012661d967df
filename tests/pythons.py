"""The versions of Python that are promised, and those of them that are here.

``make pythons`` runs some of the tests in each of the others, in an environment of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUPPORTED = ("3.11", "3.12", "3.13")
OWN = "{}.{}".format(*sys.version_info)


def find_others() -> dict[str, str]:
    """Interpreters of the other supported versions that start: on the path, or pyenv's."""
    found = {version: _find(version) for version in SUPPORTED if version != OWN}
    return {version: python for version, python in found.items() if python is not None}


def _find(version: str) -> str | None:
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *sorted(kept.glob(f"{version}.*/bin/python"))]
    for candidate in candidates:
        if candidate is not None and _read_version(candidate) == version:
            return str(candidate)
    return None


def _read_version(python: str | Path) -> str:
    """The version that an interpreter says it is; nothing if it does not start."""
    ask = "import sys; print('{}.{}'.format(*sys.version_info))"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main(tests: list[str]) -> None:
    """Run ``tests`` in every other version that is here."""
    for version, python in find_others().items():
        place = ROOT / ".venv" / "pythons" / version
        made = place / "bin" / "python"
        if not made.exists():
            subprocess.run([python, "-m", "venv", place], check=True)
        install = [made, "-m", "pip", "install", "--quiet", "-c", "constraints.txt"]
        subprocess.run([*install, "--upgrade", "pip>=25.1"], cwd=ROOT, check=True)
        subprocess.run([*install, "-e", ".[accounting]", "--group", "test"], cwd=ROOT, check=True)
        print(f"Python {version}", flush=True)
        run = [made, "-m", "pytest", "-q", "-m", "not soak", *tests]
        subprocess.run(run, cwd=ROOT, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
