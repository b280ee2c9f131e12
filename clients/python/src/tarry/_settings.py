"""What topics and schedules are set to, as type checkers know it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, List, Literal, Mapping, TypedDict

from .types import BackoffLike, Seconds


class PushTarget(TypedDict, total=False):
    """Where the jobs of a topic are posted (docs/push.md)."""

    url: str
    secret: str
    timeout: Seconds
    concurrency: int
    job_urls: bool


class Settings(TypedDict, total=False):
    """The settings of a topic (docs/limits.md)."""

    ttr: Seconds
    max_attempts: int
    backoff: BackoffLike
    max_pending: int
    max_reserved: int
    rate: float
    burst: int
    expire: Seconds
    expiry: Literal["drop", "dead"]
    spread: Seconds
    retain: Seconds
    retain_max: int
    late_finish: Literal["accept", "refuse"]
    require_token: bool
    index_headers: List[str]
    push: PushTarget
    description: str


class _JobNeeds(TypedDict):
    topic: str
    body: Any


class ScheduledJob(_JobNeeds, total=False):
    """The job of each run of a schedule."""

    ttr: Seconds
    priority: int
    max_attempts: int
    backoff: BackoffLike
    headers: Mapping[str, str]
    push_url: str


class _ScheduleNeeds(TypedDict):
    spec: str
    job: ScheduledJob


class NewSchedule(_ScheduleNeeds, total=False):
    """A schedule to put (docs/schedules.md)."""

    zone: str
    start: datetime
    end: datetime
    jitter: Seconds
    overlap: Literal["allow", "skip"]
    missed: Literal["skip", "one", "all"]
    missed_max: int
    missed_after: Seconds
    paused: bool
