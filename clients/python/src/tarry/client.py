"""The client for threads. The one for asyncio, aio.py, is made from this file by tools/make_aio.py."""

from __future__ import annotations

import math
import os
import ssl
import time
from datetime import datetime
from types import TracebackType
from typing import Literal, Any, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _calls, _dead, _namespaces, _operator, _token, _tokens
from ._calls import UNSET, Page, Request, Unset
from ._dead import DeadReasons, DeadTopics
from ._http import Cancel, Pool
from ._namespaces import Namespace, NamespacePut, Quotas
from ._nodes import Nodes
from ._policy import attempts, wait_end
from ._settings import NewSchedule, PushTarget, Settings
from ._stream import Stream, open_stream
from ._tokens import Identity, Rule, Token, TokenPut
from .errors import TarryError
from .types import (
    Added,
    BackoffLike,
    Changed,
    ChangedFound,
    Clocks,
    DueTopics,
    Explanation,
    Forecast,
    Health,
    History,
    Job,
    JobLike,
    Member,
    NewJob,
    PastRun,
    Pause,
    PlannedRun,
    Rates,
    Rescheduled,
    Reserved,
    Schedule,
    SchedulePut,
    Seconds,
    Stats,
    Swept,
    Topic,
    TopicSettings,
    Verification,
    seconds,
)

T = TypeVar("T")

SHORT_WAIT = 0.05
"""A rest of a wait that is not worth another request."""


class Client:
    """A client of the nodes at ``addresses``: host:port, or URLs with http or https, in a list or separated by commas.

    It asks the leader first and learns the other nodes of the cluster from replies. ``timeout`` bounds one attempt at
    one node, beyond the wait that a reserve asks for; ``patience`` is for how long a call is tried
    again, 0 is one round over the nodes. Threads may share a client. It does not connect before the first call.

    ``token``, or the file ``token_file`` that has one, is sent with each call (docs/tokens.md), without TLS only to
    this machine unless ``token_over_http`` is set. When the file changes, the next call sends the new one.
    """

    def __init__(
        self,
        addresses: Union[str, Sequence[str]],
        *,
        timeout: Seconds = 10.0,
        patience: Seconds = 30.0,
        ssl_context: Optional[ssl.SSLContext] = None,
        token: Optional[str] = None,
        token_file: Union[str, "os.PathLike[str]", None] = None,
        token_over_http: bool = False,
    ) -> None:
        names = ",".join([addresses] if isinstance(addresses, str) else addresses).split(",")
        sent = _token.Token(token, token_file, token_over_http)
        self._nodes = Nodes([name.strip() for name in names], usable=sent.usable)
        self._timeout = seconds(timeout, "timeout")
        self._patience = seconds(patience, "patience")
        self._deadline: Optional[float] = None
        self._pool = Pool(ssl_context, sent)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections. Calls under way are not disturbed."""
        self._pool.close()

    def within(self, limit: Seconds) -> Client:
        """The same client, whose calls end by so many seconds from now, retries and all.

        A call that is cut off raises NotApplied or UnknownOutcome and says that it was the deadline. A reserve
        waits no longer than the deadline allows, and then returns an empty list. A stream has no deadline.
        """
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._deadline = time.monotonic() + seconds(limit, "limit")
        return other

    def _call(self, request: Request[T], cancel: Optional[Cancel] = None) -> T:
        steps = attempts(request, self._nodes, self._timeout, self._patience, self._deadline)
        return self._pool.run(steps, cancel)

    def _batch(self, requests: Sequence[Request[List[Any]]]) -> List[Any]:
        """Make the requests of a batch that is cut into parts. When one fails, its items have its failure and the rest
        is not sent; when it is the first, the batch fails."""
        results: List[Any] = []
        failure: Optional[TarryError] = None
        for request in requests:
            first = len(results)
            if failure is not None:
                results += [_calls.unsent(failure)] * _calls.part_size(request)
                continue
            try:
                part = self._call(request)
            except TarryError as e:
                if first == 0:
                    raise
                failure = _calls.of_part(first, e)
                results += [failure] * _calls.part_size(request)
                continue
            results += [_calls.of_part(first, item) if isinstance(item, TarryError) else item for item in part]
        return results

    # Producing.

    def add(
        self,
        topic: str,
        body: Any,
        *,
        id: Optional[str] = None,
        delay: Optional[Seconds] = None,
        due_at: Optional[datetime] = None,
        ttr: Optional[Seconds] = None,
        priority: Optional[int] = None,
        max_attempts: Optional[int] = None,
        backoff: Optional[BackoffLike] = None,
        headers: Optional[Mapping[str, str]] = None,
        if_exists: Optional[str] = None,
        if_revision: Optional[int] = None,
        if_state: Optional[Sequence[str]] = None,
        expires_at: Optional[datetime] = None,
        push_url: Optional[str] = None,
    ) -> Added:
        """Add a job that is due now, after ``delay`` or at ``due_at``. At ``expires_at`` it is dropped unless somebody has it.
        It is posted to ``push_url`` in a topic whose push permits that.

        Give it an ``id`` of your own and you can call again after UnknownOutcome: while the job
        lives there is only one.
        """
        return self._call(
            _calls.add(
                NewJob(
                    topic, body, id, delay, due_at, ttr, priority, max_attempts, backoff, headers, if_exists,
                    if_revision, if_state, expires_at, push_url,
                )
            )
        )  # fmt: skip

    def add_batch(self, jobs: Iterable[NewJob]) -> List[Union[Added, TarryError]]:
        """Add jobs, up to 1000 in one request. The result has an Added or an error for each.

        When a request fails after the first, its jobs have its error, and those after it are not sent and have NotApplied.
        So it is with the other batches.
        """
        return self._batch([_calls.add_batch(part) for part in _calls.parts(jobs)])

    def add_all(self, jobs: Iterable[NewJob]) -> List[Added]:
        """Add up to 1000 jobs, all of them or none."""
        return self._call(_calls.add_all(jobs))

    def update(
        self,
        id: str,
        *,
        delay: Optional[Seconds] = None,
        due_at: Optional[datetime] = None,
        ttr: Optional[Seconds] = None,
        priority: Optional[int] = None,
        max_attempts: Optional[int] = None,
        backoff: Optional[BackoffLike] = None,
        headers: Optional[Mapping[str, str]] = None,
        body: Any = UNSET,
        expires_at: Union[datetime, Literal["never"], None] = None,
        push_url: Optional[str] = None,
        if_revision: Optional[int] = None,
        if_state: Optional[Sequence[str]] = None,
    ) -> Changed:
        """Change a delayed, ready or dead job in place; what is not given stays. ``backoff=[]``,
        ``headers={}`` and ``push_url=""`` take them away."""
        return self._call(
            _calls.update(
                id,
                _calls.changes_of(
                    delay=delay, due_at=due_at, ttr=ttr, priority=priority, max_attempts=max_attempts, backoff=backoff,
                    headers=headers, body=body, expires_at=expires_at, push_url=push_url,
                    if_revision=if_revision, if_state=if_state,
                ),
            )
        )  # fmt: skip

    def delete(
        self, job: JobLike, *, if_revision: Optional[int] = None, if_state: Optional[Sequence[str]] = None
    ) -> None:
        """Delete a job in any state; with a token only while that reservation lasts."""
        return self._call(_calls.delete(job, if_revision, if_state))

    # Consuming.

    def reserve(
        self,
        topics: Union[str, Sequence[str]],
        *,
        max: int = 1,
        wait: Seconds = 0,
        ttr: Optional[Seconds] = None,
        consumer: Optional[str] = None,
    ) -> List[Reserved]:
        """Wait up to ``wait`` for jobs and reserve up to ``max`` of them. No job in time is an empty list."""
        return self._reserve(topics, max, seconds(wait, "wait"), ttr, consumer, None)

    def _reserve(
        self,
        topics: Union[str, Sequence[str]],
        max: int,
        wait: float,
        ttr: Optional[Seconds],
        consumer: Optional[str],
        cancel: Optional[Cancel],
        soon: float = math.inf,
    ) -> List[Reserved]:
        end = wait_end(wait, self._deadline)
        while True:
            left = end - time.monotonic()
            jobs = self._call(_calls.reserve(topics, max=max, wait=left, ttr=ttr, consumer=consumer, soon=soon), cancel)
            if jobs or end - time.monotonic() <= SHORT_WAIT:
                return jobs
            time.sleep(SHORT_WAIT)  # the node ended the wait early because it stops

    def finish_and_reserve(
        self,
        jobs: Iterable[JobLike],
        topics: Union[str, Sequence[str]],
        *,
        max: int = 1,
        wait: Seconds = 0,
        ttr: Optional[Seconds] = None,
        consumer: Optional[str] = None,
    ) -> Tuple[List[Reserved], List[Optional[TarryError]]]:
        """Finish up to 1000 jobs and then reserve others, in one step: one call and one commit a job while there is work.

        The result has the jobs that are reserved, and None or an error for each job to finish; one that cannot be
        finished does not stop the reserve. The finishes are done at once, but it returns as ``reserve`` does. It
        raises only if it is not known that they are done; if the reserve fails after them, there are no jobs.
        """
        end = wait_end(seconds(wait, "wait"), self._deadline)
        left = end - time.monotonic()
        request = _calls.finish_and_reserve(jobs, topics, max=max, wait=left, ttr=ttr, consumer=consumer)
        taken, finished = self._call(request)
        if not taken and end - time.monotonic() > SHORT_WAIT:
            time.sleep(SHORT_WAIT)  # the node ended the wait early because it stops
            try:
                taken = self._reserve(topics, max, end - time.monotonic(), ttr, consumer, None)
            except TarryError:
                pass  # the next reserve meets it
        return taken, finished

    def stream(
        self,
        topics: Union[str, Sequence[str]],
        *,
        credit: int = 1,
        max: int = 0,
        ttr: Optional[Seconds] = None,
        heartbeat: Seconds = 15,
        release_on_close: bool = False,
        consumer: Optional[str] = None,
    ) -> Stream:
        """Jobs as they become ready, over one connection: iterate over the stream, and close it.

        Up to ``credit`` jobs may be unfinished at a time. When a node stops, the stream goes on with the next one. It ends after
        ``max`` jobs, if that is given. ``release_on_close`` gives unfinished jobs back when the
        connection ends; otherwise they come back when their ``ttr`` ends.
        """
        names = [topics] if isinstance(topics, str) else list(topics)
        return open_stream(
            self._nodes, self._pool, self._timeout, self._patience, names, credit, max, ttr, seconds(heartbeat, "heartbeat"),
            release_on_close, consumer,
        )  # fmt: skip

    def finish(self, job: JobLike) -> None:
        """End a job that was worked on."""
        return self._call(_calls.finish(job))

    def finish_batch(self, jobs: Iterable[JobLike]) -> List[Optional[TarryError]]:
        """Finish jobs, up to 1000 in one request. The result has None or an error for each."""
        return self._batch([_calls.finish_batch(part) for part in _calls.parts(jobs)])

    def delete_batch(self, jobs: Iterable[JobLike]) -> List[Optional[TarryError]]:
        """Delete jobs as ``delete`` does, up to 1000 in one request. The result has None or an error for each."""
        return self._batch([_calls.delete_batch(part) for part in _calls.parts(jobs)])

    def kick_batch(self, ids: Iterable[str]) -> List[Union[Changed, TarryError]]:
        """Make dead or delayed jobs ready, up to 1000 in one request."""
        return self._batch([_calls.kick_batch(part) for part in _calls.parts(ids)])

    def update_batch(self, updates: Mapping[str, Mapping[str, Any]]) -> List[Union[Changed, TarryError]]:
        """Change jobs, up to 1000 in one request. ``updates`` has the arguments of ``update`` by the id of each job,
        such as ``{"a": {"priority": 5}, "b": {"delay": 60}}``."""
        return self._batch([_calls.update_batch(dict(part)) for part in _calls.parts(updates.items())])

    def finish_then(self, job: JobLike, then: Iterable[NewJob]) -> List[Added]:
        """Finish a job and add others in the same step: all of it happens or nothing."""
        return self._call(_calls.finish_then(job, then))

    def touch(self, job: JobLike, ttr: Optional[Seconds] = None) -> Changed:
        """Prolong a reservation: it lasts for ``ttr``, or the job's own, from now."""
        return self._call(_calls.touch(job, ttr))

    def release(
        self,
        job: JobLike,
        *,
        delay: Optional[Seconds] = None,
        priority: Optional[int] = None,
        reason: Optional[str] = None,
    ) -> Changed:
        """Give a reserved job back: after ``delay``, or as its backoff says."""
        return self._call(_calls.release(job, delay, priority, reason))

    def bury(self, job: JobLike, *, priority: Optional[int] = None, reason: Optional[str] = None) -> Changed:
        """Set a reserved job aside until it is kicked."""
        return self._call(_calls.bury(job, priority, reason))

    def kick(self, id: str, *, to_topic: Optional[str] = None) -> Changed:
        """Make a dead or delayed job ready."""
        return self._call(_calls.kick(id, to_topic))

    def move(self, job: JobLike, to: str) -> Changed:
        """Put a job into another topic, in the state in which it is."""
        return self._call(_calls.move(job, to))

    # Looking.

    def get(self, id: str) -> Job:
        """Everything known of a job; NotFound when there is none."""
        return self._call(_calls.get(id))

    def get_batch(self, ids: Sequence[str], *, body: bool = True) -> List[Union[Job, TarryError]]:
        """Jobs by their ids, without their bodies if ``body`` is False. The result has a Job or an
        error for each, in order. It asks again for jobs for which a reply has no room."""
        results = self._call(_calls.get_batch(ids[: _calls.MAX_BATCH], body))
        while len(results) < len(ids):
            more = self._call(_calls.get_batch(ids[len(results) : len(results) + _calls.MAX_BATCH], body))
            results.extend(more)
        return results

    def history(self, id: str) -> History:
        """What happened to a job, as far as its topic keeps histories."""
        return self._call(_calls.history(id))

    def explain(self, id: str) -> Explanation:
        """Why a job is not delivered yet, or was delivered late."""
        return self._call(_calls.explain(id))

    def jobs(
        self,
        topic: Optional[str] = None,
        *,
        state: Optional[str] = None,
        id_prefix: Optional[str] = None,
        reason: Optional[str] = None,
        exact_reason: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        due_from: Optional[datetime] = None,
        due_to: Optional[datetime] = None,
        died_from: Optional[datetime] = None,
        died_to: Optional[datetime] = None,
        body: bool = False,
        page: Optional[int] = None,
    ) -> Iterator[Job]:
        """Jobs of a topic, or of all topics by ``id_prefix`` or an indexed header, page after page. It ends with an
        error of the code ``incomplete`` when jobs may be missing, because the index of a header is being built."""
        cursor, incomplete = "", False
        while True:
            got: Page[Job] = self._call(
                _calls.jobs_page(
                    topic, state=state, id_prefix=id_prefix, reason=reason, exact_reason=exact_reason, headers=headers,
                    due_from=due_from, due_to=due_to, died_from=died_from, died_to=died_to, body=body, page=page, cursor=cursor,
                )
            )  # fmt: skip
            for job in got.items:
                yield job
            incomplete = incomplete or got.incomplete
            if not got.next:
                break
            cursor = got.next
        if incomplete:
            raise TarryError("incomplete", "jobs may be missing: the index of a header is being built")

    # Many jobs: those that jobs() lists for the same topic, state, id_prefix, reason and headers. One of id_prefix
    # and an indexed header is needed (docs/headers.md).

    def delete_jobs(self, found: Mapping[str, Any], *, max: Optional[int] = None) -> ChangedFound:
        """Delete the jobs that are found: ``delete_jobs({"headers": {"order": "5"}})``."""
        return self._call(_calls.delete_jobs(found, max))

    def update_jobs(
        self,
        found: Mapping[str, Any],
        *,
        max: Optional[int] = None,
        delay: Optional[Seconds] = None,
        due_at: Optional[datetime] = None,
        ttr: Optional[Seconds] = None,
        priority: Optional[int] = None,
        max_attempts: Optional[int] = None,
        backoff: Optional[BackoffLike] = None,
        headers: Optional[Mapping[str, str]] = None,
        body: Any = UNSET,
        expires_at: Union[datetime, Literal["never"], None] = None,
        push_url: Optional[str] = None,
    ) -> ChangedFound:
        """Change the jobs that are found, as ``update`` does with one."""
        changes = _calls.changes_of(
            delay=delay, due_at=due_at, ttr=ttr, priority=priority, max_attempts=max_attempts, backoff=backoff,
            headers=headers, body=body, expires_at=expires_at, push_url=push_url,
        )  # fmt: skip
        return self._call(_calls.update_jobs(found, max, changes))

    def kick_jobs(
        self, found: Mapping[str, Any], *, max: Optional[int] = None, to_topic: Optional[str] = None
    ) -> ChangedFound:
        """Make the dead and delayed ones of the jobs that are found ready."""
        return self._call(_calls.kick_jobs(found, max, to_topic))

    def topic(self, name: str) -> Topic:
        """The counts of one topic, all zero when it has no jobs."""
        return self._call(_calls.topic(name))

    def topics(self, *, after: str = "", page: Optional[int] = None) -> Iterator[Topic]:
        """All topics by name, page after page."""
        while True:
            got = self.topics_page(after=after, page=page)
            for one in got.items:
                yield one
            if not got.next:
                return
            after = got.next

    def topics_page(self, *, after: str = "", page: Optional[int] = None) -> Page[Topic]:
        """One page of the topics, those after a name."""
        return self._call(_calls.topics_page(after, page))

    def stats(self) -> Stats:
        """The counts of all topics together."""
        return self._call(_calls.stats())

    def forecast(
        self,
        topic: Optional[str] = None,
        *,
        start: Optional[datetime] = None,
        step: Optional[Seconds] = None,
        steps: Optional[int] = None,
    ) -> Forecast:
        """How many delayed jobs of a topic, or of all, are due in each of the next ``steps`` (24) of the length ``step``
        (an hour), which is whole minutes. The first one is the present one unless ``start`` is given."""
        return self._call(_calls.forecast(topic, start, step, steps))

    def forecast_topics(
        self, *, start: Optional[datetime] = None, step: Optional[Seconds] = None, max: Optional[int] = None
    ) -> DueTopics:
        """The topics of which most delayed jobs are due in one step of time, up to ``max`` (10)."""
        return self._call(_calls.forecast_topics(start, step, max))

    def rates(self, topic: Optional[str] = None) -> Rates:
        """What happened to the jobs of a topic, or of all, in the last 15 minutes."""
        return self._call(_calls.rates(topic))

    # Dead jobs by their reasons, of which an empty one is that of jobs without any.

    def dead(self, topic: Optional[str] = None, *, max: Optional[int] = None) -> DeadReasons:
        """The reasons that most dead jobs of a topic have, or of all, up to ``max`` (100)."""
        return self._call(_dead.dead(topic, max))

    def dead_topics(self, reason: str, *, max: Optional[int] = None) -> DeadTopics:
        """The topics that most dead jobs with a reason are in, up to ``max`` (100)."""
        return self._call(_dead.dead_topics(reason, max))

    def kick_dead(
        self, reason: str, *, max: Optional[int] = None, rate: Optional[float] = None, to_topic: Optional[str] = None
    ) -> Swept:
        """Make the dead jobs of all topics with a reason ready."""
        return self._call(_dead.kick_dead(reason, max, rate, to_topic))

    def purge_dead(self, reason: str, *, max: Optional[int] = None) -> Swept:
        """Delete the dead jobs of all topics with a reason."""
        return self._call(_dead.purge_dead(reason, max))

    # Topics.

    def kick_topic(
        self,
        topic: str,
        *,
        max: Optional[int] = None,
        filter: Optional[Mapping[str, Any]] = None,
        rate: Optional[float] = None,
        to_topic: Optional[str] = None,
    ) -> Swept:
        """Make dead jobs of a topic ready, the longest dead first."""
        return self._call(_calls.kick_topic(topic, max, filter, rate, to_topic))

    def release_topic(
        self,
        topic: str,
        *,
        consumer: Optional[str] = None,
        max: Optional[int] = None,
        filter: Optional[Mapping[str, Any]] = None,
        reason: Optional[str] = None,
    ) -> Swept:
        """Give reserved jobs of a topic back at once, of one consumer if that is given: it has died, for one."""
        return self._call(_calls.release_topic(topic, consumer, max, filter, reason))

    def purge(
        self, topic: str, state: str, *, max: Optional[int] = None, filter: Optional[Mapping[str, Any]] = None
    ) -> Swept:
        """Delete jobs of a topic that are ``dead``, ``delayed`` or ``ready``."""
        return self._call(_calls.purge(topic, state, max, filter))

    def move_topic(
        self,
        topic: str,
        to: str,
        *,
        states: Optional[Sequence[str]] = None,
        max: Optional[int] = None,
        filter: Optional[Mapping[str, Any]] = None,
        cursor: Optional[str] = None,
    ) -> ChangedFound:
        """Put all jobs of a topic into another one, or those in some states, or those that match. If there are more,
        call it again with ``next`` as ``cursor``."""
        return self._call(_calls.move_topic(topic, to, states, max, filter, cursor))

    def reschedule(
        self,
        topic: str,
        filter: Mapping[str, Any],
        *,
        spread: Optional[Seconds] = None,
        earlier: bool = False,
        postpone: Optional[Seconds] = None,
        max: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Rescheduled:
        """Give delayed jobs that are due from ``due_from`` to ``due_to`` of the filter other due times: spread evenly over
        a time (no job becomes due earlier unless ``earlier``), or each later by ``postpone``."""
        return self._call(_calls.reschedule(topic, filter, max, spread, earlier, postpone, cursor))

    def pause(
        self, topic: str, duration: Optional[Seconds] = None, *, until: Optional[datetime] = None
    ) -> Pause:
        """Hold a topic's ready jobs back for a while, until an instant, or until it is resumed."""
        return self._call(_calls.pause(topic, duration, until))

    def resume(self, topic: str) -> Pause:
        """End a topic's pause, if there is one."""
        return self._call(_calls.resume(topic))

    def settings(self, topic: str) -> TopicSettings:
        """The settings of a topic (docs/limits.md)."""
        return self._call(_calls.settings(topic))

    def set_settings(
        self, topic: str, values: Settings, *, if_revision: Optional[int] = None
    ) -> TopicSettings:
        """Set all settings of a topic: those that are not given are removed."""
        return self._call(_calls.set_settings(topic, values, if_revision))

    def change_settings(
        self,
        topic: str,
        *,
        ttr: Union[Seconds, None, Unset] = UNSET,
        max_attempts: Union[int, None, Unset] = UNSET,
        backoff: Union[BackoffLike, None, Unset] = UNSET,
        max_pending: Union[int, None, Unset] = UNSET,
        max_reserved: Union[int, None, Unset] = UNSET,
        rate: Union[float, None, Unset] = UNSET,
        burst: Union[int, None, Unset] = UNSET,
        expire: Union[Seconds, None, Unset] = UNSET,
        expiry: Union[Literal["drop", "dead"], None, Unset] = UNSET,
        spread: Union[Seconds, None, Unset] = UNSET,
        retain: Union[Seconds, None, Unset] = UNSET,
        retain_max: Union[int, None, Unset] = UNSET,
        late_finish: Union[Literal["accept", "refuse"], None, Unset] = UNSET,
        require_token: Union[bool, None, Unset] = UNSET,
        index_headers: Union[Sequence[str], None, Unset] = UNSET,
        push: Union[PushTarget, None, Unset] = UNSET,
        description: Union[str, None, Unset] = UNSET,
    ) -> TopicSettings:
        """Set some settings of a topic (docs/limits.md); None removes one."""
        return self._call(
            _calls.change_settings(
                topic,
                ttr=ttr, max_attempts=max_attempts, backoff=backoff, max_pending=max_pending, max_reserved=max_reserved,
                rate=rate, burst=burst, expire=expire, expiry=expiry, spread=spread,
                retain=retain, retain_max=retain_max, late_finish=late_finish, require_token=require_token, index_headers=index_headers,
                push=push, description=description,
            )
        )  # fmt: skip

    def delete_settings(self, topic: str, *, if_revision: Optional[int] = None) -> TopicSettings:
        """Remove all settings of a topic."""
        return self._call(_calls.delete_settings(topic, if_revision))

    def all_settings(self, *, after: str = "", page: Optional[int] = None) -> Iterator[TopicSettings]:
        """The settings of all topics that have any, by name, page after page."""
        while True:
            got: Page[TopicSettings] = self._call(_calls.all_settings_page(after, page))
            for one in got.items:
                yield one
            if not got.next:
                return
            after = got.next

    # Schedules.

    def put_schedule(
        self, name: str, schedule: NewSchedule, *, if_revision: Optional[int] = None
    ) -> SchedulePut:
        """Make or replace a schedule (docs/schedules.md)."""
        return self._call(_calls.put_schedule(name, schedule, if_revision))

    def schedule(self, name: str) -> Schedule:
        """Everything known of a schedule but its last runs."""
        return self._call(_calls.schedule(name))

    def schedules(self, *, after: str = "", page: Optional[int] = None) -> Iterator[Schedule]:
        """All schedules by name, page after page."""
        while True:
            got: Page[Schedule] = self._call(_calls.schedules_page(after, page))
            for one in got.items:
                yield one
            if not got.next:
                return
            after = got.next

    def delete_schedule(self, name: str, *, if_revision: Optional[int] = None) -> None:
        """Remove a schedule; the jobs of its runs stay."""
        return self._call(_calls.delete_schedule(name, if_revision))

    def pause_schedule(self, name: str) -> None:
        """Stop a schedule from starting runs until it is resumed."""
        return self._call(_calls.pause_schedule(name))

    def resume_schedule(self, name: str) -> None:
        """Resume a schedule."""
        return self._call(_calls.resume_schedule(name))

    def run_schedule(self, name: str, *, key: Optional[str] = None) -> Added:
        """Start a run now. With a ``key`` a repeated request is the same run."""
        return self._call(_calls.run_schedule(name, key))

    def schedule_runs(self, name: str) -> List[PastRun]:
        """The last 20 runs, the latest first."""
        return self._call(_calls.schedule_runs(name))

    def preview_schedule(self, name: str, *, count: Optional[int] = None) -> List[PlannedRun]:
        """The next runs of a schedule."""
        return self._call(_calls.preview_schedule(name, count))

    def preview_spec(
        self,
        spec: str,
        *,
        zone: Optional[str] = None,
        start: Optional[datetime] = None,
        end: Optional[datetime] = None,
        after: Optional[datetime] = None,
        count: Optional[int] = None,
    ) -> List[PlannedRun]:
        """The runs of a schedule that is not stored."""
        return self._call(_calls.preview_spec(spec, zone, start, end, after, count))

    # Tokens of the cluster (docs/tokens.md).

    def whoami(self) -> Identity:
        """Who the client is for the cluster, and what it may do."""
        return self._call(_tokens.whoami())

    def tokens(self, *, after: str = "", page: Optional[int] = None) -> Iterator[Token]:
        """All tokens by id, page after page, without their texts."""
        while True:
            got: Page[Token] = self._call(_tokens.tokens_page(after, page))
            for one in got.items:
                yield one
            if not got.next:
                return
            after = got.next

    def token(self, id: str) -> Token:
        """A token, without its text."""
        return self._call(_tokens.token(id))

    def put_token(
        self,
        id: str,
        rules: Sequence[Rule],
        *,
        description: Optional[str] = None,
        id_prefix: Optional[str] = None,
        expires_at: Optional[datetime] = None,
        if_revision: Optional[int] = None,
    ) -> TokenPut:
        """Make a token, whose text is in the result, or change what one may do. It is not repeated when its outcome is
        unknown, because the text would be lost."""
        return self._call(_tokens.put_token(id, rules, description, id_prefix, expires_at, if_revision))

    def rotate_token(self, id: str, overlap: Optional[Seconds] = None) -> TokenPut:
        """Give a token a new text, which is in the result. The one before is accepted for ``overlap`` more seconds, an
        hour unless it is given."""
        return self._call(_tokens.rotate_token(id, overlap))

    def delete_token(self, id: str) -> None:
        """Revoke a token at once and for good."""
        return self._call(_tokens.delete_token(id))

    # Namespaces (docs/namespaces.md).

    def namespaces(self) -> List[Namespace]:
        """The namespaces that the client may see, by name, with what they hold."""
        return self._call(_namespaces.namespaces())

    def namespace(self, name: str) -> Namespace:
        """A namespace and what it holds."""
        return self._call(_namespaces.namespace(name))

    def put_namespace(
        self,
        name: str,
        topic_prefix: str,
        *,
        id_prefix: Optional[str] = None,
        description: Optional[str] = None,
        quotas: Optional[Quotas] = None,
        if_revision: Optional[int] = None,
    ) -> NamespacePut:
        """Make or replace a namespace. Quotas that are not given do not bound it."""
        return self._call(_namespaces.put_namespace(name, topic_prefix, id_prefix, description, quotas, if_revision))

    def delete_namespace(self, name: str) -> None:
        """Remove a namespace; its topics and jobs stay."""
        return self._call(_namespaces.delete_namespace(name))

    # The cluster.

    def members(self) -> List[Member]:
        """The nodes of the cluster. The client uses those that it did not know."""
        got = self._call(_calls.members())
        self._nodes.meet(m.http_address for m in got)
        return got

    def health(self) -> Health:
        """How the cluster is."""
        return self._call(_calls.health())

    def clocks(self) -> Clocks:
        """The clocks of the nodes, compared."""
        return self._call(_operator.clocks())

    def verify(self) -> Verification:
        """Compare the states of all nodes at one index of the log; for up to two minutes, until all have replied."""
        return self._call(_operator.verify())

    def transfer_leadership(self, id: Optional[str] = None) -> bool:
        """Hand leadership to a node, or to the best follower. False: it leads already."""
        return self._call(_operator.transfer_leadership(id))

    def remove_member(self, id: str) -> None:
        """Remove a node from the cluster for good."""
        return self._call(_operator.remove_member(id))

    def join(self, addresses: Sequence[str]) -> None:
        """Make the node of this client, which has the address of no other one, join the cluster whose nodes have these
        gossip addresses."""
        return self._call(_operator.join(addresses))

    def leave(self) -> None:
        """Make the node of this client, which has the address of no other one, leave its cluster and stop."""
        return self._call(_operator.leave())

    def reset_clock(self) -> None:
        """Set the queue's clock back to that of the majority of the nodes, if it is too far ahead."""
        return self._call(_operator.reset_clock())
