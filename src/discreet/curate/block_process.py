"""The process of one block: one function of one data frame, then the end of the process.

Run as a file of its own, it imports nothing of this library.  It reads the function's code and the
rows from its standard input, takes away from itself files, further processes, memory and (where
the kernel lets it) the network, calls the function and writes what came out as JSON.  What
anything prints leads nowhere.
"""

from __future__ import annotations

import json
import marshal
import os
import resource
import sys
import types
from contextlib import suppress

_NEW_USER, _NEW_NETWORK = 0x1000_0000, 0x4000_0000
"""Linux: a user namespace, in which a network namespace without any device may be made."""


def main() -> None:
    """Read, call, write."""
    told = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    size = int.from_bytes(sys.stdin.buffer.read(8), "big")
    settings = json.loads(sys.stdin.buffer.read(size))
    code = marshal.loads(sys.stdin.buffer.read(settings["code"]))  # noqa: S302 (the curator's own)
    import pyarrow as pa

    with pa.ipc.open_stream(sys.stdin.buffer.read()) as reader:
        frame = reader.read_all().to_pandas()
    _shut_in(settings["memory_bytes"])
    function = types.FunctionType(code, {"__builtins__": __builtins__})
    result = function(frame)
    listed = list(result) if hasattr(result, "__len__") else [result]
    os.write(told, json.dumps([float(value) for value in listed]).encode())


def _shut_in(memory_bytes: int) -> None:
    """No network, no files that grow, no further processes, so much memory."""
    import ctypes
    import socket

    with suppress(OSError, AttributeError):  # not every kernel lets a user do it
        ctypes.CDLL(None).unshare(_NEW_USER | _NEW_NETWORK)

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network")

    socket.socket = refuse  # type: ignore[assignment,misc]
    for what, most in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    main()
