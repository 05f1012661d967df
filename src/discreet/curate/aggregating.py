"""Subsample and aggregate: the curator's own function of a table, on blocks of units.

clinic.aggregate(median_stay, "visits", epsilon="0.5", output_bounds=(0, 60), blocks=100)

Every unit goes to one block, by a hash whose key is drawn for this release and kept nowhere.  The
function sees one block at a time, in a process of its own that ends with it; what fails, takes too
long or is not as many numbers as there are bounds is the middle of the bounds.  All of it takes
the same time, whatever the rows are.  Never for code that an analyst sends.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discreet.accounting.loss import Loss
from discreet.curate.once import Told, Wanted, release_once
from discreet.engine.protocol import describe_failure
from discreet.errors import InvalidParameter, quote_value
from discreet.exact.numbers import Exact, canonical_json, whole
from discreet.price.aggregation import Aggregation
from discreet.question.schema import Owners, Table
from discreet.release.release import release_blocks

if TYPE_CHECKING:
    from discreet.curate.curator import Curator

BLOCKS, SECONDS, MEMORY, TOGETHER = 64, 20, 2 * 1024**3, 2
"""Unless said otherwise: how many blocks, and of each how long, how large, and how many at once."""
_GRACE_S = 1.0
_PROGRAM = Path(__file__).with_name("block_process.py")


@dataclass(frozen=True, slots=True)
class Limits:
    """What the process of one block may take, and how many run at once."""

    seconds: int = SECONDS
    memory_bytes: int = MEMORY
    together: int = TOGETHER

    def duration_s(self, blocks: int) -> float:
        """How long all of them take, whatever they do."""
        return math.ceil(blocks / self.together) * (self.seconds + _GRACE_S)


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The averages over all blocks, with noise: ``values``, of the function called ``name``.

    ``aggregation`` is how they were made, ``id`` the number of the charge; ``replayed`` if it was
    paid for before.
    """

    values: tuple[float, ...]
    name: str
    aggregation: Aggregation
    id: int
    replayed: bool = False

    @property
    def loss(self) -> Loss:
        """What it cost one unit."""
        return self.aggregation.loss

    def margins(self, confidence: Exact = "0.95") -> tuple[float, ...]:
        """How far noise moved each, at ``confidence``.

        That a block is not the whole table is not in it.
        """
        return self.aggregation.margins(confidence)

    def to_json(self, confidence: Exact = "0.95") -> dict[str, Any]:
        """All it says, for programs; margins are at ``confidence``."""
        from discreet.release.amounts import loss_json

        return {
            "id": self.id,
            "name": self.name,
            "values": list(self.values),
            "margins": list(self.margins(confidence)),
            "blocks": self.aggregation.blocks,
            "price": loss_json(self.loss),
            "replayed": self.replayed,
        }

    def __str__(self) -> str:
        shown = ", ".join(
            f"{value:,.6g} ± {margin:,.3g}"
            for value, margin in zip(self.values, self.margins(), strict=True)
        )
        return (
            f"{self.name}: {shown} (95 %, of the noise; average over {self.aggregation.blocks} "
            f"blocks; {self.loss})"
        )


@dataclass(frozen=True, slots=True)
class AggregateExplanation:
    """What an ``aggregation`` of ``table`` would cost, and how good it would be; free.

    ``limits`` are those of the process of a block.
    """

    table: str
    aggregation: Aggregation
    limits: Limits

    @classmethod
    def of(
        cls, curator: Curator, table: str, aggregation: Aggregation, limits: Limits
    ) -> AggregateExplanation:
        """Of a ``table`` of ``curator`` that may be aggregated, or a refusal.

        ``aggregation`` and ``limits`` are how.
        """
        return cls(_find_table(curator, table).name, aggregation, limits)

    @property
    def loss(self) -> Loss:
        """What it costs one unit, whatever the function is."""
        return self.aggregation.loss

    def margins(self, confidence: Exact = "0.95") -> tuple[float, ...]:
        """How far noise moves each average, at ``confidence``."""
        return self.aggregation.margins(confidence)

    def __str__(self) -> str:
        off = ", ".join(f"±{margin:,.3g}" for margin in self.margins())
        return "\n".join(
            [
                f"AGGREGATE of {self.table} in {self.aggregation.blocks} blocks",
                f"price:  {self.loss}, whatever the function is",
                "moved:  one unit moves the outputs of one block, within their bounds",
                f"margin: {off} of the noise (95 %)",
                f"takes:  {self.limits.duration_s(self.aggregation.blocks):,.0f} s",
            ]
        )


def aggregate(
    curator: Curator,
    function: Callable[[Any], Any],
    table: str,
    aggregation: Aggregation,
    limits: Limits,
) -> Aggregated:
    """Charge, read, compute, add noise, store, show; the same function again is free."""
    code, name = _take_code(function), function.__name__
    found = _find_table(curator, table)
    compiled = curator.engine.compile_rows(found)  # what cannot be run is not paid for
    digest = hashlib.sha256(code).hexdigest()
    same = {
        "aggregate": [digest, name, table, aggregation.blocks, str(aggregation.noise)],
        "bounds": [[str(low), str(high)] for low, high in aggregation.bounds],
        "limits": [limits.seconds, limits.memory_bytes],
    }
    wanted = Wanted(
        f"AGGREGATE {name} OF {table} IN {aggregation.blocks} BLOCKS (code {digest[:16]})",
        {"epsilon": str(aggregation.noise.epsilon)},
        same,
        aggregation.loss,
        tables=[found.name],
    )
    names = [column.name for column in found.columns]

    def compute(version: str) -> bytes:
        return _compute(curator, compiled, aggregation, names, (code, limits), version)

    told = release_once(curator, wanted, compute, analyst="curator")
    return _read(aggregation, name, told)


def _compute(
    curator: Curator,
    compiled: Any,
    aggregation: Aggregation,
    names: Sequence[str],
    work: tuple[bytes, Limits],
    version: str,
) -> bytes:
    """The noisy sums, ready to be stored; of what fails nothing is said."""
    code, limits = work
    with suppress(Exception):
        truth = curator.engine.run_rows(compiled)

        def run(blocks: Sequence[Sequence[Any]]) -> list[list[float] | None]:
            frames = [
                pa.table([pa.array(list(c)) for c in one], names=list(names)) for one in blocks
            ]
            return run_blocks(code, frames, limits)

        totals = release_blocks(aggregation, truth, compiled.columns.units, run)
        if curator.engine.data_version() == version:
            return canonical_json({"Aggregated": {"totals": totals}}).encode()
    raise describe_failure()


def _read(aggregation: Aggregation, name: str, told: Told) -> Aggregated:
    totals = json.loads(told.body)["Aggregated"]["totals"]
    return Aggregated(aggregation.read(totals), name, aggregation, told.id, told.replayed)


# --- blocks --------------------------------------------------------------------------------------


def run_blocks(code: bytes, frames: Sequence[pa.Table], limits: Limits) -> list[list[float] | None]:
    """What the function says of each block; None where it says nothing of use.

    Blocks start in rounds, at fixed times, and the last round is waited for: nothing that a block
    does shortens or lengthens the whole.
    """
    start, slot = time.monotonic(), limits.seconds + _GRACE_S
    found: list[list[float] | None] = []
    with ThreadPoolExecutor(limits.together) as pool:
        for number, first in enumerate(range(0, len(frames), limits.together)):
            some = frames[first : first + limits.together]
            found += pool.map(lambda frame: run_block(code, frame, limits), some)
            wait_until(start + (number + 1) * slot)
    return found


def wait_until(moment: float) -> None:
    """Sleep up to a moment of the monotonic clock."""
    time.sleep(max(0.0, moment - time.monotonic()))


def run_block(code: bytes, frame: pa.Table, limits: Limits) -> list[float] | None:
    """One function of one block in a process of its own, killed when its time is over."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, frame.schema) as writer:
        writer.write_table(frame)
    settings = json.dumps({"code": len(code), "memory_bytes": limits.memory_bytes}).encode()
    sent = len(settings).to_bytes(8, "big") + settings + code + sink.getvalue().to_pybytes()
    with tempfile.TemporaryDirectory() as empty, suppress(Exception):
        done = subprocess.run(  # noqa: S603 (our own program, by this interpreter)
            [sys.executable, "-I", str(_PROGRAM)],
            input=sent,
            capture_output=True,
            timeout=limits.seconds,
            cwd=empty,
            env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            check=True,
        )
        told = json.loads(done.stdout)
        return [float(value) for value in told]
    return None


# --- what is given -------------------------------------------------------------------------------


def _take_code(function: Callable[[Any], Any]) -> bytes:
    """The function's code, which is all that a fresh process gets of it."""
    plain = (
        isinstance(function, FunctionType)
        and function.__closure__ is None
        and not function.__defaults__
        and not function.__kwdefaults__
        and function.__code__.co_argcount == 1
    )
    if not plain:
        raise InvalidParameter(
            "P4",
            "this is not a function of one argument that stands by itself.",
            why="each block is computed in a fresh process that shares nothing with this one, so "
            "that no block can tell another about its people.",
            fix="write def f(frame): ..., import what it needs inside of it, and use no variable "
            "from outside and no default.",
        )
    return marshal.dumps(function.__code__)


def _find_table(curator: Curator, name: str) -> Table:
    found = curator.schema.tables.get(name) if isinstance(name, str) else None
    if found is not None and found.owners is Owners.ANY:
        raise InvalidParameter(
            "P4",
            f"the rows of table {name!r} have two owners.",
            why="a row of two people would be in the blocks of both, and one of them would move "
            "the blocks of everybody who shares a row with them.",
            fix="aggregate a table in which each row has one owner.",
        )
    bounded = found is not None and (found.by_row or found.max_rows_per_unit is not None)
    if found is None or found.public or not bounded:
        private = [n for n, t in curator.schema.tables.items() if not t.public]
        raise InvalidParameter(
            "P4",
            f"there is no private table {quote_value(name)} with max_rows_per_unit.",
            why="a function is averaged over blocks of the people whose rows a table holds.",
            fix=f"name one of {', '.join(private)}, and declare max_rows_per_unit for it.",
        )
    return found


def make_limits(seconds: int, memory_bytes: int, together: int) -> Limits:
    """The limits, checked."""
    return Limits(
        whole(seconds, name="seconds", least=1),
        whole(memory_bytes, name="memory_bytes", least=2**26),
        whole(together, name="together", least=1),
    )


__all__ = ["AggregateExplanation", "Aggregated", "Limits", "aggregate", "make_limits"]
