"""A folder that appears when it is complete, with checksums, or not at all."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.errors import InvalidParameter
from discreet.noise.entropy import random_bytes

SUMS = "SHA256SUMS"
_WAITING = ".next"


def place_folder(folder: Path, write: Callable[[Path], None], *, anew: bool = False) -> Path:
    """Write a folder and its checksums, all of it or nothing: it appears when it is complete.

    ``anew`` takes the place of an earlier one.
    """
    partial = folder.parent / f".{random_bytes(8).hex()}.partial"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
        write(partial)
        write_sums(partial)
        sync_files(partial)
        settle(folder)
        if anew and folder.exists():
            _replace(folder, partial)
            _sync_folder(folder.parent)
            return folder
        try:
            partial.rename(folder)
        except OSError:
            if not (folder / SUMS).exists():
                raise  # otherwise another was quicker
        _sync_folder(folder.parent)
    except OSError as error:
        raise InvalidParameter(
            "P9",
            f"{folder} cannot be written: {error.strerror or 'the disk said no'}.",
            why="the release is paid for and kept in the ledger; nothing of it is lost.",
            fix="make room, and make the release again: it costs nothing more.",
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # what did not come to its place
    return folder


def _replace(folder: Path, new: Path) -> None:
    """Put a folder in the place of another: at once, where the system can exchange two names.

    Elsewhere the new one waits under a name that says whose place it is to take: whoever comes
    after a process that was killed in between finishes what that began (:func:`settle`).
    """
    if _exchange(folder, new):
        shutil.rmtree(new, ignore_errors=True)
        return
    new.rename(_waiting(folder))
    _sync_folder(folder.parent)
    settle(folder)


def settle(folder: Path) -> None:
    """Finish the exchange of a folder that was begun, here or by a process that was killed."""
    waiting = _waiting(folder)
    if not os.path.lexists(waiting):
        return
    before = folder.parent / f".{folder.name}.before.partial"
    with _alone_in(folder.parent):
        if find_changes(waiting) != []:  # gone meanwhile, or none of ours: those are complete
            return
        if folder.exists():
            shutil.rmtree(before, ignore_errors=True)
            folder.rename(before)
        waiting.rename(folder)
        _sync_folder(folder.parent)
        shutil.rmtree(before, ignore_errors=True)


def settle_all(parent: Path) -> None:
    """The same of every folder that waits in there."""
    for waiting in parent.glob(f".*{_WAITING}"):
        settle(parent / waiting.name.removeprefix(".").removesuffix(_WAITING))


def _waiting(folder: Path) -> Path:
    return folder.parent / f".{folder.name}{_WAITING}"


@contextmanager
def _alone_in(parent: Path) -> Iterator[None]:
    """No two processes move the folders of one parent at once; the lock of the dead is free."""
    handle = os.open(parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a disk that knows no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step, as Linux can on most disks; whether it was done."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    at_cwd, exchange = -100, 2
    return bool(rename(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), exchange) == 0)


def write_sums(folder: Path) -> None:
    """The checksums of all files, as ``sha256sum -c`` reads them."""
    sums = "".join(f"{digest(file)}  {name}\n" for name, file in list_files(folder))
    (folder / SUMS).write_text(sums, encoding="utf-8")


def find_changes(folder: Path) -> list[str] | None:
    """The files that are not those of the checksums; None if there are none of these.

    A link is never one of them: what it shows is not in the folder that was handed over.
    """
    try:
        if not is_plain(folder / SUMS):
            return None
        text = (folder / SUMS).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    listed = {line[66:]: line[:64] for line in text.splitlines()}
    entries = {name: folder / name for name in list_entries(folder) if name != SUMS}
    odd = {name for name, file in entries.items() if not is_plain(file)}
    found = {name: digest(file) for name, file in entries.items() if name not in odd}
    return sorted(odd | {name for name, _ in {*listed.items()} ^ {*found.items()}})


def is_plain(file: Path, *, most: int | None = None) -> bool:
    """Whether it is a file of its own, of at most so many bytes: no link, no pipe, no device."""
    try:
        told = file.lstat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(told.st_mode) and (most is None or told.st_size <= most)


def list_entries(folder: Path) -> list[str]:
    """All that is in a folder but folders, links and pipes included; nothing is followed."""
    found = [
        Path(where, name).relative_to(folder).as_posix()
        for where, folders, files in os.walk(folder)
        for name in [*files, *(one for one in folders if Path(where, one).is_symlink())]
    ]
    return sorted(found)


def list_files(folder: Path) -> list[tuple[str, Path]]:
    """The files of a folder by their paths in it, in order, but for its checksums."""
    own = folder / SUMS
    found = [file for file in folder.rglob("*") if file.is_file() and file != own]
    return sorted((file.relative_to(folder).as_posix(), file) for file in found)


def digest(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as read:
        return hashlib.file_digest(read, "sha256").hexdigest()


def sync_files(folder: Path) -> None:
    """Have all of it on the disk."""
    for _, file in [*list_files(folder), (SUMS, folder / SUMS)]:
        with file.open("rb") as written:
            os.fsync(written.fileno())
    for inner in folder.rglob("*"):
        if inner.is_dir():
            _sync_folder(inner)
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


__all__ = [
    "SUMS",
    "find_changes",
    "is_plain",
    "list_entries",
    "list_files",
    "place_folder",
    "settle",
    "settle_all",
]
