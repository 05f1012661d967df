"""Run every benchmark, or those that are named: ``python -m bench [name ...]``."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module

import bench


def discovered() -> dict[str, object]:
    """The modules beside this one that define ``main``."""
    names = sorted(found.name for found in pkgutil.iter_modules(bench.__path__))
    modules = {name: import_module(f"bench.{name}") for name in names if not name.startswith("_")}
    return {name: module.main for name, module in modules.items() if hasattr(module, "main")}


def main(arguments: list[str]) -> None:
    benchmarks = discovered()
    unknown = [name for name in arguments if name not in benchmarks]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(benchmarks)}")
    sys.argv = sys.argv[:1]  # a benchmark with options of its own is run as python -m bench.<name>
    for name in arguments or benchmarks:
        print(f"\n== {name} ==\n", flush=True)
        benchmarks[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
