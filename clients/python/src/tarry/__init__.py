"""Client of Tarry, a delay queue that survives the loss of a node.

``Client`` and ``Worker`` are for threads, ``AsyncClient`` and ``AsyncWorker`` for asyncio. The README shows how
to use them, docs/http-reference.md of the server says what each call means.
"""

from ._calls import Page
from ._stream import Stream
from ._aiostream import AsyncStream
from .aio import AsyncClient
from .aioworker import AsyncWorker
from ._dead import DeadReason, DeadReasons, DeadTopic, DeadTopics
from ._namespaces import Namespace, NamespacePut, NamespaceUse, Quotas
from ._settings import NewSchedule, PushTarget, ScheduledJob, Settings
from ._tokens import Identity, Rule, Token, TokenPut
from .client import Client
from .errors import (
    ConditionFailed,
    Forbidden,
    IdConflict,
    NotApplied,
    NotFound,
    Permanent,
    Refused,
    StaleToken,
    TarryError,
    TopicFull,
    Unauthorized,
    UnknownOutcome,
)
from .types import (
    Added,
    Backoff,
    Cause,
    Changed,
    ChangedFound,
    Clocks,
    DueTopic,
    DueTopics,
    Event,
    Explanation,
    Forecast,
    Health,
    History,
    Job,
    Member,
    NewJob,
    NodeClock,
    NodeDigest,
    PastRun,
    Pause,
    PlannedRun,
    Rates,
    Rescheduled,
    Ref,
    Reserved,
    Schedule,
    SchedulePut,
    Stats,
    Swept,
    Topic,
    TopicSettings,
    Verification,
)
from .worker import Worker

__all__ = [
    "Added", "AsyncClient", "AsyncStream", "AsyncWorker", "Backoff", "Cause", "Changed", "ChangedFound", "Client",
    "Clocks", "ConditionFailed", "DeadReason", "DeadReasons", "DeadTopic", "DeadTopics", "DueTopic", "DueTopics",
    "Event", "Explanation", "Forbidden", "Forecast", "Health", "History", "IdConflict", "Identity", "Job", "Member", "Namespace", "NamespacePut", "NamespaceUse", "NewJob", "NewSchedule", "NodeClock",
    "NodeDigest", "NotApplied", "NotFound", "Page", "PastRun", "Pause", "Permanent", "PlannedRun", "PushTarget", "Quotas", "Rates", "Ref",
    "Refused", "Rescheduled", "Reserved", "Rule", "Schedule", "ScheduledJob", "SchedulePut", "Settings", "StaleToken", "Stats", "Stream", "Swept",
    "TarryError", "Token", "TokenPut", "Topic", "TopicFull", "TopicSettings", "Unauthorized", "UnknownOutcome", "Verification", "Worker",
]  # fmt: skip
