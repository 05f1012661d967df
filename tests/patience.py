"""How long tests wait for what must happen.

A loaded machine is slow, and slow is not wrong: no test is decided by the default time-out of a
client, and what is waited for is a condition.  This is only the end of waiting for one that never
comes, so it costs nothing to be generous.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 600.0
PATIENCE_MS = 120_000
"""In a browser, where each of many steps waits."""


def wait_until(true: Callable[[], object], *, pause_s: float = 0.02) -> None:
    """Return when ``true()`` is."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > end:
            raise TimeoutError("what was waited for did not happen")
        time.sleep(pause_s)
