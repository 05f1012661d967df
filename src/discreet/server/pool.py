"""Engine processes: started, given one statement at a time, killed when they take too long.

A process that fails or is killed is replaced; its question was charged and stays
charged.  A place in the pool becomes free at the deadline, not when the engine
is done: otherwise the next question would start, and end, at a moment that
depends on the data of the last one.  For the same reason a process that dies
over a question counts as there, and is not replaced, until it is given back.

A mistake of our own in starting one is told to whoever waits: nobody waits for
a process that may never come, and the next is tried all the same.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress

from discreet.server.worker import READY

START_TIME_S = 120.0
_STOP_TIME_S = 2.0
_RETRY_S = 1.0
Started = Callable[[], None]
Failed = Callable[[Exception], None]


class Gone(Exception):
    """The process did not answer: it failed, was killed, or took too long."""


class Worker:
    """One engine process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._killed = False
        self.idle = asyncio.Event()
        """Whether it has no question; until then nobody is told what became of it."""
        self.idle.set()

    @classmethod
    async def start(cls, directory: str, memory_bytes: int) -> Worker:
        """A process that has opened the sources of a session."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "discreet.server.worker", directory, str(memory_bytes)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent, which then stops its workers
        )
        worker = cls(process)
        try:
            if await worker._receive(START_TIME_S) != READY:
                raise Gone
        except BaseException:
            await worker.stop()
            raise
        return worker

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.returncode is None and not self._killed

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    async def answer(self, question: bytes, time_limit_s: float) -> bytes:
        """The answer's bytes, empty if the engine could not; :class:`Gone` kills the process."""
        stdin = self._process.stdin
        if stdin is None:
            raise Gone
        try:
            stdin.write(len(question).to_bytes(4, "big") + question)
            return await self._receive(time_limit_s)
        except BaseException:
            self._kill()
            raise

    async def _receive(self, time_limit_s: float) -> bytes:
        stdout = self._process.stdout
        if stdout is None:
            raise Gone
        try:
            async with asyncio.timeout(time_limit_s):
                length = int.from_bytes(await stdout.readexactly(4), "big")
                return await stdout.readexactly(length)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            raise Gone from None

    async def wait(self) -> None:
        """Wait until the process has ended."""
        await self._process.wait()

    def _kill(self) -> None:
        self._killed = True  # at once: that it has ended is noticed a little later
        with suppress(ProcessLookupError):
            self._process.kill()

    async def stop(self) -> None:
        """Let it end by itself, then make it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_TIME_S if self.alive else 10):
                await self._process.wait()
        except TimeoutError:
            self._kill()
            await self._process.wait()


class Pool:
    """The engine processes of one dataset."""

    def __init__(
        self,
        directory: str,
        *,
        size: int,
        memory_bytes: int,
        started: Started = lambda: None,
        failed: Failed = lambda _: None,
    ) -> None:
        self._directory = directory
        self._size = size
        self._memory = memory_bytes
        self._started = started
        self._failed = failed
        self._idle: asyncio.Queue[Worker | None] = asyncio.Queue()
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._workers: set[Worker] = set()
        self._closing = False

    @property
    def ready(self) -> bool:
        """Whether some process can be asked."""
        return any(worker.alive or not worker.idle.is_set() for worker in self._workers)

    @property
    def pids(self) -> list[int]:
        """The processes that are there."""
        return [worker.pid for worker in self._workers if worker.alive]

    def open(self) -> None:
        """Start the processes, in the background."""
        for _ in range(self._size):
            self._run(self._keep())

    async def take(self) -> Worker:
        """A process that is free; waits for one.  :class:`Gone` if none is there, nor is to come.

        Of none it is known that it is to come once a mistake has kept the last from starting.
        """
        self._waiting += 1
        try:
            while True:
                worker = await self._idle.get()
                if worker is None and not self._workers:
                    raise Gone
                if worker is not None and worker.alive:
                    worker.idle.clear()
                    return worker
        finally:
            self._waiting -= 1

    def give(self, worker: Worker) -> None:
        """The process is free again; one that is dead is replaced by its keeper."""
        worker.idle.set()
        if worker.alive:
            self._idle.put_nowait(worker)

    async def _keep(self) -> None:
        """One place in the pool: a process, and another whenever it ends, for whatever reason."""
        while not self._closing:
            try:
                await self._keep_one()
            except Exception as error:  # a mistake: told to who waits, and tried again
                with suppress(Exception):  # what cannot be logged ends no keeper
                    self._failed(error)
                self._end_waiting()
                await asyncio.sleep(_RETRY_S)

    async def _keep_one(self) -> None:
        """A process, from its start to its end."""
        try:
            worker = await Worker.start(self._directory, self._memory)
        except (Gone, OSError):  # what cannot be opened now may be back later
            await asyncio.sleep(_RETRY_S)
            return
        self._workers.add(worker)
        try:
            self._started()
            self._idle.put_nowait(worker)
            await worker.wait()
            await worker.idle.wait()
        except Exception:  # nobody would notice its end
            await worker.stop()
            raise
        finally:
            if not self._closing:  # else it is stopped there
                self._workers.discard(worker)

    def _end_waiting(self) -> None:
        """Let nobody wait for a process where there is none."""
        if not self._workers:
            for _ in range(self._waiting):
                self._idle.put_nowait(None)

    def _run(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop every process."""
        self._closing = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(w.stop() for w in self._workers), return_exceptions=True)
        self._workers.clear()
