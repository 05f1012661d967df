"""A folder for copies of rows, which goes with the engine, or with the next if that was killed.

Copies of private rows must not outlive whoever may read them.  A process that ends removes its
own; one that is killed cannot, and leaves a lock that nobody holds.
"""

from __future__ import annotations

import fcntl
import math
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "discreet-rows-"
_LOCK = "lock"
_AGAIN_S = 60.0
_swept: dict[str, float] = {}  # by temporary directory: when this process looked last


def make_folder(owner: object) -> Path:
    """A folder that nobody else may read, removed with its ``owner``."""
    folder, lock = _make()
    weakref.finalize(owner, _remove, folder, lock, os.getpid())
    return folder


@contextmanager
def folder_for_now() -> Iterator[Path]:
    """The same, for as long as something is done in it."""
    folder, lock = _make()
    try:
        yield folder
    finally:
        _remove(folder, lock, os.getpid())


def _make() -> tuple[Path, int]:
    home, now = tempfile.gettempdir(), time.monotonic()
    if now - _swept.get(home, -math.inf) >= _AGAIN_S:  # with many engines, not for each
        _swept[home] = now
        sweep()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    unseen = folder / "unseen"  # till it is held: nobody takes the folder for one that was left
    lock = os.open(unseen, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unseen.rename(folder / _LOCK)
    return folder, lock


def sweep() -> None:
    """Remove the folders of this user that killed processes have left."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if left.lstat().st_uid == os.getuid() and not left.is_symlink():
                _remove_if_left(left)


def _remove_if_left(folder: Path) -> None:
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # who holds it, lives
        _clear(folder)
    finally:
        os.close(lock)


def _remove(folder: Path, lock: int, process: int) -> None:
    if os.getpid() != process:  # a fork of it ends before the one that needs the folder
        return
    _clear(folder)
    os.close(lock)


def _clear(folder: Path) -> None:
    """Remove the rows, and then the lock: what is cut short is found by the next sweep."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name == _LOCK:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        (folder / _LOCK).unlink()
        folder.rmdir()
