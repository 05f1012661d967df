"""Run every benchmark, or those that are named: ``python -m bench [name ...]``."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module

import bench


def discovered() -> list[str]:
    """The modules beside this one; one that is not named is not imported."""
    names = sorted(found.name for found in pkgutil.iter_modules(bench.__path__))
    return [name for name in names if not name.startswith("_")]


def main(arguments: list[str]) -> None:
    names = discovered()
    unknown = [name for name in arguments if name not in names]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(names)}")
    sys.argv = sys.argv[:1]  # a benchmark with options of its own is run as python -m bench.<name>
    for name in arguments or names:
        run = getattr(import_module(f"bench.{name}"), "main", None)
        if run is not None:
            print(f"\n== {name} ==\n", flush=True)
            run()


if __name__ == "__main__":
    main(sys.argv[1:])
