"""Run every benchmark, or those that are named: ``python -m bench [--write] [name ...]``.

Each says when, of which commit and on which machine it was run.  With ``--write`` what is printed
is kept in ``docs/measured/``, a file for each, and those with a section of their own in
``docs/benchmarks.md`` write it anew.
"""

from __future__ import annotations

import inspect
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import bench
from bench.timing import describe_run

MEASURED = Path(__file__).parents[1] / "docs" / "measured"


def discovered() -> list[str]:
    """The modules beside this one; one that is not named is not imported."""
    names = sorted(found.name for found in pkgutil.iter_modules(bench.__path__))
    return [name for name in names if not name.startswith("_")]


def keep(name: str) -> None:
    """Run one in a process of its own, and keep what it prints."""
    own = ["--write"] if '"--write"' in inspect.getsource(import_module(f"bench.{name}")) else []
    command = [sys.executable, "-m", f"bench.{name}", *own]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    ended = "" if not found.returncode else f"\nIt ended with an error ({found.returncode}).\n"
    MEASURED.mkdir(exist_ok=True)
    (MEASURED / f"{name}.txt").write_text(f"{describe_run()}\n\n{found.stdout}{ended}")
    print(found.stdout + ended)


def main(arguments: list[str]) -> None:
    names = discovered()
    write, asked = "--write" in arguments, [one for one in arguments if one != "--write"]
    unknown = [name for name in asked if name not in names]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(names)}")
    sys.argv = sys.argv[:1]  # a benchmark with options of its own is run as python -m bench.<name>
    for name in asked or names:
        run = getattr(import_module(f"bench.{name}"), "main", None)
        if run is None:
            continue
        print(f"\n== {name} ==\n{describe_run()}\n", flush=True)
        if write:
            keep(name)
        else:
            run()


if __name__ == "__main__":
    main(sys.argv[1:])
