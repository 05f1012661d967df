"""Starts a process that has the failing disk loaded."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import services
from faults import disk

quick_place = services.quick_place


def run(arguments: list[str], *, store: str = "", timeout_s: float = 6 * 3600) -> dict[str, Any]:
    """What ``python -m faults`` reports."""
    command = [sys.executable, "-m", "faults", *arguments]
    done = subprocess.run(
        command + (["--store", store] if store else []),
        env={
            **os.environ,
            "LD_PRELOAD": str(shim()),
            "PYTHONPATH": os.pathsep.join(map(str, (Path(__file__).parent.parent, *sys.path))),
            "OPENBLAS_NUM_THREADS": "1",  # a process without threads can be forked safely
        },
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"python -m faults {' '.join(arguments)}\n{done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    report["stderr"] = done.stderr[-4000:]
    if "--verbose" in arguments:
        print(done.stderr)
    return report


@cache
def shim() -> Path:
    """The compiled disk, made once in each process."""
    compiler = services.require("compiler")
    run = os.environ.get(services.HOME_VARIABLE)  # removed when pytest ends
    directory = tempfile.mkdtemp(prefix="discreet-disk-", dir=run)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return disk.build(Path(directory), compiler)
