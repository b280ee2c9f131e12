"""A worker for asyncio."""

from __future__ import annotations

import asyncio
import math
import signal
from typing import Any, Awaitable, Callable, List, Optional, Sequence, Set, Union

from . import _worker
from ._worker import NEXT_WAIT, PAUSE, SOON, TOUCHES_PER_TTR, WAIT, checked, delay_after, is_lost, log, reason
from .aio import AsyncClient
from .errors import Permanent, TarryError
from .types import BackoffLike, Reserved, Seconds, seconds


class AsyncWorker:
    """Runs a coroutine function for each job of some topics, in up to ``concurrency`` tasks.

    When the function returns, the job is finished; when it raises, the job is released with the exception as its
    reason, or buried if the exception is Permanent. An exception that is no Exception, such as that of
    ``sys.exit``, also ends its job alone; ``stop`` ends the worker. While the function runs, the worker prolongs the
    reservation; when the reservation is lost, the function is cancelled. So it is when it has run for ``timeout``,
    and its job is then released.

    ``backoff`` is how long a failed job waits; without it, as the job or its topic says. After SIGTERM or
    ``stop`` the worker takes no more jobs and waits up to ``grace`` for the functions that run; then it cancels
    them and releases their jobs.
    """

    def __init__(
        self,
        client: AsyncClient,
        topics: Union[str, Sequence[str]],
        function: Callable[[Reserved], Awaitable[object]],
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
        self._stopping = False
        self._fetcher: Optional[asyncio.Task[None]] = None
        self._running: Set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Take no more jobs. It returns at once; ``run`` returns when the functions have ended."""
        self._stopping = True
        if self._fetcher is not None:
            self._fetcher.cancel()

    async def run(self, *, signals: bool = True) -> None:
        """Work until ``stop`` is called or, with ``signals``, a SIGTERM or SIGINT comes."""
        loop = asyncio.get_running_loop()
        handled = (signal.SIGTERM, signal.SIGINT) if signals else ()
        for number in handled:
            loop.add_signal_handler(number, self.stop)
        try:
            self._fetcher = asyncio.ensure_future(self._fetch())
            if self._stopping:
                self._fetcher.cancel()
            await asyncio.wait({self._fetcher})
            if not self._fetcher.cancelled():
                self._fetcher.result()
            await self._finish_running()
        except asyncio.CancelledError:
            self.stop()
            await self._finish_running()
            raise
        finally:
            for number in handled:
                loop.remove_signal_handler(number)

    async def _finish_running(self) -> None:
        if not self._running:
            return
        _, late = await asyncio.wait(set(self._running), timeout=self._grace)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def _fetch(self) -> None:
        """Reserve as many jobs as functions may begin, until the worker stops."""
        while not self._stopping:
            free = self._concurrency - len(self._running)
            if free == 0:
                await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                continue
            try:
                jobs = await self._client._reserve(self._topics, free, WAIT, self._ttr, self._consumer, SOON)
            except TarryError as e:
                log.warning("no job could be reserved: %s", e)
                await asyncio.sleep(PAUSE)
                continue
            self._begin(jobs)

    def _begin(self, jobs: List[Reserved]) -> None:
        for job in jobs:
            task = asyncio.ensure_future(self._work(job))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _work(self, job: Reserved) -> None:
        """Do a job, and those that are reserved as one is finished."""
        next: Optional[Reserved] = job
        while next is not None:
            next = await self._work_on(next)

    async def _work_on(self, job: Reserved) -> Optional[Reserved]:
        function = asyncio.ensure_future(self._call(job))
        heart = asyncio.ensure_future(self._heartbeat(job))
        limit = None if self._timeout == math.inf else self._timeout
        try:
            await asyncio.wait({function, heart}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the grace is over
            await _cancelled(function, heart)
            await self._end(job, TimeoutError("the worker stopped before the function had ended"))
            return None
        if heart.done() and not function.done():
            log.warning("the reservation of job %r is lost: its function is cancelled", job.id)
            await _cancelled(function)
            return None
        late = not function.done()
        await _cancelled(heart)
        if late:
            await _cancelled(function)
        failure = asyncio.CancelledError("cancelled") if function.cancelled() else function.result()
        if late and failure is not None and not isinstance(failure, Permanent):
            failure = _worker.timed_out(self._timeout)
        return await self._end(job, failure)

    async def _call(self, job: Reserved) -> Optional[BaseException]:
        """Run the function; the result is what it raised. A SystemExit that leaves a task would end the event loop."""
        try:
            await self._function(job)
        except asyncio.CancelledError:
            raise
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt):
                self.stop()
            return e
        return None

    async def _end(self, job: Reserved, failure: Optional[BaseException]) -> Optional[Reserved]:
        """Do to the job what came of its function; the result is the next one, if one came soon."""
        try:
            if failure is None:
                return await self._finish(job)
            if isinstance(failure, Permanent):
                log.warning("job %r is buried: %s", job.id, failure)
                await self._client.bury(job, reason=reason(failure))
            else:
                log.warning("job %r has failed: %s", job.id, failure, exc_info=failure)
                await self._client.release(job, delay=delay_after(self._backoff, job), reason=reason(failure))
        except TarryError as e:
            log.warning("the end of job %r could not be told: %s", job.id, e)
        return None

    async def _finish(self, job: Reserved) -> Optional[Reserved]:
        """Finish the job and take the next one. To wait longer for one is left to the task that fetches."""
        if self._stopping:
            await self._client.finish(job)
            return None
        jobs, finished = await self._client.finish_and_reserve(
            [job], self._topics, wait=NEXT_WAIT, ttr=self._ttr, consumer=self._consumer
        )
        if finished[0] is not None:
            log.warning("the end of job %r could not be told: %s", job.id, finished[0])
        return jobs[0] if jobs else None

    async def _heartbeat(self, job: Reserved) -> None:
        """Prolong the reservation; it returns when the reservation is lost."""
        while True:
            await asyncio.sleep(job.ttr / TOUCHES_PER_TTR)
            try:
                await self._client.touch(job, job.ttr)
            except TarryError as e:
                if is_lost(e):
                    return
                log.warning("the reservation of job %r could not be prolonged: %s", job.id, e)


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
