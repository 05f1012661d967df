"""Run every benchmark, or those that are named: ``python -m bench [--write] [section ...]``.

A section is one run of one benchmark with its options.  With ``--write`` what it prints takes the
place of the section in ``docs/benchmarks.md``, with the date, the commit and the machine.  A
benchmark that ends with an error (no data, no peer) leaves its section as it was, and is named at
the end.

``python -m bench trace`` measures nothing: it shows the way of a question through the house.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from bench.sections import SECTIONS, write_section
from bench.timing import describe_run


def run(name: str, *, write: bool) -> bool:
    """Run one in a process of its own, and show what it prints; whether it came to its end."""
    stamp = describe_run()
    print(f"\n== {name}: python -m bench.{' '.join(SECTIONS[name])} ==\n{stamp}\n", flush=True)
    module, *options = SECTIONS[name]
    started = time.monotonic()
    command = [sys.executable, "-m", f"bench.{module}", *options]
    one_thread = {"OPENBLAS_NUM_THREADS": "1", **os.environ}  # as our command line sees to
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=one_thread)
    print(f"{found.stdout}\n({time.monotonic() - started:.0f} s)", flush=True)
    if write and not found.returncode:
        write_section(name, found.stdout, stamp)
    return not found.returncode


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["trace"]:
        from bench.trace import main as show_way

        show_way(arguments[1:])
        return
    write, asked = "--write" in arguments, [one for one in arguments if one != "--write"]
    unknown = [name for name in asked if name not in SECTIONS]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    failed = [name for name in asked or SECTIONS if not run(name, write=write)]
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
