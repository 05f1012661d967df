"""COUNT, SUM and AVG of 1,000 groups by Tumult Analytics, for ``bench.spark --tumult``.

Run by the Python of an environment that has ``tmlt.analytics``; prints, every few seconds and after
each answer, the seconds of CPU since the session was opened and how many aggregates are answered.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

EPSILON = 3
SECONDS = 5.0


def spent() -> float:
    """Seconds of CPU of this process, of Spark's Java, and of all that both have started."""
    ticks, left = 0, [os.getpid()]
    while left:
        pid = left.pop()
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
            for task in Path(f"/proc/{pid}/task").iterdir():
                left += map(int, (task / "children").read_text().split())
    return ticks / os.sysconf("SC_CLK_TCK")


def main(path: str) -> None:
    from pyspark.sql import SparkSession
    from tmlt.analytics import (
        AddRowsWithID,
        KeySet,
        MaxRowsPerID,
        PureDPBudget,
        QueryBuilder,
        Session,
    )

    with tempfile.TemporaryDirectory() as folder:
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.driver.memory", "2g")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.warehouse.dir", folder)
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        rows = spark.read.parquet(path).select("user_id", "num", "val")
        session = Session.from_dataframe(
            PureDPBudget(EPSILON), "visits", rows, AddRowsWithID("user_id")
        )
        keys = KeySet.from_dict({"num": list(range(1000))})
        bounded = QueryBuilder("visits").enforce(MaxRowsPerID(10)).groupby(keys)
        before, answered = spent(), 0

        def tell() -> None:
            print(json.dumps([spent() - before, answered]), flush=True)

        def tell_often() -> None:
            while not ended.wait(SECONDS):
                tell()

        ended = threading.Event()
        threading.Thread(target=tell_often, daemon=True).start()
        for query in (
            bounded.count(),
            bounded.sum("val", low=0.0, high=5000.0),
            bounded.average("val", low=0.0, high=5000.0),
        ):
            session.evaluate(query, PureDPBudget(1)).collect()
            answered += 1
            tell()
        ended.set()


if __name__ == "__main__":
    main(sys.argv[1])
