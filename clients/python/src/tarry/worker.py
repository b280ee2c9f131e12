"""A worker of threads."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _worker
from ._http import Cancel
from ._worker import NEXT_WAIT, PAUSE, SOON, TOUCHES_PER_TTR, WAIT, checked, delay_after, is_lost, log, reason
from .client import Client
from .errors import Permanent, TarryError
from .types import BackoffLike, Reserved, Seconds, seconds


class Worker:
    """Runs a function for each job of some topics, in up to ``concurrency`` threads.

    When the function returns, the job is finished; when it raises, the job is released with the exception as its
    reason, or buried if the exception is Permanent. An exception that is no Exception, such as that of
    ``sys.exit``, also ends its job alone; ``stop`` ends the worker. While the function runs, the worker prolongs the
    reservation, so a short ``ttr`` is enough: it is how long a job waits after its worker died.

    ``backoff`` is how long a failed job waits; without it, as the job or its topic says. When a function has run for
    ``timeout``, its job is released; the function cannot be stopped, and keeps its thread until it ends. After
    SIGTERM or ``stop`` the worker takes no more jobs and waits up to ``grace`` for the functions that run.
    """

    def __init__(
        self,
        client: Client,
        topics: Union[str, Sequence[str]],
        function: Callable[[Reserved], object],
        *,
        concurrency: int = 1,
        ttr: Optional[Seconds] = None,
        timeout: Optional[Seconds] = None,
        backoff: Optional[BackoffLike] = None,
        consumer: Optional[str] = None,
        grace: Seconds = 30.0,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}; it must be at least 1")
        self._client = client
        self._topics = topics
        self._function = function
        self._concurrency = concurrency
        self._ttr = None if ttr is None else seconds(ttr, "ttr")
        self._timeout = _worker.timeout_of(timeout)
        self._backoff = checked(backoff)
        self._consumer = consumer
        self._grace = seconds(grace, "grace")
        self._wait = Cancel()  # of the wait for jobs
        self._changed = threading.Condition()
        self._free = concurrency
        self._failure: Optional[BaseException] = None  # for which no jobs can be fetched
        self._held: Dict[str, Tuple[Reserved, float]] = {}  # by token; those whose function runs, and when it times out

    def stop(self) -> None:
        """Take no more jobs. It returns at once; ``run`` returns when the functions have ended."""
        # On a thread of its own, because a signal handler may interrupt a thread that holds a lock.
        threading.Thread(target=self._stop, daemon=True).start()

    def _stop(self) -> None:
        self._wait.cancel()
        with self._changed:
            self._changed.notify_all()

    def run(self) -> None:
        """Work until ``stop`` is called or, in the main thread, a SIGTERM or SIGINT comes. What is wrong with the
        worker's own arguments is raised."""
        before = self._handle_signals()
        fetcher = threading.Thread(target=self._fetch, name="tarry-fetch", daemon=True)
        heart = threading.Thread(target=self._heartbeat, name="tarry-heartbeat", daemon=True)
        try:
            fetcher.start()
            heart.start()
            self._wait.cancelled.wait()
            fetcher.join()
            end = time.monotonic() + self._grace
            with self._changed:
                while self._free < self._concurrency and time.monotonic() < end:
                    self._changed.wait(end - time.monotonic())
                if self._free < self._concurrency:
                    log.warning("the grace is over: %d functions still run", self._concurrency - self._free)
                    return
            heart.join()  # it may be releasing a job
            if self._failure is not None:
                raise self._failure
        finally:
            self._stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle_signals(self) -> Dict[int, Any]:
        if threading.current_thread() is not threading.main_thread():
            return {}

        def handle(number: int, frame: Optional[FrameType]) -> None:
            self.stop()

        return {int(n): signal.signal(n, handle) for n in (signal.SIGTERM, signal.SIGINT)}

    @property
    def _stopping(self) -> bool:
        return self._wait.cancelled.is_set()

    def _fetch(self) -> None:
        try:
            self._fetch_jobs()
        except BaseException as e:  # no call could be made: run must not wait for ever
            self._failure = e
            self._stop()

    def _fetch_jobs(self) -> None:
        """Reserve as many jobs as functions may begin, until the worker stops."""
        while not self._stopping:
            with self._changed:
                while self._free == 0 and not self._stopping:
                    self._changed.wait()
                free = self._free
            if self._stopping:
                return
            try:
                jobs = self._client._reserve(self._topics, free, WAIT, self._ttr, self._consumer, self._wait, SOON)
            except TarryError as e:
                if not self._stopping:
                    log.warning("no job could be reserved: %s", e)
                    self._wait.cancelled.wait(PAUSE)
                continue
            self._begin(jobs)

    def _begin(self, jobs: List[Reserved]) -> None:
        for job in jobs:
            with self._changed:
                self._free -= 1
            self._hold(job)
            thread = threading.Thread(target=self._work, args=(job,), name="tarry-work", daemon=True)
            try:
                thread.start()
            except RuntimeError as e:  # there are too many
                self._drop(job)
                self._end(job, e)
                self._leave()

    def _hold(self, job: Reserved) -> None:
        with self._changed:
            self._held[job.token] = job, time.monotonic() + self._timeout
            self._changed.notify_all()

    def _drop(self, job: Reserved) -> bool:
        """Prolong the reservation no more; the result says whether the job was still held."""
        with self._changed:
            return self._held.pop(job.token, None) is not None

    def _leave(self) -> None:
        with self._changed:
            self._free += 1
            self._changed.notify_all()

    def _work(self, job: Reserved) -> None:
        """Do a job, and those that are reserved as one is finished."""
        try:
            next: Optional[Reserved] = job
            while next is not None:
                next = self._work_on(next)
        finally:
            self._leave()

    def _work_on(self, job: Reserved) -> Optional[Reserved]:
        failure: Optional[BaseException] = None
        held = False
        try:
            self._function(job)
        except BaseException as e:  # also sys.exit: it must not leave a job that is prolonged for ever
            failure = e
        finally:
            held = self._drop(job)
        return self._end(job, failure) if held else None

    def _end(
        self, job: Reserved, failure: Optional[BaseException], client: Optional[Client] = None
    ) -> Optional[Reserved]:
        """Do to the job what came of its function; the result is the next one, if one came soon."""
        client = client or self._client
        try:
            if failure is None:
                return self._finish(job)
            if isinstance(failure, Permanent):
                log.warning("job %r is buried: %s", job.id, failure)
                client.bury(job, reason=reason(failure))
            else:
                log.warning("job %r has failed: %s", job.id, failure, exc_info=failure)
                client.release(job, delay=delay_after(self._backoff, job), reason=reason(failure))
        except TarryError as e:
            log.warning("the end of job %r could not be told: %s", job.id, e)
        return None

    def _finish(self, job: Reserved) -> Optional[Reserved]:
        """Finish the job and take the next one. To wait longer for one is left to the thread that fetches."""
        if self._stopping:
            self._client.finish(job)
            return None
        jobs, finished = self._client.finish_and_reserve(
            [job], self._topics, wait=NEXT_WAIT, ttr=self._ttr, consumer=self._consumer
        )
        for next in jobs:
            self._hold(next)
        if finished[0] is not None:
            log.warning("the end of job %r could not be told: %s", job.id, finished[0])
        return jobs[0] if jobs else None

    def _heartbeat(self) -> None:
        """Prolong the reservations whose functions run, until all functions have ended or timed out."""
        due: Dict[str, float] = {}
        while True:
            now = time.monotonic()
            with self._changed:
                if self._stopping and self._free == self._concurrency:
                    return
                held = dict(self._held)
                due = {t: due.get(t, now + j.ttr / TOUCHES_PER_TTR) for t, (j, _) in held.items()}
                at = {t: min(due[t], end) for t, (_, end) in held.items()}
                late = [t for t in at if at[t] <= now]
                if not late:
                    self._changed.wait(min(at.values()) - now if at else None)
                    continue
            for token in late:
                job, end = held[token]
                due[token] = time.monotonic() + job.ttr / TOUCHES_PER_TTR
                if end <= now:
                    self._time_out(job)
                else:
                    self._touch(job)

    def _within(self, job: Reserved) -> Client:
        """A node that is silent must not hold up the touches of other jobs for long."""
        return self._client.within(max(job.ttr / TOUCHES_PER_TTR, 0.1))

    def _touch(self, job: Reserved) -> None:
        try:
            self._within(job).touch(job, job.ttr)
        except TarryError as e:
            if not is_lost(e):
                log.warning("the reservation of job %r could not be prolonged: %s", job.id, e)
            elif self._drop(job):
                log.warning("the reservation of job %r is lost: what its function does is not recorded", job.id)

    def _time_out(self, job: Reserved) -> None:
        if self._drop(job):
            self._end(job, _worker.timed_out(self._timeout), self._within(job))
