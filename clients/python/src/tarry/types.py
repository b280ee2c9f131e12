"""What calls take and return. Durations are in seconds, instants are aware datetimes."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Mapping, Optional, Sequence, Union

from ._replies import (
    Added as Added,
    Cause as Cause,
    Changed as Changed,
    Clocks as Clocks,
    DueTopic as DueTopic,
    DueTopics as DueTopics,
    Event as Event,
    Explanation as Explanation,
    Forecast as Forecast,
    Health as Health,
    History as History,
    Job as Job,
    Member as Member,
    NodeClock as NodeClock,
    NodeDigest as NodeDigest,
    PastRun as PastRun,
    Pause as Pause,
    PlannedRun as PlannedRun,
    Rates as Rates,
    Rescheduled as Rescheduled,
    Reserved as Reserved,
    Schedule as Schedule,
    SchedulePut as SchedulePut,
    Stats as Stats,
    Topic as Topic,
    TopicSettings as TopicSettings,
    Verification as Verification,
)
from ._reply import (
    JSON as JSON,
    NotUnderstood as NotUnderstood,
    Reply as Reply,
    decode as decode,
    decode_all as decode_all,
    decode_body as decode_body,
    instant as instant,
    member as member,
)

Seconds = Union[int, float, timedelta]
"""A duration."""

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
class Ref:
    """Names a job by its id and one reservation of it by its token."""

    id: str
    token: Optional[str] = None


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
class Swept(Reply):
    """How many jobs a call on a topic changed. ``more``: it ended before it had seen all; call again."""

    _always = ("count",)
    count: int = 0
    more: bool = False


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
