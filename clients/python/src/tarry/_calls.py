"""What each call sends, and how its reply is read. Nothing here does input or output."""

from __future__ import annotations

import math
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Any, Callable, Dict, Generic, Iterable, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union
from urllib.parse import quote, urlencode

from .errors import TarryError, error
from .types import (
    JSON,
    Added,
    BackoffLike,
    Cause,
    Changed,
    ChangedFound,
    DueTopic,
    DueTopics,
    Event,
    Explanation,
    Forecast,
    Health,
    History,
    Job,
    JobLike,
    Member,
    NewJob,
    NotUnderstood,
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
    decode,
    decode_all,
    encode_backoff,
    encode_body,
    encode_members,
    instant_text,
    member,
    ref_of,
    seconds,
)

T = TypeVar("T")

X = TypeVar("X")

MAX_BATCH = 1000
"""How many items a node takes in one request."""
MAX_WAIT = 300.0
"""The longest wait that a node takes in one request, in seconds."""
SWEEP_TIME = 30.0
MEMBERS_PATH = "/v1/cluster/members"


class Unset:
    """The type of ``UNSET``: an argument that was not given, where None means something."""


UNSET = Unset()


@dataclass(frozen=True)
class Request(Generic[T]):
    """One call. ``repeat``: sending it twice does no harm. ``wait`` is how long the server is asked to wait; each attempt
    asks for what is left of it. ``work`` is how long it may take because there is much to do. ``gone``: that the job
    is not there after an attempt with unknown outcome is success. ``reads``: it changes nothing although it is no GET.
    ``here``: it is for the node that was given to the client, not for any node of the cluster. ``soon``: after so many
    seconds the call ends if its first round over the nodes had no success, and not only after wait and patience."""

    method: str
    path: str
    read: Callable[[JSON, bool], T]
    body: Optional[JSON] = None
    repeat: bool = False
    wait: float = 0.0
    work: float = 0.0
    gone: bool = False
    reads: bool = False
    here: bool = False
    soon: float = math.inf

    @property
    def changes(self) -> bool:
        """Whether something may have changed when the outcome is unknown."""
        return self.method != "GET" and not self.reads


def _of(cls: Any) -> Callable[[JSON, bool], Any]:
    return lambda reply, earlier: decode(cls, reply)


def _named(name: str) -> Callable[[JSON, bool], None]:
    """A reply that tells no more than that something was done to what it names."""

    def read(reply: JSON, earlier: bool) -> None:
        member(reply, name, str)

    return read


def _segment(name: str) -> str:
    """A name as one segment of a path. Dots alone would mean a folder to something on the way."""
    if not isinstance(name, str):
        raise TypeError(f"an id or a name is a str, not {type(name).__name__}")
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return quote(name, safe="")


def _job_path(id: str, verb: str = "") -> str:
    if not id:
        raise error("invalid_argument", "id is missing", field="id")
    return "/v1/jobs/" + _segment(id) + ("/" + verb if verb else "")


def _topic_path(topic: str, verb: str = "") -> str:
    return "/v1/topics/" + _segment(topic) + ("/" + verb if verb else "")


def _schedule_path(name: str, verb: str = "") -> str:
    return "/v1/schedules/" + _segment(name) + ("/" + verb if verb else "")


def _query(path: str, values: Mapping[str, Any]) -> str:
    # The exact reason of jobs without any is empty.
    given = {k: v for k, v in values.items() if v is not None and (v != "" or k == "exact_reason")}
    return path + "?" + urlencode(given) if given else path


def _given(**values: Any) -> JSON:
    """The arguments that were given."""
    return {k: v for k, v in values.items() if v is not None}


def _secs(name: str, d: Optional[Seconds]) -> Optional[float]:
    return None if d is None else seconds(d, name)


def _at(name: str, at: Optional[datetime]) -> Optional[str]:
    return None if at is None else instant_text(at, name)


def _waits(backoff: Optional[BackoffLike]) -> Any:
    return None if backoff is None else encode_backoff(backoff)


def encode_job(job: NewJob) -> JSON:
    return {
        "topic": job.topic,
        "id": job.id if job.id is not None else secrets.token_urlsafe(16),
        **_given(
            delay=_secs("delay", job.delay),
            due_at=_at("due_at", job.due_at),
            ttr=_secs("ttr", job.ttr),
            priority=job.priority,
            max_attempts=job.max_attempts,
            backoff=_waits(job.backoff),
            headers=job.headers,
            if_exists=job.if_exists,
            if_revision=job.if_revision,
            if_state=job.if_state,
            expires_at=_at("expires_at", job.expires_at),
            push_url=job.push_url,
        ),
        **encode_body(job.body),
    }


def _item_error(item: JSON) -> Optional[TarryError]:
    if member(item, "success", bool):
        return None
    return error(
        member(item, "code", str),
        item.get("error", ""),
        status=200,
        field=item.get("field"),
        unknown=item.get("outcome") == "unknown",
    )


def _results(n: int, reply: JSON, name: str = "results") -> List[JSON]:
    results: List[JSON] = member(reply, name, list)
    if len(results) != n:
        raise NotUnderstood(f"{name} has {len(results)} elements for {n} items")
    return results


def parts(items: Iterable[X]) -> List[List[X]]:
    """A batch in parts that a node takes. An empty one is one part, for the node to refuse."""
    found = list(items)
    return [found[n : n + MAX_BATCH] for n in range(0, len(found), MAX_BATCH)] or [found]


def part_size(request: Request[Any]) -> int:
    assert request.body is not None
    return len(request.body["jobs"])


def of_part(first: int, failure: TarryError) -> TarryError:
    """A failure in the part of a batch that begins with the item ``first``: it names the item of the batch."""

    def named(text: str) -> str:
        return re.sub(r"^jobs\[(\d+)\]", lambda found: f"jobs[{first + int(found[1])}]", text)

    failure.field = failure.field and named(failure.field)
    failure.message = named(failure.message)
    failure.args = (failure.message,)
    return failure


def unsent(cause: TarryError) -> TarryError:
    """The failure of an item in a part that follows one that failed."""
    return error("not_applied", f"it was not sent, because an earlier part of the batch failed: {cause.message}")


def _finished(n: int, reply: JSON, name: str, earlier: bool) -> List[Optional[TarryError]]:
    """None for each job that is finished, perhaps by an earlier attempt."""
    results = _results(n, reply, name)
    failures = [_item_error(item) for item in results]
    for item, failure in zip(results, failures):
        if failure is None:
            member(item, "id", str)
    return [None if earlier and f and f.code == "not_found" else f for f in failures]


def _all_added(n: int) -> Callable[[JSON, bool], List[Added]]:
    def read(reply: JSON, earlier: bool) -> List[Added]:
        results = _results(n, reply)
        for item in results:
            failure = _item_error(item)
            if failure:
                raise failure
        return [decode(Added, item) for item in results]

    return read


def add(job: NewJob) -> Request[Added]:
    return Request("POST", "/v1/jobs", _of(Added), encode_job(job), repeat=True)


def add_batch(jobs: Iterable[NewJob]) -> Request[List[Union[Added, TarryError]]]:
    sent = [encode_job(j) for j in jobs]

    def read(reply: JSON, earlier: bool) -> List[Union[Added, TarryError]]:
        return [_item_error(item) or decode(Added, item) for item in _results(len(sent), reply)]

    return Request("POST", "/v1/jobs/batch", read, {"jobs": sent}, repeat=True)


def add_all(jobs: Iterable[NewJob]) -> Request[List[Added]]:
    sent = [encode_job(j) for j in jobs]
    return Request("POST", "/v1/jobs/batch", _all_added(len(sent)), {"jobs": sent, "atomic": True}, repeat=True)


def get(id: str) -> Request[Job]:
    return Request("GET", _job_path(id), _of(Job), repeat=True)


def get_batch(ids: Sequence[str], body: bool) -> Request[List[Union[Job, TarryError]]]:
    """The reply has the first of the jobs, at least one: ask for the others again."""

    def read(reply: JSON, earlier: bool) -> List[Union[Job, TarryError]]:
        results = _results(len(ids), reply)
        full = (n for n, item in enumerate(results) if n > 0 and item.get("code") == "reply_full")
        return [_item_error(item) or decode(Job, item) for item in results[: next(full, None)]]

    path = _query("/v1/get", {"body": None if body else "false"})
    return Request("POST", path, read, {"ids": ids}, repeat=True, reads=True)


def history(id: str) -> Request[History]:
    def read(reply: JSON, earlier: bool) -> History:
        return decode(History, {**reply, "events": decode_all(Event, reply, "events")})

    return Request("GET", _job_path(id, "history"), read, repeat=True)


def explain(id: str) -> Request[Explanation]:
    def read(reply: JSON, earlier: bool) -> Explanation:
        return decode(Explanation, {**reply, "causes": decode_all(Cause, reply, "causes")})

    return Request("GET", _job_path(id, "explain"), read, repeat=True)


def update(id: str, changes: JSON) -> Request[Changed]:
    return Request("PATCH", _job_path(id), _of(Changed), changes)


def changes_of(
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
) -> JSON:
    """The members of an update that were given."""
    changes = _given(
        delay=_secs("delay", delay),
        due_at=_at("due_at", due_at),
        ttr=_secs("ttr", ttr),
        priority=priority,
        max_attempts=max_attempts,
        backoff=_waits(backoff),
        headers=headers,
        expires_at=expires_at if isinstance(expires_at, str) else _at("expires_at", expires_at),
        push_url=push_url,
        if_revision=if_revision,
        if_state=if_state,
    )
    if not isinstance(body, Unset):
        changes.update(encode_body(body))
    return changes


def delete(job: JobLike, if_revision: Optional[int], if_state: Optional[Sequence[str]]) -> Request[None]:
    ref = ref_of(job)
    states = ",".join(if_state) if if_state else None
    path = _query(_job_path(ref.id), {"token": ref.token, "if_revision": if_revision, "if_state": states})
    return Request("DELETE", path, _named("id"), repeat=True, gone=True)


def reserve(
    topics: Union[str, Sequence[str]],
    *,
    max: int,
    wait: float,
    ttr: Optional[Seconds],
    consumer: Optional[str],
    soon: float = math.inf,
) -> Request[List[Reserved]]:
    def read(reply: JSON, earlier: bool) -> List[Reserved]:
        return decode_all(Reserved, reply, "jobs")

    wait = round(min(wait, MAX_WAIT) if wait > 0 else 0.0, 3)
    sent = _reserve_body(topics, max, wait, ttr, consumer)
    # A reservation that got lost on its way ends by itself, so asking again does no harm.
    return Request("POST", "/v1/reserve", read, sent, repeat=True, wait=wait, soon=soon)


def _reserve_body(
    topics: Union[str, Sequence[str]], max: int, wait: float, ttr: Optional[Seconds], consumer: Optional[str]
) -> JSON:
    names = [topics] if isinstance(topics, str) else list(topics)
    return {"topics": names, "max": max, "wait": wait, **_given(ttr=_secs("ttr", ttr), consumer=consumer)}


def finish_and_reserve(
    jobs: Iterable[JobLike],
    topics: Union[str, Sequence[str]],
    *,
    max: int,
    wait: float,
    ttr: Optional[Seconds],
    consumer: Optional[str],
) -> Request[Tuple[List[Reserved], List[Optional[TarryError]]]]:
    refs = [ref_of(j) for j in jobs]
    if not refs:
        raise error("invalid_argument", "there is no job to finish", field="finish")

    def read(reply: JSON, earlier: bool) -> Tuple[List[Reserved], List[Optional[TarryError]]]:
        finished = _finished(len(refs), reply, "finished", earlier)
        return decode_all(Reserved, reply, "jobs"), finished

    wait = round(min(wait, MAX_WAIT) if wait > 0 else 0.0, 3)
    sent = {**_reserve_body(topics, max, wait, ttr, consumer), "finish": [_given(id=r.id, token=r.token) for r in refs]}
    return Request("POST", "/v1/reserve", read, sent, repeat=True, wait=wait)


def finish(job: JobLike) -> Request[None]:
    ref = ref_of(job)
    return Request("POST", _job_path(ref.id, "finish"), _named("id"), _given(token=ref.token), repeat=True, gone=True)


def finish_batch(jobs: Iterable[JobLike]) -> Request[List[Optional[TarryError]]]:
    return _end_batch("/v1/finish", jobs)


def delete_batch(jobs: Iterable[JobLike]) -> Request[List[Optional[TarryError]]]:
    return _end_batch("/v1/delete", jobs)


def _end_batch(path: str, jobs: Iterable[JobLike]) -> Request[List[Optional[TarryError]]]:
    refs = [ref_of(j) for j in jobs]

    def read(reply: JSON, earlier: bool) -> List[Optional[TarryError]]:
        return _finished(len(refs), reply, "results", earlier)

    sent = [_given(id=r.id, token=r.token) for r in refs]
    return Request("POST", path, read, {"jobs": sent}, repeat=True)


def kick_batch(ids: Iterable[str]) -> Request[List[Union[Changed, TarryError]]]:
    return _change_batch("/v1/kick", [{"id": id} for id in ids])


def update_batch(updates: Mapping[str, Mapping[str, Any]]) -> Request[List[Union[Changed, TarryError]]]:
    return _change_batch("/v1/update", [{"id": id, **changes_of(**changes)} for id, changes in updates.items()])


def _change_batch(path: str, sent: List[JSON]) -> Request[List[Union[Changed, TarryError]]]:
    def read(reply: JSON, earlier: bool) -> List[Union[Changed, TarryError]]:
        return [_item_error(item) or decode(Changed, item) for item in _results(len(sent), reply)]

    return Request("POST", path, read, {"jobs": sent})


def finish_then(job: JobLike, then: Iterable[NewJob]) -> Request[List[Added]]:
    ref = ref_of(job)
    sent = [encode_job(j) for j in then]
    # Not repeated: not_found would not tell whether the jobs were added.
    return Request("POST", _job_path(ref.id, "finish"), _all_added(len(sent)), {**_given(token=ref.token), "then": sent})


def touch(job: JobLike, ttr: Optional[Seconds]) -> Request[Changed]:
    ref = ref_of(job)
    return Request(
        "POST", _job_path(ref.id, "touch"), _of(Changed), _given(token=ref.token, ttr=_secs("ttr", ttr)), repeat=True
    )


def release(
    job: JobLike, delay: Optional[Seconds], priority: Optional[int], reason: Optional[str]
) -> Request[Changed]:
    ref = ref_of(job)
    sent = _given(token=ref.token, delay=_secs("delay", delay), priority=priority, reason=reason)
    return Request("POST", _job_path(ref.id, "release"), _of(Changed), sent)


def bury(job: JobLike, priority: Optional[int], reason: Optional[str]) -> Request[Changed]:
    ref = ref_of(job)
    return Request(
        "POST", _job_path(ref.id, "bury"), _of(Changed), _given(token=ref.token, priority=priority, reason=reason)
    )


def kick(id: str, to_topic: Optional[str]) -> Request[Changed]:
    return Request("POST", _job_path(id, "kick"), _of(Changed), _given(to_topic=to_topic))


def move(job: JobLike, to: str) -> Request[Changed]:
    ref = ref_of(job)
    return Request("POST", _job_path(ref.id, "move"), _of(Changed), {**_given(token=ref.token), "to": to}, repeat=True)


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a listing; ``next`` is where the next one starts, "" at the end."""

    items: List[T]
    next: str
    incomplete: bool = False


def _page(cls: Any, name: str) -> Callable[[JSON, bool], Any]:
    def read(reply: JSON, earlier: bool) -> Page[Any]:
        return Page(decode_all(cls, reply, name), reply.get("next", ""), reply.get("incomplete", False))

    return read


def jobs_page(
    topic: Optional[str],
    *,
    state: Optional[str],
    id_prefix: Optional[str],
    reason: Optional[str],
    exact_reason: Optional[str],
    headers: Optional[Mapping[str, str]],
    due_from: Optional[datetime],
    due_to: Optional[datetime],
    died_from: Optional[datetime],
    died_to: Optional[datetime],
    body: bool,
    page: Optional[int],
    cursor: str,
) -> Request[Page[Job]]:
    query: Dict[str, Any] = {
        "state": state,
        "id_prefix": id_prefix,
        "reason": reason,
        "exact_reason": exact_reason,
        "due_from": _at("due_from", due_from),
        "due_to": _at("due_to", due_to),
        "died_from": _at("died_from", died_from),
        "died_to": _at("died_to", died_to),
        "body": "true" if body else None,
        "max": page,
        "cursor": cursor,
    }
    query.update({"header." + name: value for name, value in (headers or {}).items()})
    path = _topic_path(topic, "jobs") if topic else "/v1/jobs"
    return Request("GET", _query(path, query), _page(Job, "jobs"), repeat=True)


def _change_found(
    method: str, path: str, count: str, found: Mapping[str, Any], max: Optional[int], sent: Optional[JSON]
) -> Request[ChangedFound]:
    def read(reply: JSON, earlier: bool) -> ChangedFound:
        return decode(ChangedFound, {**reply, "count": reply.get(count)})

    query = encode_members({k: v for k, v in found.items() if k != "headers"})
    query.update({"header." + name: value for name, value in (found.get("headers") or {}).items()})
    query["all" if max is None else "max"] = "true" if max is None else max
    return Request(method, _query(path, query), read, sent, work=SWEEP_TIME)


def delete_jobs(found: Mapping[str, Any], max: Optional[int]) -> Request[ChangedFound]:
    return _change_found("DELETE", "/v1/jobs", "deleted", found, max, None)


def update_jobs(found: Mapping[str, Any], max: Optional[int], changes: JSON) -> Request[ChangedFound]:
    return _change_found("PATCH", "/v1/jobs", "updated", found, max, changes)


def kick_jobs(found: Mapping[str, Any], max: Optional[int], to_topic: Optional[str]) -> Request[ChangedFound]:
    return _change_found("POST", "/v1/jobs/kick", "kicked", found, max, _given(to_topic=to_topic))


def topics_page(after: str, page: Optional[int]) -> Request[Page[Topic]]:
    return Request("GET", _query("/v1/topics", {"after": after, "max": page}), _page(Topic, "topics"), repeat=True)


def topic(name: str) -> Request[Topic]:
    return Request("GET", _topic_path(name), _of(Topic), repeat=True)


def stats() -> Request[Stats]:
    return Request("GET", "/v1/stats", _of(Stats), repeat=True)


def _steps(path: str, start: Optional[datetime], step: Optional[Seconds], **more: Optional[int]) -> str:
    return _query(path, {"start": _at("start", start), "step": _secs("step", step), **more})


def forecast(
    topic: Optional[str], start: Optional[datetime], step: Optional[Seconds], steps: Optional[int]
) -> Request[Forecast]:
    path = _topic_path(topic, "forecast") if topic else "/v1/forecast"
    return Request("GET", _steps(path, start, step, steps=steps), _of(Forecast), repeat=True)


def forecast_topics(start: Optional[datetime], step: Optional[Seconds], max: Optional[int]) -> Request[DueTopics]:
    def read(reply: JSON, earlier: bool) -> DueTopics:
        return decode(DueTopics, {**reply, "topics": decode_all(DueTopic, reply, "topics")})

    return Request("GET", _steps("/v1/forecast/topics", start, step, max=max), read, repeat=True)


def rates(topic: Optional[str]) -> Request[Rates]:
    return Request("GET", _topic_path(topic, "rates") if topic else "/v1/rates", _of(Rates), repeat=True)


def _swept(count: str) -> Callable[[JSON, bool], Swept]:
    return lambda reply, earlier: decode(Swept, {**reply, "count": reply.get(count)})


def _how_many(max: Optional[int]) -> JSON:
    return {"all": True} if max is None else {"max": max}


def _filter(filter: Optional[Mapping[str, Any]]) -> Optional[JSON]:
    return None if filter is None else encode_members(filter)


def kick_topic(
    topic: str, max: Optional[int], filter: Optional[Mapping[str, Any]], rate: Optional[float], to_topic: Optional[str]
) -> Request[Swept]:
    sent = {**_how_many(max), **_given(filter=_filter(filter), rate=rate, to_topic=to_topic)}
    return Request("POST", _topic_path(topic, "kick"), _swept("kicked"), sent, work=SWEEP_TIME)


def release_topic(
    topic: str, consumer: Optional[str], max: Optional[int], filter: Optional[Mapping[str, Any]], reason: Optional[str]
) -> Request[Swept]:
    sent = {**_how_many(max), **_given(consumer=consumer, filter=_filter(filter), reason=reason)}
    return Request("POST", _topic_path(topic, "release"), _swept("released"), sent, work=SWEEP_TIME)


def purge(topic: str, state: str, max: Optional[int], filter: Optional[Mapping[str, Any]]) -> Request[Swept]:
    sent = {"state": state, **_how_many(max), **_given(filter=_filter(filter))}
    return Request("POST", _topic_path(topic, "purge"), _swept("deleted"), sent, work=SWEEP_TIME)


def move_topic(
    topic: str,
    to: str,
    states: Optional[Sequence[str]],
    max: Optional[int],
    filter: Optional[Mapping[str, Any]],
    cursor: Optional[str],
) -> Request[ChangedFound]:
    def read(reply: JSON, earlier: bool) -> ChangedFound:
        return decode(ChangedFound, {**reply, "count": reply.get("moved")})

    sent = {"to": to, **_how_many(max), **_given(states=states, filter=_filter(filter), cursor=cursor or None)}
    return Request("POST", _topic_path(topic, "move"), read, sent, work=SWEEP_TIME)


def reschedule(
    topic: str,
    filter: Mapping[str, Any],
    max: Optional[int],
    spread: Optional[Seconds],
    earlier: bool,
    postpone: Optional[Seconds],
    cursor: Optional[str],
) -> Request[Rescheduled]:
    def read(reply: JSON, earlier: bool) -> Rescheduled:
        return decode(Rescheduled, {**reply, "count": reply.get("rescheduled")})

    times = _given(spread=_secs("spread", spread), earlier=earlier or None, postpone=_secs("postpone", postpone))
    sent = {**_how_many(max), **times, **_given(filter=_filter(filter), cursor=cursor or None)}
    return Request("POST", _topic_path(topic, "reschedule"), read, sent, repeat=True, work=SWEEP_TIME)


def pause(topic: str, duration: Optional[Seconds], until: Optional[datetime]) -> Request[Pause]:
    sent = {**_given(until=_at("until", until)), **({} if duration is None else {"for": seconds(duration, "duration")})}
    return Request("POST", _topic_path(topic, "pause"), _of(Pause), sent, repeat=True)


def resume(topic: str) -> Request[Pause]:
    return Request("POST", _topic_path(topic, "resume"), _of(Pause), repeat=True)


def settings(topic: str) -> Request[TopicSettings]:
    return Request("GET", _topic_path(topic, "settings"), _of(TopicSettings), repeat=True)


def set_settings(topic: str, values: Mapping[str, Any], if_revision: Optional[int]) -> Request[TopicSettings]:
    path = _query(_topic_path(topic, "settings"), {"if_revision": if_revision})
    return Request("PUT", path, _of(TopicSettings), encode_members(values), repeat=if_revision is None)


def change_settings(topic: str, **values: Any) -> Request[TopicSettings]:
    given = encode_members({name: value for name, value in values.items() if not isinstance(value, Unset)})
    return Request("PATCH", _topic_path(topic, "settings"), _of(TopicSettings), given, repeat=True)


def delete_settings(topic: str, if_revision: Optional[int]) -> Request[TopicSettings]:
    path = _query(_topic_path(topic, "settings"), {"if_revision": if_revision})
    return Request("DELETE", path, _of(TopicSettings), repeat=if_revision is None)


def all_settings_page(after: str, page: Optional[int]) -> Request[Page[TopicSettings]]:
    path = _query("/v1/topic-settings", {"after": after, "max": page})
    return Request("GET", path, _page(TopicSettings, "topics"), repeat=True)


def put_schedule(
    name: str, schedule: Mapping[str, Any], if_revision: Optional[int]
) -> Request[SchedulePut]:
    sent = {**encode_members(schedule), **_given(if_revision=if_revision)}
    return Request("PUT", _schedule_path(name), _of(SchedulePut), sent, repeat=if_revision is None)


def schedule(name: str) -> Request[Schedule]:
    return Request("GET", _schedule_path(name), _of(Schedule), repeat=True)


def schedules_page(after: str, page: Optional[int]) -> Request[Page[Schedule]]:
    path = _query("/v1/schedules", {"after": after, "max": page})
    return Request("GET", path, _page(Schedule, "schedules"), repeat=True)


def delete_schedule(name: str, if_revision: Optional[int]) -> Request[None]:
    path = _query(_schedule_path(name), {"if_revision": if_revision})
    return Request("DELETE", path, _named("schedule"), repeat=True, gone=True)


def pause_schedule(name: str) -> Request[None]:
    return Request("POST", _schedule_path(name, "pause"), _named("schedule"), repeat=True)


def resume_schedule(name: str) -> Request[None]:
    return Request("POST", _schedule_path(name, "resume"), _named("schedule"), repeat=True)


def run_schedule(name: str, key: Optional[str]) -> Request[Added]:
    return Request("POST", _schedule_path(name, "run"), _of(Added), _given(key=key), repeat=key is not None)


def schedule_runs(name: str) -> Request[List[PastRun]]:
    def read(reply: JSON, earlier: bool) -> List[PastRun]:
        return decode_all(PastRun, reply, "runs")

    return Request("GET", _schedule_path(name, "runs"), read, repeat=True)


def preview_schedule(name: str, count: Optional[int]) -> Request[List[PlannedRun]]:
    def read(reply: JSON, earlier: bool) -> List[PlannedRun]:
        return decode_all(PlannedRun, reply, "runs")

    return Request("GET", _query(_schedule_path(name, "preview"), {"count": count}), read, repeat=True)


def preview_spec(
    spec: str,
    zone: Optional[str],
    start: Optional[datetime],
    end: Optional[datetime],
    after: Optional[datetime],
    count: Optional[int],
) -> Request[List[PlannedRun]]:
    def read(reply: JSON, earlier: bool) -> List[PlannedRun]:
        return decode_all(PlannedRun, reply, "runs")

    given = _given(zone=zone, start=_at("start", start), end=_at("end", end), after=_at("after", after), count=count)
    return Request("POST", "/v1/schedules/preview", read, {"spec": spec, **given}, repeat=True, reads=True)


def members() -> Request[List[Member]]:
    def read(reply: JSON, earlier: bool) -> List[Member]:
        return decode_all(Member, reply, "members")

    return Request("GET", MEMBERS_PATH, read, repeat=True)


def health() -> Request[Health]:
    return Request("GET", "/v1/cluster/health", _of(Health), repeat=True)
