"""Client of Tarry, a delay queue that survives the loss of a node.

``Client`` and ``Worker`` are for threads, ``AsyncClient`` and ``AsyncWorker`` for asyncio. The README shows how
to use them, docs/http-api.md of the server says what each call means.
"""

from ._calls import Page
from ._stream import Stream
from ._aiostream import AsyncStream
from .aio import AsyncClient
from .aioworker import AsyncWorker
from .client import Client
from .errors import (
    ConditionFailed,
    IdConflict,
    NotApplied,
    NotFound,
    Permanent,
    Refused,
    StaleToken,
    TarryError,
    TopicFull,
    UnknownOutcome,
)
from .types import (
    Added,
    Backoff,
    Cause,
    Changed,
    ChangedFound,
    Event,
    Explanation,
    Health,
    History,
    Job,
    Member,
    NewJob,
    PastRun,
    Pause,
    PlannedRun,
    Ref,
    Reserved,
    Schedule,
    SchedulePut,
    Stats,
    Swept,
    Topic,
    TopicSettings,
)
from .worker import Worker

__all__ = [
    "Added", "AsyncClient", "AsyncStream", "AsyncWorker", "Backoff", "Cause", "Changed", "ChangedFound", "Client", "ConditionFailed", "Event",
    "Explanation", "Health", "History", "IdConflict", "Job", "Member", "NewJob", "NotApplied", "NotFound", "Page", "PastRun",
    "Pause", "Permanent", "PlannedRun", "Ref", "Refused", "Reserved", "Schedule", "SchedulePut", "StaleToken", "Stats",
    "Stream", "Swept", "TarryError", "Topic", "TopicFull", "TopicSettings", "UnknownOutcome", "Worker",
]  # fmt: skip
