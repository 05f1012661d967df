"""A folder that is handed over as one file, and the file as a folder again, complete or absent."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from pathlib import Path

from discreet.errors import DataRefusal, InvalidParameter, Refusal
from discreet.publication.folder import CERTIFICATE, FORMAT, read_certificate
from discreet.publication.placing import SUMS, find_changes, is_plain, list_files, place_folder


def pack_folder(folder: Path) -> bytes:
    """A folder as one ZIP file, the same bytes every time."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, file in [*list_files(folder), (SUMS, folder / SUMS)]:
            packed.writestr(zipfile.ZipInfo(f"{folder.name}/{name}"), file.read_bytes())
    return sink.getvalue()


def unpack_folder(content: bytes, folder: Path) -> Path:
    """Put what was packed into ``folder``, in the place of an earlier one; all of it or nothing."""
    files = _read_packed(content)

    def write(draft: Path) -> None:
        for name, held in files.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).write_bytes(held)

    return place_folder(folder, write, anew=True)


def _read_packed(content: bytes) -> dict[str, bytes]:
    """The files as they were packed: none outside, none changed, and none that is not listed."""
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for one in packed.namelist():
                _, _, name = one.partition("/")  # without the name that the folder had
                if {"", ".", ".."} & {*one.split("/"), name} or "\\" in name or name in files:
                    raise _damaged_refusal()
                files[name] = packed.read(one)
    except (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, RuntimeError):
        raise _damaged_refusal() from None
    listed = sorted(name for name in files if name != SUMS)
    sums = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in listed)
    if files.get(SUMS) != sums.encode():
        raise _damaged_refusal()
    return files


def check_release_place(folder: Path) -> None:
    """Refuse to write where something else is than a release as it was written."""
    if folder.exists() and not (_is_release(folder) and find_changes(folder) == []):
        raise InvalidParameter(
            "P9",
            f"{folder} is there already, and is no release as it was written.",
            why="what is in it would be lost.",
            fix="name a folder that is not there yet.",
        )


def _is_release(folder: Path) -> bool:
    try:
        return is_plain(folder / CERTIFICATE) and read_certificate(folder)["format"] == FORMAT
    except (OSError, ValueError, LookupError, RecursionError, Refusal):
        return False


def _damaged_refusal() -> DataRefusal:
    return DataRefusal(
        "D2",
        "what came is not a folder as it was packed.",
        why="a file that is missing or was changed would say what nobody released.",
        fix="ask for it again.",
    )


__all__ = ["check_release_place", "pack_folder", "unpack_folder"]
