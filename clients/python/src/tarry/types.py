"""What calls take and return. Durations are in seconds, instants are aware datetimes."""

from __future__ import annotations

import base64
import dataclasses
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type, TypeVar, Union

Seconds = Union[int, float, timedelta]
"""A duration."""

JSON = Dict[str, Any]

T = TypeVar("T")


def seconds(d: Seconds) -> float:
    """The number of seconds of a duration, to the millisecond as the server counts."""
    value = d.total_seconds() if isinstance(d, timedelta) else d
    return round(value, 3)


def instant(text: str) -> datetime:
    """Parse an instant of the server."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def instant_text(at: datetime) -> str:
    """An instant as the server reads it; one without a zone is refused."""
    if at.tzinfo is None:
        raise ValueError(f"{at.isoformat()} has no time zone")
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
        return base64.b64decode(reply["body_base64"])
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
            wait = seconds(self.base) * self.factor ** (max(attempts, 1) - 1)
        except OverflowError:
            return seconds(self.max)
        return round(min(wait, seconds(self.max)), 3)

    def encode(self) -> JSON:
        return {"base": seconds(self.base), "factor": self.factor, "max": seconds(self.max), "jitter": self.jitter}


BackoffLike = Union[Backoff, Sequence[Seconds]]
"""A Backoff, or a list of waits of which the last one is for all later attempts."""


def encode_backoff(backoff: BackoffLike) -> Any:
    if isinstance(backoff, Backoff):
        return backoff.encode()
    return [seconds(d) for d in backoff]


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


@dataclass(frozen=True)
class Reply:
    """A part of a reply. ``raw`` is all of it, also what this release of the client does not know."""

    raw: JSON = field(default_factory=dict, repr=False, compare=False)


_instants = frozenset(
    "due_at reserved_until created_at modified_at died_at finished_at deleted_at retained_until expires_at at "
    "oldest_due_at paused_until throttled_until planned_at next_at changed_at start end until".split()
)


def decode(cls: Type[T], reply: JSON) -> T:
    """Make a reply's object; what is absent keeps its default."""
    values: JSON = {}
    made: Any = cls
    for f in dataclasses.fields(made):
        if f.name == "raw":
            values["raw"] = reply
        elif f.name == "body":
            values["body"] = decode_body(reply)
        elif reply.get(f.name) is not None:
            value = reply[f.name]
            values[f.name] = instant(value) if f.name in _instants else value
    return cls(**values)


@dataclass(frozen=True)
class Added(Reply):
    """What became of an add."""

    id: str = ""
    seq: int = 0
    state: str = ""
    due_at: Optional[datetime] = None
    revision: int = 0
    existing: bool = False
    """No job was made, because one was there already."""
    replaced: bool = False
    postponed: bool = False


@dataclass(frozen=True)
class Changed(Reply):
    """What became of a job."""

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
    body: Any = None


JobLike = Union[str, Ref, Reserved]
"""A job: its id; or one reservation, so that a call applies only while it lasts."""


def ref_of(job: JobLike) -> Ref:
    if isinstance(job, str):
        return Ref(job)
    return Ref(job.id, job.token)


@dataclass(frozen=True)
class Job(Reply):
    """Everything known of a job. Listings have no ``body`` unless it is asked for."""

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
    headers: Dict[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True)
class Event(Reply):
    """One thing that happened to a job."""

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

    id: str = ""
    seq: int = 0
    topic: str = ""
    state: str = ""
    events: List[Event] = field(default_factory=list)
    dropped: int = 0


@dataclass(frozen=True)
class Cause(Reply):
    """A reason why a job is not delivered yet, or was late."""

    cause: str = ""
    text: str = ""
    until: Optional[datetime] = None
    late: float = 0.0
    count: int = 0


@dataclass(frozen=True)
class Explanation(Reply):
    """Why a job is not delivered yet, or was delivered late."""

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

    topics: int = 0
    delayed: int = 0
    ready: int = 0
    reserved: int = 0
    dead: int = 0
    retained: int = 0


@dataclass(frozen=True)
class Pause(Reply):
    """How a topic stands after a pause or resume."""

    paused: bool = False
    paused_until: Optional[datetime] = None


@dataclass(frozen=True)
class TopicSettings(Reply):
    """The settings of a topic (docs/limits.md) and their revision, 0 when there are none."""

    topic: str = ""
    revision: int = 0
    settings: JSON = field(default_factory=dict)


@dataclass(frozen=True)
class Swept(Reply):
    """How many jobs a call on a topic changed. ``more``: it ended before it had seen all; call again."""

    count: int = 0
    more: bool = False


@dataclass(frozen=True)
class ChangedFound(Reply):
    """What became of a call on the jobs that were found. ``skipped`` could not be changed; ``reason`` says why the
    first was. ``more``: call again with ``next`` as ``cursor``. ``incomplete``: jobs may have been missed, because a topic's
    index is being built."""

    count: int = 0
    skipped: int = 0
    reason: str = ""
    more: bool = False
    next: str = ""
    incomplete: bool = False


@dataclass(frozen=True)
class Schedule(Reply):
    """A recurring job (docs/schedules.md)."""

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

    schedule: str = ""
    revision: int = 0
    existing: bool = False
    replaced: bool = False


@dataclass(frozen=True)
class PlannedRun(Reply):
    """A time at which a schedule runs; ``local`` is in the schedule's zone."""

    planned_at: Optional[datetime] = None
    local: str = ""


@dataclass(frozen=True)
class PastRun(Reply):
    """What became of a run."""

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

    id: str = ""
    address: str = ""
    http_address: str = ""
    role: str = ""
    voter: bool = False
    alive: bool = False
    applied_index: int = 0
    lag: int = 0
    version: str = ""


@dataclass(frozen=True)
class Health(Reply):
    """The cluster's state for an operator."""

    healthy: bool = False
    failure_tolerance: int = 0
    reasons: List[str] = field(default_factory=list)
    cluster_version: int = 0
    upgrade: str = ""
