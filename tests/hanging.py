"""The end of a test that hangs: where each thread stands is shown, and its process ends.

What tests wait for has an end of its own (``patience``); this is for what nobody thought of.  One
test must not keep all others from being told: of parallel workers the other goes on, and says which
test the one that ended was in.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Generator

import pytest
from patience import PATIENCE_S

HANGS_S = 1.5 * PATIENCE_S
"""Longer than any single wait; a soak may take longer."""


class Watch:
    """A timer around each test, its fixtures included, also while a failure is cleaned up."""

    def __init__(self, limit_s: float = HANGS_S) -> None:
        self._limit_s = limit_s
        self._shown = os.dup((sys.__stderr__ or sys.stderr).fileno())  # before it is captured
        self._watching = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._watching = item.get_closest_marker("soak") is None
        self._start()
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self) -> None:
        """A failure stops the timer, for whoever looks at it with a debugger: nobody does."""
        self._start()

    def _start(self) -> None:
        if self._watching:
            faulthandler.dump_traceback_later(self._limit_s, file=self._shown, exit=True)
