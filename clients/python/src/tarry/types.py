"""What calls take and return. Durations are in seconds, instants are aware datetimes."""

from __future__ import annotations

import base64
import dataclasses
import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence, Type, TypeVar, Union

Seconds = Union[int, float, timedelta]
"""A duration."""

JSON = Dict[str, Any]

T = TypeVar("T")


def seconds(d: Seconds, name: str = "duration") -> float:
    """The number of seconds of a duration, to the millisecond as the server counts. ``name`` is the argument."""
    if isinstance(d, timedelta):
        d = d.total_seconds()
    if isinstance(d, bool) or not isinstance(d, (int, float)):
        hint = "; for an instant there is due_at" if name == "delay" and isinstance(d, datetime) else ""
        raise TypeError(f"{name}: give seconds or a timedelta, not {_kind(d)}{hint}")
    if not math.isfinite(d):
        raise ValueError(f"{name}: give a finite number of seconds, not {d}")
    return round(d, 3)


def instant(text: str) -> datetime:
    """Parse an instant of the server."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def instant_text(at: datetime, name: str = "instant") -> str:
    """An instant as the server reads it. One without a time zone could mean any of them. ``name`` is the argument."""
    if not isinstance(at, datetime):
        hint = "; for a time from now there is delay" if name == "due_at" and isinstance(at, (timedelta, int, float)) else ""
        raise TypeError(f"{name}: give a datetime with a time zone, not {_kind(at)}{hint}")
    if at.utcoffset() is None:
        raise ValueError(f"{name}: give a datetime with a time zone, such as datetime.now(timezone.utc); {at.isoformat()} has none")
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _kind(value: object) -> str:
    return type(value).__name__


def encode_value(value: Any, name: str) -> Any:
    """A member of settings, of a schedule or of a filter: instants, durations and bodies become JSON."""
    if isinstance(value, datetime):
        return instant_text(value, name)
    if isinstance(value, timedelta):
        return seconds(value, name)
    if isinstance(value, Backoff):
        return value.encode()
    if isinstance(value, Mapping):
        return encode_members(value, name)
    if isinstance(value, (list, tuple)):
        return [encode_value(v, name) for v in value]
    return value


def encode_members(values: Mapping[str, Any], name: str = "") -> JSON:
    made: JSON = {}
    for key, value in values.items():
        if key == "body":
            made.update(encode_body(value))
        else:
            made[key] = encode_value(value, f"{name}.{key}" if name else key)
    return made


def encode_body(body: Any) -> JSON:
    """A body as JSON carries it: bytes that are not UTF-8 go as base64."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        raw = bytes(body)
        try:
            return {"body": raw.decode()}
        except UnicodeDecodeError:
            return {"body_base64": base64.b64encode(raw).decode()}
    return {"body": body}


def decode_body(reply: Mapping[str, Any]) -> Any:
    """The body in a reply: str, bytes that are not UTF-8, or a JSON value."""
    if "body_base64" in reply:
        try:
            return base64.b64decode(reply["body_base64"])
        except (ValueError, TypeError):
            raise NotUnderstood("body_base64 is not base64") from None
    return reply.get("body")


@dataclass(frozen=True)
class Backoff:
    """How long a job waits after an attempt that failed: ``base`` after the first one,
    ``factor`` times more after each further one, up to ``max``. ``jitter``, 0 to 1, is the share of
    a wait of which a random part is taken off."""

    base: Seconds
    factor: float = 2.0
    max: Seconds = 3600
    jitter: float = 0.0

    def after(self, attempts: int) -> float:
        """The wait after so many attempts, without jitter."""
        try:
            wait = seconds(self.base, "backoff.base") * self.factor ** (max(attempts, 1) - 1)
        except OverflowError:
            return seconds(self.max, "backoff.max")
        return round(min(wait, seconds(self.max, "backoff.max")), 3)

    def encode(self) -> JSON:
        base, most = seconds(self.base, "backoff.base"), seconds(self.max, "backoff.max")
        return {"base": base, "factor": self.factor, "max": most, "jitter": self.jitter}


BackoffLike = Union[Backoff, Sequence[Seconds]]
"""A Backoff, or a list of waits of which the last one is for all later attempts."""


def encode_backoff(backoff: BackoffLike) -> Any:
    if isinstance(backoff, Backoff):
        return backoff.encode()
    if isinstance(backoff, (str, bytes)) or not isinstance(backoff, Sequence):
        raise TypeError(f"backoff: give a Backoff or a list of durations, not {_kind(backoff)}")
    return [seconds(d, f"backoff[{n}]") for n, d in enumerate(backoff)]


@dataclass(frozen=True)
class NewJob:
    """A job to add. ``body`` is text, bytes, or any value that JSON has. Without an ``id`` the client makes
    one, so that an add can be repeated."""

    topic: str
    body: Any
    id: Optional[str] = None
    delay: Optional[Seconds] = None
    due_at: Optional[datetime] = None
    ttr: Optional[Seconds] = None
    priority: Optional[int] = None
    max_attempts: Optional[int] = None
    backoff: Optional[BackoffLike] = None
    headers: Optional[Mapping[str, str]] = None
    if_exists: Optional[str] = None
    if_revision: Optional[int] = None
    if_state: Optional[Sequence[str]] = None
    expires_at: Optional[datetime] = None
    """When the job is dropped, or dead if its topic says so, unless somebody has it then."""
    push_url: Optional[str] = None
    """Where the job is posted, in a topic whose push has job_urls (docs/push.md)."""


@dataclass(frozen=True)
class Reply:
    """A part of a reply. ``raw`` is all of it, also what this release of the client does not know."""

    _always: ClassVar[Sequence[str]] = ()
    """Members that are never absent."""

    raw: JSON = field(default_factory=dict, repr=False, compare=False)


_instants = frozenset(
    "first_died_at due_at reserved_until created_at modified_at died_at finished_at deleted_at retained_until expires_at at "
    "old_until oldest_due_at paused_until throttled_until planned_at next_at changed_at start end until majority".split()
)


class NotUnderstood(Exception):
    """A reply is not what the call returns: then nothing is known of the call."""


def member(reply: Any, name: str, kind: Type[T]) -> T:
    """A member that a reply always has."""
    value = reply.get(name) if isinstance(reply, dict) else None
    if not isinstance(value, kind):
        raise NotUnderstood(f"{name} is not of the type {kind.__name__}" if value is not None else f"{name} is missing")
    return value


def decode_all(cls: Type[T], reply: Any, name: str) -> List[T]:
    """The objects of a list that a reply always has."""
    return [decode(cls, item) for item in member(reply, name, list)]


def decode(cls: Type[T], reply: Any) -> T:
    """Make a reply's object; what is absent keeps its default."""
    if not isinstance(reply, dict):
        raise NotUnderstood("it is not an object")
    values: JSON = {}
    made: Any = cls
    for name in made._always:
        if reply.get(name) is None:
            raise NotUnderstood(f"{name} is missing")
    for f in dataclasses.fields(made):
        if f.name == "raw":
            values["raw"] = reply
        elif f.name == "body":
            values["body"] = decode_body(reply)
        elif reply.get(f.name) is not None:
            values[f.name] = _value(f, reply[f.name])
    return cls(**values)


def _value(f: dataclasses.Field[Any], value: Any) -> Any:
    """The value of a field: of the type of its default, or an instant."""
    if f.name in _instants:
        try:
            return instant(value)
        except (ValueError, TypeError, AttributeError):
            raise NotUnderstood(f"{f.name} is not an instant") from None
    default = f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
    kind: Any = (int, float) if isinstance(default, float) else type(default)
    if default is not None and not isinstance(value, kind):
        raise NotUnderstood(f"{f.name} is not of the type {type(default).__name__}")
    return value


@dataclass(frozen=True)
class Added(Reply):
    """What became of an add."""

    _always = ("id", "seq", "state")
    id: str = ""
    seq: int = 0
    state: str = ""
    due_at: Optional[datetime] = None
    revision: int = 0
    existing: bool = False
    """No job was made, because one was there already."""
    ended: bool = False
    """That job is dead, finished or deleted: nothing runs because of this add."""
    replaced: bool = False
    postponed: bool = False


@dataclass(frozen=True)
class Changed(Reply):
    """What became of a job."""

    _always = ("id", "state")
    id: str = ""
    seq: int = 0
    state: str = ""
    revision: int = 0
    due_at: Optional[datetime] = None
    reserved_until: Optional[datetime] = None


@dataclass(frozen=True)
class Ref:
    """Names a job by its id and one reservation of it by its token."""

    id: str
    token: Optional[str] = None


@dataclass(frozen=True)
class Reserved(Reply):
    """A job that was handed out to the caller."""

    _always = ("id", "token")
    id: str = ""
    seq: int = 0
    topic: str = ""
    token: str = ""
    attempts: int = 0
    priority: int = 0
    due_at: Optional[datetime] = None
    reserved_until: Optional[datetime] = None
    ttr: float = 0.0
    headers: Dict[str, str] = field(default_factory=dict)
    push_url: Optional[str] = None
    body: Any = None




@dataclass(frozen=True)
class Job(Reply):
    """Everything known of a job. Listings have no ``body`` unless it is asked for."""

    _always = ("id", "topic", "state")
    id: str = ""
    seq: int = 0
    topic: str = ""
    state: str = ""
    revision: int = 0
    priority: int = 0
    due_at: Optional[datetime] = None
    delay: float = 0.0
    ttr: float = 0.0
    attempts: int = 0
    max_attempts: int = 0
    created_at: Optional[datetime] = None
    modified_at: Optional[datetime] = None
    reserved_until: Optional[datetime] = None
    reserved_by: str = ""
    died_at: Optional[datetime] = None
    finished_at: Optional[datetime] = None
    deleted_at: Optional[datetime] = None
    retained_until: Optional[datetime] = None
    expires_at: Optional[datetime] = None
    reason: str = ""
    last_error: str = ""
    reserves: int = 0
    timeouts: int = 0
    releases: int = 0
    buries: int = 0
    kicks: int = 0
    backoff: Any = None
    push_url: Optional[str] = None
    headers: Dict[str, str] = field(default_factory=dict)
    body: Any = None


JobLike = Union[str, Ref, Reserved, Job]
"""A job: its id, or what ``get`` has returned; or one reservation, so that a call applies only while it lasts."""


def ref_of(job: JobLike) -> Ref:
    if isinstance(job, str):
        return Ref(job)
    if isinstance(job, Job):
        return Ref(job.id)
    if not isinstance(job, (Ref, Reserved)):
        raise TypeError(f"job: give an id, a Ref or a job, not {_kind(job)}")
    return Ref(job.id, job.token)


@dataclass(frozen=True)
class Event(Reply):
    """One thing that happened to a job."""

    _always = ("event",)
    at: Optional[datetime] = None
    event: str = ""
    state: str = ""
    attempt: int = 0
    due_at: Optional[datetime] = None
    consumer: str = ""
    reason: str = ""


@dataclass(frozen=True)
class History(Reply):
    """What happened to a job, oldest first."""

    _always = ("id", "events")
    id: str = ""
    seq: int = 0
    topic: str = ""
    state: str = ""
    events: List[Event] = field(default_factory=list)
    dropped: int = 0


@dataclass(frozen=True)
class Cause(Reply):
    """A reason why a job is not delivered yet, or was late."""

    _always = ("cause",)
    cause: str = ""
    text: str = ""
    until: Optional[datetime] = None
    late: float = 0.0
    count: int = 0
    at: Optional[datetime] = None


@dataclass(frozen=True)
class Explanation(Reply):
    """Why a job is not delivered yet, or was delivered late."""

    _always = ("id", "text", "causes")
    id: str = ""
    seq: int = 0
    topic: str = ""
    state: str = ""
    due_at: Optional[datetime] = None
    late: float = 0.0
    text: str = ""
    causes: List[Cause] = field(default_factory=list)


@dataclass(frozen=True)
class Topic(Reply):
    """Counts of a topic: jobs by state now, and totals."""

    _always = ("topic", "ready", "paused")
    topic: str = ""
    delayed: int = 0
    ready: int = 0
    reserved: int = 0
    dead: int = 0
    retained: int = 0
    oldest_due_at: Optional[datetime] = None
    paused: bool = False
    paused_until: Optional[datetime] = None
    throttled_until: Optional[datetime] = None
    added: int = 0
    finished: int = 0
    deleted: int = 0
    timeouts: int = 0
    died: int = 0
    expired: int = 0
    settings_revision: int = 0


@dataclass(frozen=True)
class Stats(Reply):
    """Counts of all topics together."""

    _always = ("topics", "ready")
    topics: int = 0
    delayed: int = 0
    ready: int = 0
    reserved: int = 0
    dead: int = 0
    retained: int = 0


@dataclass(frozen=True)
class Forecast(Reply):
    """How many delayed jobs are due in each step of time. ``before``, ``jobs`` and ``after`` together are all of them;
    ``overdue`` counts those that were due before the present minute."""

    _always = ("start", "step", "jobs")
    topic: str = ""
    start: Optional[datetime] = None
    step: float = 0.0
    jobs: List[int] = field(default_factory=list)
    before: int = 0
    after: int = 0
    overdue: int = 0


@dataclass(frozen=True)
class DueTopic(Reply):
    """A topic with how many of its jobs are due."""

    _always = ("topic", "jobs")
    topic: str = ""
    jobs: int = 0


@dataclass(frozen=True)
class DueTopics(Reply):
    """The topics of which most delayed jobs are due in one step of time. ``jobs`` counts those of all topics."""

    _always = ("start", "step", "jobs", "topics")
    start: Optional[datetime] = None
    step: float = 0.0
    jobs: int = 0
    topics: List[DueTopic] = field(default_factory=list)


@dataclass(frozen=True)
class Rates(Reply):
    """What happened to jobs in each step of the last 15 minutes, oldest first; the last number of each list is of the
    step under way. The lists are empty if the node that replied has recorded nothing."""

    _always = ("step", "added")
    topic: str = ""
    start: Optional[datetime] = None
    step: float = 0.0
    added: List[int] = field(default_factory=list)
    delivered: List[int] = field(default_factory=list)
    finished: List[int] = field(default_factory=list)
    deleted: List[int] = field(default_factory=list)
    timeouts: List[int] = field(default_factory=list)
    died: List[int] = field(default_factory=list)
    expired: List[int] = field(default_factory=list)


@dataclass(frozen=True)
class Pause(Reply):
    """How a topic stands after a pause or resume."""

    _always = ("paused",)
    paused: bool = False
    paused_until: Optional[datetime] = None


@dataclass(frozen=True)
class TopicSettings(Reply):
    """The settings of a topic (docs/limits.md) and their revision, 0 when there are none."""

    _always = ("revision", "settings")
    topic: str = ""
    revision: int = 0
    settings: JSON = field(default_factory=dict)


@dataclass(frozen=True)
class Swept(Reply):
    """How many jobs a call on a topic changed. ``more``: it ended before it had seen all; call again."""

    _always = ("count",)
    count: int = 0
    more: bool = False


@dataclass(frozen=True)
class Rescheduled(Reply):
    """What became of the due times. ``unchanged`` jobs were due then already; ``skipped`` cannot be due then, ``reason`` says
    why the first. ``more``: call again with ``next`` as ``cursor``."""

    _always = ("count",)
    count: int = 0
    unchanged: int = 0
    skipped: int = 0
    reason: str = ""
    more: bool = False
    next: str = ""


@dataclass(frozen=True)
class ChangedFound(Reply):
    """What became of a call on the jobs that were found. ``skipped`` could not be changed; ``reason`` says why the
    first was. ``more``: call again with ``next`` as ``cursor``. ``incomplete``: jobs may have been missed, because a topic's
    index is being built."""

    _always = ("count",)
    count: int = 0
    skipped: int = 0
    reason: str = ""
    more: bool = False
    next: str = ""
    incomplete: bool = False


@dataclass(frozen=True)
class Schedule(Reply):
    """A recurring job (docs/schedules.md)."""

    _always = ("schedule", "spec")
    schedule: str = ""
    revision: int = 0
    spec: str = ""
    zone: str = ""
    start: Optional[datetime] = None
    end: Optional[datetime] = None
    jitter: float = 0.0
    overlap: str = ""
    missed: str = ""
    missed_max: int = 0
    missed_after: float = 0.0
    paused: bool = False
    trouble: str = ""
    next_at: Optional[datetime] = None
    created_at: Optional[datetime] = None
    changed_at: Optional[datetime] = None
    counts: Dict[str, int] = field(default_factory=dict)
    job: JSON = field(default_factory=dict)


@dataclass(frozen=True)
class SchedulePut(Reply):
    """What became of a schedule that was put."""

    _always = ("schedule", "revision")
    schedule: str = ""
    revision: int = 0
    existing: bool = False
    replaced: bool = False


@dataclass(frozen=True)
class PlannedRun(Reply):
    """A time at which a schedule runs; ``local`` is in the schedule's zone."""

    _always = ("planned_at",)
    planned_at: Optional[datetime] = None
    local: str = ""


@dataclass(frozen=True)
class PastRun(Reply):
    """What became of a run."""

    _always = ("outcome",)
    planned_at: Optional[datetime] = None
    at: Optional[datetime] = None
    outcome: str = ""
    now: bool = False
    count: int = 0
    id: str = ""
    seq: int = 0
    code: str = ""


@dataclass(frozen=True)
class Member(Reply):
    """A node of the cluster."""

    _always = ("id",)
    id: str = ""
    address: str = ""
    http_address: str = ""
    role: str = ""
    voter: bool = False
    non_voter: bool = False
    """It was started with --non-voter."""
    alive: bool = False
    draining: bool = False
    """It does not lead, and clients should use other nodes."""
    applied_index: int = 0
    lag: int = 0
    version: str = ""
    disk_free: int = 0
    """Bytes; 0 while the node does not answer."""
    disk_low: bool = False
    cluster_version: int = 0
    min_cluster_version: int = 0
    max_cluster_version: int = 0


@dataclass(frozen=True)
class Health(Reply):
    """The cluster's state for an operator."""

    _always = ("healthy",)
    healthy: bool = False
    failure_tolerance: int = 0
    reasons: List[str] = field(default_factory=list)
    cluster_version: int = 0
    upgrade: str = ""


@dataclass(frozen=True)
class NodeDigest(Reply):
    """The digest of one node's state, or why there is none."""

    _always = ("id",)
    id: str = ""
    digest: str = ""
    error: str = ""


@dataclass(frozen=True)
class Verification(Reply):
    """Whether the states of all nodes are equal at one index of the log."""

    _always = ("equal", "digests")
    equal: bool = False
    index: int = 0
    digests: List[NodeDigest] = field(default_factory=list)


@dataclass(frozen=True)
class NodeClock(Reply):
    """One node's clock: how many seconds it is ahead of the majority's, and the error of that."""

    _always = ("id",)
    id: str = ""
    voter: bool = False
    answered: bool = False
    offset: float = 0.0
    within: float = 0.0
    off: bool = False


@dataclass(frozen=True)
class Clocks(Reply):
    """The clocks of the nodes, as the leader sees them (docs/operations.md)."""

    _always = ("max_offset", "clocks")
    max_offset: float = 0.0
    agreed: bool = False
    majority: Optional[datetime] = None
    cluster_ahead: float = 0.0
    clocks: List[NodeClock] = field(default_factory=list)
