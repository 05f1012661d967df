"""A folder that is handed over as one file, and the file as a folder again, complete or absent."""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import DataRefusal, InvalidParameter, Refusal
from discreet.publication.folder import CERTIFICATE, FORMAT, read_certificate
from discreet.publication.placing import SUMS, find_changes, is_plain, list_files, place_folder

MOST_BYTES = 2**33
"""Of a folder that is unpacked."""
_DEEPEST = 4  # a publication, a release in it, its tables, one of them
_KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def pack_folder(folder: Path) -> bytes:
    """A folder as one ZIP file, the same bytes every time."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as packed:
        for name, file in [*list_files(folder), (SUMS, folder / SUMS)]:
            one = zipfile.ZipInfo(f"{folder.name}/{name}")
            one.compress_type, one.file_size = zipfile.ZIP_DEFLATED, file.stat().st_size
            with file.open("rb") as held, packed.open(one, "w") as written:
                shutil.copyfileobj(held, written)
    return sink.getvalue()


def unpack_folder(content: bytes, folder: Path) -> Path:
    """Put what was packed into ``folder``, in the place of an earlier one; all of it or nothing."""
    with _open_packed(content) as packed:
        inside = _check_packed(packed)

        def write(draft: Path) -> None:
            for name, one in inside.items():
                (draft / name).parent.mkdir(parents=True, exist_ok=True)
                with packed.open(one) as held, (draft / name).open("xb") as written:
                    shutil.copyfileobj(held, written)

        return place_folder(folder, write, anew=True)


@contextmanager
def _open_packed(content: bytes) -> Iterator[zipfile.ZipFile]:
    """What was packed, or a refusal, whatever is wrong with it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            yield packed
    except Refusal:
        raise
    except (zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, EOFError):
        raise _damaged_refusal() from None


def _check_packed(packed: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files as they were packed: none outside, none changed, and none that is not listed.

    A small file may say that it holds more than there is room for; it is read piece by piece.
    """
    inside: dict[str, zipfile.ZipInfo] = {}
    for one in packed.infolist():
        parts = one.filename.split("/")
        name = "/".join(parts[1:])  # without the name that the folder had
        plain = name.isprintable() and "\\" not in name and not {"", ".", ".."} & {*parts, name}
        if not plain or name in inside or len(parts) > _DEEPEST or one.compress_type not in _KNOWN:
            raise _damaged_refusal()
        inside[name] = one
    size = sum(one.file_size for one in inside.values())
    if size > MOST_BYTES:
        raise _too_large_refusal(size)
    listed = sorted(name for name in inside if name != SUMS)
    sums = "".join(f"{_digest(packed, inside[name])}  {name}\n" for name in listed).encode()
    if (
        SUMS not in inside
        or inside[SUMS].file_size != len(sums)
        or packed.read(inside[SUMS]) != sums
    ):
        raise _damaged_refusal()
    return inside


def _digest(packed: zipfile.ZipFile, one: zipfile.ZipInfo) -> str:
    found = hashlib.sha256()
    with packed.open(one) as held:
        while piece := held.read(2**20):
            found.update(piece)
    return found.hexdigest()


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


def _too_large_refusal(size: int) -> DataRefusal:
    return DataRefusal(
        "D2",
        f"what came would be a folder of {size:,} bytes; at most {MOST_BYTES:,} are unpacked.",
        why="a small file may say that it holds more than there is room for.",
        fix="have it handed over as a folder, by whoever made it.",
    )


def _damaged_refusal() -> DataRefusal:
    return DataRefusal(
        "D2",
        "what came is not a folder as it was packed.",
        why="a file that is missing or was changed would say what nobody released.",
        fix="ask for it again.",
    )


__all__ = ["check_release_place", "pack_folder", "unpack_folder"]
