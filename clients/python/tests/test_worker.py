"""Workers against a queue that is a list."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
import unittest
import unittest.mock
from typing import Any, Dict, List, Optional, Set, Tuple

from tarry import AsyncWorker, Permanent, Worker
from tarry._worker import NEXT_WAIT
from tarry.errors import error
from tarry.types import Reserved


def job(id: str, ttr: float = 60, attempts: int = 1) -> Reserved:
    return Reserved(id=id, topic="t", token="token-" + id, ttr=ttr, attempts=attempts, body=id)


class Queue:
    """Hands out jobs, and records what was done to them."""

    def __init__(self, *jobs: Reserved) -> None:
        self.jobs = list(jobs)
        self.done: List[Tuple[Any, ...]] = []
        self.asked: List[int] = []
        self.lost = False
        self.together = 0  # finishes that took the next job
        self.waits: Set[float] = set()  # of these

    def take(self, max: int) -> List[Reserved]:
        self.asked.append(max)
        taken, self.jobs = self.jobs[:max], self.jobs[max:]
        return taken

    def ends(self) -> Dict[str, Tuple[Any, ...]]:
        return {d[1]: d for d in self.done if d[0] != "touch"}


class Client(Queue):
    def _reserve(self, topics: Any, max: int, wait: float, ttr: Any, consumer: Any, cancel: Any, soon: float) -> List[Reserved]:
        taken = self.take(max)
        if not taken:
            cancel.cancelled.wait(0.01)
        return taken

    def within(self, limit: float) -> "Client":
        return self

    def finish(self, j: Reserved) -> None:
        self.done.append(("finish", j.id))

    def finish_and_reserve(self, jobs: List[Reserved], topics: Any, *, wait: float, ttr: Any, consumer: Any) -> Any:
        self.done.append(("finish", jobs[0].id))
        self.together += 1
        self.waits.add(wait)
        return self.take(1), [None]

    def release(self, j: Reserved, delay: Optional[float], reason: str) -> None:
        self.done.append(("release", j.id, delay, reason))

    def bury(self, j: Reserved, reason: str) -> None:
        self.done.append(("bury", j.id, reason))

    def touch(self, j: Reserved, ttr: float) -> None:
        self.done.append(("touch", j.id))
        if self.lost:
            raise error("stale_token", "the reservation has ended")


class AsyncClient(Queue):
    async def _reserve(self, topics: Any, max: int, wait: float, ttr: Any, consumer: Any, soon: float) -> List[Reserved]:
        taken = self.take(max)
        if not taken:
            await asyncio.sleep(0.01)
        return taken

    async def finish(self, j: Reserved) -> None:
        self.done.append(("finish", j.id))

    async def finish_and_reserve(self, jobs: List[Reserved], topics: Any, *, wait: float, ttr: Any, consumer: Any) -> Any:
        self.done.append(("finish", jobs[0].id))
        self.together += 1
        self.waits.add(wait)
        return self.take(1), [None]

    async def release(self, j: Reserved, delay: Optional[float], reason: str) -> None:
        self.done.append(("release", j.id, delay, reason))

    async def bury(self, j: Reserved, reason: str) -> None:
        self.done.append(("bury", j.id, reason))

    async def touch(self, j: Reserved, ttr: float) -> None:
        self.done.append(("touch", j.id))
        if self.lost:
            raise error("stale_token", "the reservation has ended")


ENDS = {
    "fine": ("finish", "fine"),
    "fails": ("release", "fails", 9.0, "no route"),
    "never": ("bury", "never", "no such number"),
    "exits": ("release", "exits", 1.0, "SystemExit: 3"),
}


def judge(id: str) -> None:
    if id == "fails":
        raise ValueError("no route")
    if id == "never":
        raise Permanent("no such number")
    if id == "exits":
        sys.exit(3)


class WorkerTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def until(self, ok: Any) -> None:
        end = time.monotonic() + 30
        while not ok():
            self.assertLess(time.monotonic(), end, "it does not happen")
            time.sleep(0.005)

    def run_worker(self, client: Client, function: Any, **options: Any) -> Worker:
        worker = Worker(client, "t", function, **options)  # type: ignore[arg-type]
        thread = threading.Thread(target=worker.run)
        thread.start()

        def end() -> None:
            worker.stop()
            thread.join()

        self.addCleanup(end)
        return worker

    def test_jobs_are_finished_released_and_buried(self) -> None:
        client = Client(job("fine"), job("fails", attempts=2), job("never"), job("exits"))
        self.run_worker(client, lambda j: judge(j.id), concurrency=2, backoff=[1, 9])
        self.until(lambda: len(client.done) == 4)
        self.assertEqual(client.ends(), ENDS)
        self.assertLessEqual(max(client.asked), 2)

    def test_a_finish_takes_the_next_job(self) -> None:
        client = Client(*(job(str(n)) for n in range(5)))
        self.run_worker(client, lambda j: None)
        self.until(lambda: len(client.done) == 5)
        self.assertEqual(client.done, [("finish", str(n)) for n in range(5)])
        self.assertEqual(client.together, 5)
        self.assertEqual(client.waits, {NEXT_WAIT})

    def test_a_stop_lets_functions_end_and_takes_no_more(self) -> None:
        client = Client(job("a"))
        begun, go_on = threading.Event(), threading.Event()

        def function(j: Reserved) -> None:
            begun.set()
            go_on.wait()

        worker = Worker(client, "t", function)  # type: ignore[arg-type]
        thread = threading.Thread(target=worker.run)
        thread.start()
        begun.wait()
        worker.stop()
        client.jobs.append(job("b"))
        thread.join(0.05)
        self.assertTrue(thread.is_alive(), "the function still runs")
        go_on.set()
        thread.join()
        self.assertEqual(client.done, [("finish", "a")])
        self.assertEqual(len(client.jobs), 1)

    def test_grace_has_an_end(self) -> None:
        client = Client(job("a"))
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        worker = Worker(client, "t", lambda j: go_on.wait(), grace=0.01)  # type: ignore[arg-type]
        thread = threading.Thread(target=worker.run)
        thread.start()
        self.until(lambda: not client.jobs)
        worker.stop()
        thread.join()
        self.assertEqual(client.done, [])

    def test_the_reservation_is_prolonged_while_the_function_runs(self) -> None:
        client = Client(job("a", ttr=0.03))
        self.run_worker(client, lambda j: self.until(lambda: len(client.done) >= 3))
        self.until(lambda: ("finish", "a") in client.done)
        self.assertGreaterEqual(client.done.count(("touch", "a")), 3)

    def test_after_the_timeout_the_job_is_released_and_prolonged_no_more(self) -> None:
        client = Client(job("a", ttr=0.03))
        self.run_worker(client, lambda j: self.until(client.ends), timeout=0.05)
        self.until(client.ends)
        self.assertEqual(client.ends(), {"a": ("release", "a", None, "timed out after 0.05 s")})
        self.assertEqual(client.done[-1][0], "release")
        self.assertRaises(ValueError, Worker, client, "t", print, timeout=0)

    def test_a_job_for_which_there_is_no_thread_is_released(self) -> None:
        client = Client(job("a"))
        start = threading.Thread.start

        def refuse(thread: threading.Thread) -> None:
            if thread.name == "tarry-work":
                raise RuntimeError("can't start new thread")
            start(thread)

        with unittest.mock.patch.object(threading.Thread, "start", refuse):
            self.run_worker(client, print)
            self.until(client.ends)
        self.assertEqual(client.ends(), {"a": ("release", "a", None, "can't start new thread")})

    def test_a_worker_that_cannot_reserve_raises(self) -> None:
        client = Client()
        with unittest.mock.patch.object(client, "_reserve", side_effect=TypeError("topics: give names")):
            worker = Worker(client, 5, print)  # type: ignore[arg-type]
            self.assertRaisesRegex(TypeError, "topics: give names", worker.run)

    def test_a_lost_job_is_left_alone(self) -> None:
        client = Client(job("a", ttr=0.03), job("b"))
        client.lost = True
        self.run_worker(client, lambda j: self.until(lambda: j.id == "b" or client.done))
        self.until(lambda: ("finish", "b") in client.done)
        self.assertEqual(client.ends(), {"b": ("finish", "b")})

    def test_sigterm_stops_it(self) -> None:
        client = Client(job("a"))
        before = signal.getsignal(signal.SIGTERM)
        worker = Worker(client, "t", lambda j: os.kill(os.getpid(), signal.SIGTERM))  # type: ignore[arg-type]
        worker.run()
        self.assertEqual(client.done, [("finish", "a")])
        self.assertEqual(signal.getsignal(signal.SIGTERM), before)


class AsyncWorkerTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    async def until(self, ok: Any) -> None:
        end = time.monotonic() + 30
        while not ok():
            self.assertLess(time.monotonic(), end, "it does not happen")
            await asyncio.sleep(0.005)

    async def test_jobs_are_finished_released_and_buried(self) -> None:
        client = AsyncClient(job("fine"), job("fails", attempts=2), job("never"), job("exits"))

        async def function(j: Reserved) -> None:
            judge(j.id)

        worker = AsyncWorker(client, "t", function, concurrency=2, backoff=[1, 9])  # type: ignore[arg-type]
        running = asyncio.ensure_future(worker.run(signals=False))
        await self.until(lambda: len(client.done) == 4)
        worker.stop()
        await running
        self.assertEqual(client.ends(), ENDS)

    async def test_a_finish_takes_the_next_job(self) -> None:
        client = AsyncClient(*(job(str(n)) for n in range(5)))

        async def function(j: Reserved) -> None:
            pass

        worker = AsyncWorker(client, "t", function)  # type: ignore[arg-type]
        running = asyncio.ensure_future(worker.run(signals=False))
        await self.until(lambda: len(client.done) == 5)
        worker.stop()
        await running
        self.assertEqual(client.done, [("finish", str(n)) for n in range(5)])
        self.assertEqual(client.together, 5)
        self.assertEqual(client.waits, {NEXT_WAIT})

    async def test_a_function_whose_job_is_lost_is_cancelled(self) -> None:
        client = AsyncClient(job("a", ttr=0.03))
        client.lost = True
        cancelled = asyncio.Event()

        async def function(j: Reserved) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.set()
                raise

        worker = AsyncWorker(client, "t", function)  # type: ignore[arg-type]
        running = asyncio.ensure_future(worker.run(signals=False))
        await asyncio.wait_for(cancelled.wait(), 30)
        worker.stop()
        await running
        self.assertEqual(client.ends(), {})

    async def test_after_the_timeout_the_function_is_cancelled_and_the_job_released(self) -> None:
        client = AsyncClient(job("a", ttr=0.03), job("b"))

        async def function(j: Reserved) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if j.id == "a":
                    raise

        worker = AsyncWorker(client, "t", function, timeout=0.05)  # type: ignore[arg-type]
        running = asyncio.ensure_future(worker.run(signals=False))
        await self.until(lambda: len(client.ends()) == 2)
        worker.stop()
        await running
        ends = {"a": ("release", "a", None, "timed out after 0.05 s"), "b": ("finish", "b")}
        self.assertEqual(client.ends(), ends)

    async def test_a_function_that_is_no_coroutine_function_releases_its_job(self) -> None:
        client = AsyncClient(job("a"))
        worker = AsyncWorker(client, "t", lambda j: None)  # type: ignore[arg-type, return-value]
        running = asyncio.ensure_future(worker.run(signals=False))
        await self.until(client.ends)
        worker.stop()
        await running
        self.assertEqual([d[:2] for d in client.done], [("release", "a")])

    async def test_after_the_grace_functions_are_cancelled_and_jobs_released(self) -> None:
        client = AsyncClient(job("a"))
        begun = asyncio.Event()

        async def function(j: Reserved) -> None:
            begun.set()
            await asyncio.sleep(60)

        worker = AsyncWorker(client, "t", function, grace=0.01)  # type: ignore[arg-type]
        running = asyncio.ensure_future(worker.run(signals=False))
        await asyncio.wait_for(begun.wait(), 30)
        worker.stop()
        await running
        self.assertEqual([d[:2] for d in client.done], [("release", "a")])
