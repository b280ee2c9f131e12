"""What calls return. Made from package api/wire: go test ./api -run OpenAPI -update"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Dict, List, Optional

from ._reply import JSON, Reply


@dataclass(frozen=True)
class Added(Reply):
    """What became of an add."""

    _always = ("id", "seq", "state",)
    id: str = ""
    """The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes."""
    seq: int = 0
    """The number of the job, in the order of the adds."""
    state: str = ""
    """The state of the job; gone: it does not exist any more."""
    due_at: Optional[datetime] = None
    """When the job becomes or became ready."""
    revision: int = 0
    """It grows with every change."""
    existing: bool = False
    """Whether the same was there before, and nothing was created."""
    ended: bool = False
    """Whether the job that was there before is dead, finished or deleted: this add makes nothing run."""
    replaced: bool = False
    """Whether it took the place of an earlier one."""
    postponed: bool = False
    """Whether the existing job got the due time of this add."""


@dataclass(frozen=True)
class Changed(Reply):
    """What became of a job."""

    _always = ("id", "state",)
    id: str = ""
    """The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes."""
    seq: int = 0
    """The number of the job, in the order of the adds."""
    state: str = ""
    """The state of the job; gone: it does not exist any more."""
    revision: int = 0
    """It grows with every change."""
    due_at: Optional[datetime] = None
    """When the job becomes or became ready."""
    reserved_until: Optional[datetime] = None
    """When the reservation expires."""


@dataclass(frozen=True)
class Job(Reply):
    """Everything known of a job."""

    _always = ("id", "topic", "state",)
    id: str = ""
    """The producer's name of the job, or the server's."""
    seq: int = 0
    """The number of the job, in the order of the adds."""
    topic: str = ""
    """The topic that the job is in."""
    state: str = ""
    """Delayed, ready, reserved, dead, finished or deleted."""
    revision: int = 0
    """1, and one more with every change; falling due is none."""
    priority: int = 0
    """The smallest is handed out first."""
    due_at: Optional[datetime] = None
    """When the job becomes or became ready."""
    delay: float = 0.0
    """The delay that the last add, change or release gave it."""
    ttr: float = 0.0
    """How long a reservation lasts."""
    attempts: int = 0
    """Attempts so far; bringing back a dead job sets it to 0."""
    max_attempts: int = 0
    """Attempts after which it is dead; 0 is no limit."""
    created_at: Optional[datetime] = None
    """When it was added."""
    modified_at: Optional[datetime] = None
    """When it last changed, other than by falling due."""
    reserved_until: Optional[datetime] = None
    """When the reservation expires."""
    reserved_by: str = ""
    """The consumer that the reserve named."""
    died_at: Optional[datetime] = None
    """When it became dead."""
    finished_at: Optional[datetime] = None
    """When it was finished."""
    deleted_at: Optional[datetime] = None
    """When it was deleted."""
    retained_until: Optional[datetime] = None
    """How long a finished or deleted job stays known."""
    expires_at: Optional[datetime] = None
    """When it is dropped or dead if nobody has taken it."""
    reason: str = ""
    """Of the last release, bury or timeout."""
    last_error: str = ""
    """The last reason that a consumer gave."""
    reserves: int = 0
    """How often it was handed out."""
    timeouts: int = 0
    """How often a reservation expired."""
    releases: int = 0
    """How often it was given back."""
    buries: int = 0
    """How often it was set aside."""
    kicks: int = 0
    """How often it was brought back."""
    backoff: Any = None
    """Its waits after a failed attempt: retries.md."""
    push_url: Optional[str] = None
    """Where the topic's push posts it, instead of the topic's URL: push.md."""
    headers: Dict[str, str] = field(default_factory=dict)
    """An object of names and values."""
    body: Any = None
    """The body of the job: any JSON value, returned as it was sent. Absent in lists without bodies."""


@dataclass(frozen=True)
class Reserved(Reply):
    """A job that was handed out to the caller."""

    _always = ("id", "token",)
    id: str = ""
    """The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes."""
    seq: int = 0
    """The number of the job, in the order of the adds."""
    topic: str = ""
    """The name of the topic, 1 to 200 bytes."""
    token: str = ""
    """Names one reservation of a job."""
    attempts: int = 0
    """Attempts so far, this one included."""
    priority: int = 0
    """The smallest is handed out first."""
    due_at: Optional[datetime] = None
    """When the job becomes or became ready."""
    reserved_until: Optional[datetime] = None
    """When the reservation expires."""
    ttr: float = 0.0
    """How long a reservation lasts, in seconds."""
    headers: Dict[str, str] = field(default_factory=dict)
    """Names and values that go with the job: at most 64, of 8 KiB together."""
    push_url: Optional[str] = None
    """Where the job is posted instead of the URL of its topic, whose push must have job_urls; up to 2000 bytes. In a change, an empty one removes it."""
    body: Any = None
    """The body of the job: any JSON value, returned as it was sent."""


@dataclass(frozen=True)
class History(Reply):
    """What happened to a job."""

    _always = ("id", "events",)
    id: str = ""
    """The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes."""
    seq: int = 0
    """The number of the job, in the order of the adds."""
    topic: str = ""
    """The name of the topic, 1 to 200 bytes."""
    state: str = ""
    """The state of the job; gone: it does not exist any more."""
    events: List[Event] = field(default_factory=list)
    """What happened, oldest first."""
    dropped: int = 0
    """Events after the first that are not kept any more."""


@dataclass(frozen=True)
class Event(Reply):
    """One thing that happened to a job."""

    _always = ("event",)
    at: Optional[datetime] = None
    """When it happened."""
    event: str = ""
    """What happened, such as reserved or timed_out."""
    state: str = ""
    """The state of the job; gone: it does not exist any more."""
    attempt: int = 0
    """The attempt that it belongs to."""
    due_at: Optional[datetime] = None
    """When the job becomes or became ready."""
    consumer: str = ""
    """The name of the consumer, at most 64 bytes."""
    reason: str = ""
    """Why, in the consumer's words: at most 1000 bytes."""


@dataclass(frozen=True)
class Explanation(Reply):
    """Why a job is not delivered yet, or was delivered late."""

    _always = ("id", "text", "causes",)
    id: str = ""
    """The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes."""
    seq: int = 0
    """The number of the job, in the order of the adds."""
    topic: str = ""
    """The name of the topic, 1 to 200 bytes."""
    state: str = ""
    """The state of the job; gone: it does not exist any more."""
    due_at: Optional[datetime] = None
    """When the job becomes or became ready."""
    late: float = 0.0
    """How long the job waited after it was due, in seconds; of a cause, how much of that is its."""
    text: str = ""
    """The same in words."""
    causes: List[Cause] = field(default_factory=list)
    """What keeps, or kept, the job from its consumer."""


@dataclass(frozen=True)
class Cause(Reply):
    """A reason why a job is not delivered yet, or was late."""

    _always = ("cause",)
    cause: str = ""
    """What it is."""
    late: float = 0.0
    """How long the job waited after it was due, in seconds; of a cause, how much of that is its."""
    until: Optional[datetime] = None
    """When it ends; of a cause, at the latest."""
    at: Optional[datetime] = None
    """When it happened."""
    count: int = 0
    """How many jobs it is about."""
    consumer: str = ""
    """Who has reserved the job, if it said so."""
    reason: str = ""
    """Why the job is dead, 100 characters at most; absent if no reason was given."""
    then: str = ""
    """What becomes of a job that expires."""
    text: str = ""
    """The same in words."""


@dataclass(frozen=True)
class Topic(Reply):
    """The counts of a topic: its jobs by state now, and totals."""

    _always = ("topic", "ready", "paused",)
    topic: str = ""
    """The name of the topic, 1 to 200 bytes."""
    delayed: int = 0
    """Jobs that are delayed."""
    ready: int = 0
    """Jobs that are ready."""
    reserved: int = 0
    """Jobs that are reserved."""
    dead: int = 0
    """Jobs that are dead."""
    retained: int = 0
    """Finished and deleted jobs that are retained."""
    oldest_due_at: Optional[datetime] = None
    """The earliest due time of a delayed or ready job."""
    paused: bool = False
    """Whether it is paused."""
    paused_until: Optional[datetime] = None
    """When the pause ends; absent for one without end."""
    throttled_until: Optional[datetime] = None
    """When the topic's rate allows the next job."""
    added: int = 0
    """Jobs added so far."""
    finished: int = 0
    """Jobs finished so far."""
    deleted: int = 0
    """Jobs deleted."""
    timeouts: int = 0
    """Reservations that expired so far."""
    died: int = 0
    """Jobs that died so far."""
    expired: int = 0
    """Jobs that nobody took in time so far."""
    settings_revision: int = 0
    """The revision of the topic's settings."""


@dataclass(frozen=True)
class Stats(Reply):
    """The counts of all topics together."""

    _always = ("topics", "ready",)
    topics: int = 0
    """How many topics there are."""
    delayed: int = 0
    """Jobs that are delayed."""
    ready: int = 0
    """Jobs that are ready."""
    reserved: int = 0
    """Jobs that are reserved."""
    dead: int = 0
    """Jobs that are dead."""
    retained: int = 0
    """Finished and deleted jobs that are retained."""


@dataclass(frozen=True)
class Forecast(Reply):
    """How many delayed jobs are due in each step of time."""

    _always = ("start", "step", "jobs",)
    topic: str = ""
    """The name of the topic, 1 to 200 bytes."""
    start: Optional[datetime] = None
    """When the first step begins."""
    step: float = 0.0
    """How long a step is, in seconds."""
    jobs: List[int] = field(default_factory=list)
    """Delayed jobs that are due in each step."""
    before: int = 0
    """Delayed jobs that are due before the first step."""
    after: int = 0
    """Delayed jobs that are due after the last step."""
    overdue: int = 0
    """Of all these, jobs that were due before the present minute."""


@dataclass(frozen=True)
class DueTopics(Reply):
    """The topics of which most delayed jobs are due in one step of time."""

    _always = ("start", "step", "jobs", "topics",)
    start: Optional[datetime] = None
    """When the time begins."""
    step: float = 0.0
    """How long it is, in seconds."""
    jobs: int = 0
    """Delayed jobs of all topics that are due then."""
    topics: List[DueTopic] = field(default_factory=list)
    """The topics of which most jobs are due then, the most first."""


@dataclass(frozen=True)
class DueTopic(Reply):
    """A topic with how many of its jobs are due."""

    _always = ("topic", "jobs",)
    topic: str = ""
    """The name of the topic, 1 to 200 bytes."""
    jobs: int = 0
    """Delayed jobs of the topic that are due then."""


@dataclass(frozen=True)
class Rates(Reply):
    """What happened to jobs in each step of the last 15 minutes, oldest first; the last number is of the step under way."""

    _always = ("step", "added",)
    topic: str = ""
    """The name of the topic, 1 to 200 bytes."""
    start: Optional[datetime] = None
    """When the first step begins; absent if the node has recorded nothing."""
    step: float = 0.0
    """How long a step is, in seconds."""
    added: List[int] = field(default_factory=list)
    """Jobs added in each step, the last one of the step under way."""
    delivered: List[int] = field(default_factory=list)
    """Jobs handed to consumers in each step."""
    finished: List[int] = field(default_factory=list)
    """Jobs finished in each step."""
    deleted: List[int] = field(default_factory=list)
    """Jobs deleted in each step."""
    timeouts: List[int] = field(default_factory=list)
    """Reservations that expired in each step."""
    died: List[int] = field(default_factory=list)
    """Jobs that died in each step."""
    expired: List[int] = field(default_factory=list)
    """Jobs that nobody took in time in each step."""


@dataclass(frozen=True)
class DeadReasons(Reply):
    """Dead jobs grouped by reason, the largest group first."""

    _always = ("jobs", "groups",)
    topic: str = ""
    """The name of the topic, 1 to 200 bytes."""
    jobs: int = 0
    """All dead jobs."""
    reasons: int = 0
    """How many reasons they have."""
    groups: List[DeadReason] = field(default_factory=list)
    """The groups with most jobs, the most first."""
    more: bool = False
    """Whether there are more groups."""
    incomplete: bool = False
    """Whether a group that is missing may have more jobs than the last one listed, but less than twice as many."""


@dataclass(frozen=True)
class DeadReason(Reply):
    """The dead jobs with one reason."""

    _always = ("reason", "jobs",)
    reason: str = ""
    """The reason with which the jobs died, cut to 200 bytes; empty: none was given."""
    jobs: int = 0
    """Dead jobs with this reason."""
    topics: int = 0
    """How many topics they are in."""
    example: str = ""
    """The id of one of the jobs: of a topic the one that died first."""
    first_died_at: Optional[datetime] = None
    """When the first of the jobs died."""


@dataclass(frozen=True)
class DeadTopics(Reply):
    """Dead jobs with one reason grouped by topic, the largest group first."""

    _always = ("reason", "jobs", "groups",)
    reason: str = ""
    """The reason that was asked for."""
    jobs: int = 0
    """All dead jobs with this reason."""
    topics: int = 0
    """How many topics they are in."""
    groups: List[DeadTopic] = field(default_factory=list)
    """The topics with most of these jobs, the most first."""
    more: bool = False
    """Whether there are more topics."""
    incomplete: bool = False
    """Whether a topic that is missing may have more jobs than the last one listed."""


@dataclass(frozen=True)
class DeadTopic(Reply):
    """The dead jobs of one topic with that reason."""

    _always = ("topic", "jobs",)
    topic: str = ""
    """The name of the topic, 1 to 200 bytes."""
    jobs: int = 0
    """Dead jobs of the topic with this reason."""
    example: str = ""
    """The id of one of the jobs: of a topic the one that died first."""
    first_died_at: Optional[datetime] = None
    """When the first of the jobs died."""


@dataclass(frozen=True)
class Rescheduled(Reply):
    """What became of due times. `more`: call again with `next` as cursor."""

    _always = ("count",)
    count: int = 0
    """Jobs that have another due time now."""
    unchanged: int = 0
    """Jobs that were already due when they should be."""
    skipped: int = 0
    """Jobs that cannot be due then, for example because they expire before."""
    reason: str = ""
    """Why the first job was skipped."""
    more: bool = False
    """Whether there are more jobs: repeat the call."""
    next: str = ""
    """The cursor of the call that goes on."""


@dataclass(frozen=True)
class TopicSettings(Reply):
    """The settings of a topic, and their revision, 0 when there are none."""

    _always = ("revision", "settings",)
    topic: str = ""
    """The name of the topic, 1 to 200 bytes."""
    revision: int = 0
    """It grows with every change."""
    settings: JSON = field(default_factory=dict)
    """The settings of the topic."""


@dataclass(frozen=True)
class Pause(Reply):
    """How a topic stands after a pause or resume."""

    _always = ("paused",)
    topic: str = ""
    """The name of the topic, 1 to 200 bytes."""
    paused: bool = False
    """Whether it is paused."""
    paused_until: Optional[datetime] = None
    """When the pause ends; absent for one without end."""


@dataclass(frozen=True)
class Schedule(Reply):
    """A recurring job (docs/schedules.md)."""

    _always = ("schedule", "spec",)
    schedule: str = ""
    """The name of the schedule, 1 to 150 bytes."""
    revision: int = 0
    """It grows with every change."""
    spec: str = ""
    """When it runs: a cron expression, @daily and the like, or @every 90s."""
    zone: str = ""
    """The time zone, as in the tz database; UTC unless given."""
    start: Optional[datetime] = None
    """It does not run before."""
    end: Optional[datetime] = None
    """It does not run after."""
    jitter: float = 0.0
    """By how much runs are spread at random, in seconds."""
    overlap: str = ""
    """What happens when a run is due while the job of the run before exists."""
    missed: str = ""
    """What happens to runs that were missed."""
    missed_max: int = 0
    """How many missed runs are made up for."""
    missed_after: float = 0.0
    """By how much a run may be late before it counts as missed, in seconds."""
    paused: bool = False
    """Whether it is paused."""
    trouble: str = ""
    """Why the schedule was paused by itself."""
    next_at: Optional[datetime] = None
    """When it runs next."""
    created_at: Optional[datetime] = None
    """When it was created."""
    changed_at: Optional[datetime] = None
    """When it was changed."""
    counts: Dict[str, int] = field(default_factory=dict)
    """How many runs there were."""
    job: JSON = field(default_factory=dict)
    """The job that each run adds."""


@dataclass(frozen=True)
class SchedulePut(Reply):
    """What became of a schedule."""

    _always = ("schedule", "revision",)
    schedule: str = ""
    """The name of the schedule, 1 to 150 bytes."""
    revision: int = 0
    """It grows with every change."""
    existing: bool = False
    """Whether the same was there before, and nothing was created."""
    replaced: bool = False
    """Whether it took the place of an earlier one."""


@dataclass(frozen=True)
class PlannedRun(Reply):
    """A time at which a schedule runs."""

    _always = ("planned_at",)
    planned_at: Optional[datetime] = None
    """When the run is, or was, planned."""
    local: str = ""
    """The same in the schedule's time zone."""


@dataclass(frozen=True)
class PastRun(Reply):
    """What became of a run."""

    _always = ("outcome",)
    planned_at: Optional[datetime] = None
    """When the run is, or was, planned."""
    at: Optional[datetime] = None
    """When it happened."""
    outcome: str = ""
    """What came of it."""
    now: bool = False
    """Whether it was asked for by a call."""
    count: int = 0
    """How many jobs it is about."""
    id: str = ""
    """The id of the job that it added."""
    seq: int = 0
    """The number of the job, in the order of the adds."""
    code: str = ""
    """What failed, for programs; docs/http-api.md lists them."""


@dataclass(frozen=True)
class Member(Reply):
    """A node of the cluster."""

    _always = ("id",)
    id: str = ""
    """The name of the node."""
    address: str = ""
    """Where other nodes reach it, host:port."""
    http_address: str = ""
    """Where clients reach it, host:port."""
    role: str = ""
    """leader, follower or another of Raft's."""
    voter: bool = False
    """Whether it votes."""
    non_voter: bool = False
    """It was started with --non-voter, so it never will; absent if not, and while it is not alive."""
    alive: bool = False
    """Whether it answers."""
    draining: bool = False
    """It is drained, or about to stop: it does not lead, and clients should use other nodes; absent if not."""
    applied_index: int = 0
    """How far it has applied the log."""
    lag: int = 0
    """Log entries that it is behind the leader."""
    disk_free: int = 0
    """The free bytes of the disk of its data directory; absent while it does not answer."""
    disk_low: bool = False
    """Whether that is below its --disk-low-water, so that adds are refused or soon will be."""
    version: str = ""
    """The release that it runs."""
    cluster_version: int = 0
    """The version of the replicated state."""
    min_cluster_version: int = 0
    """The oldest version of the state that it can run."""
    max_cluster_version: int = 0
    """The newest version of the state that it can run."""


@dataclass(frozen=True)
class Rule(Reply):
    """Allows verbs on topics (docs/tokens.md)."""

    _always = ("topics", "verbs",)
    topics: List[str] = field(default_factory=list)
    """Names of topics, or prefixes with a * behind them."""
    verbs: List[str] = field(default_factory=list)
    """What is allowed on them; observe, operate and admin are about the cluster."""


@dataclass(frozen=True)
class Token(Reply):
    """A token without its text, which is stored nowhere."""

    _always = ("id", "revision", "rules",)
    id: str = ""
    """The id of the token."""
    revision: int = 0
    """It grows with every change."""
    description: str = ""
    """For people, at most 200 bytes."""
    rules: List[Rule] = field(default_factory=list)
    """What is allowed: at most 64 rules."""
    id_prefix: str = ""
    """The ids of the jobs that the token adds must begin with it."""
    expires_at: Optional[datetime] = None
    """When the token ends."""
    created_at: Optional[datetime] = None
    """When it was created."""
    old_until: Optional[datetime] = None
    """Until when the text before the last rotation is accepted, too."""


@dataclass(frozen=True)
class TokenPut(Reply):
    """What became of a token."""

    _always = ("id", "revision",)
    id: str = ""
    """The id of the token."""
    revision: int = 0
    """It grows with every change."""
    token: str = field(default="", repr=False)
    """The text of the token, which is shown this once and stored nowhere."""


@dataclass(frozen=True)
class Identity(Reply):
    """Who the client is for the cluster, and what it may do."""

    _always = ("mode", "rules",)
    mode: str = ""
    """What becomes of a call that nothing allows: nothing is checked, it is done and counted, or it is refused."""
    id: str = ""
    """The id of the token; absent without one."""
    description: str = ""
    """For people, at most 200 bytes."""
    rules: List[Rule] = field(default_factory=list)
    """What is allowed: at most 64 rules."""
    id_prefix: str = ""
    """The ids of the jobs that the token adds must begin with it."""
    expires_at: Optional[datetime] = None
    """When the token ends."""


@dataclass(frozen=True)
class Quotas(Reply):
    """What a namespace may hold; what is missing is not bounded."""

    jobs: Optional[int] = None
    """Jobs in all states, also retained ones."""
    bytes: Optional[int] = None
    """Bytes of the bodies of these jobs."""
    topics: Optional[int] = None
    """Topics. One without jobs counts until it is removed, after an hour."""
    rate: Optional[float] = None
    """Jobs added a second through each node."""


@dataclass(frozen=True)
class NamespaceUse(Reply):
    """What a namespace holds."""

    _always = ("jobs", "bytes", "topics",)
    jobs: int = 0
    """Jobs in all states, also retained ones."""
    bytes: int = 0
    """Bytes of the bodies of these jobs."""
    topics: int = 0
    """Topics."""


@dataclass(frozen=True)
class Namespace(Reply):
    """A namespace, and what it holds (docs/namespaces.md)."""

    _always = ("name", "revision", "topic_prefix",)
    name: str = ""
    """The name of the namespace."""
    revision: int = 0
    """It grows with every change."""
    topic_prefix: str = ""
    """The topics whose names begin with it are in the namespace. It may not begin with that of another namespace."""
    id_prefix: str = ""
    """The ids that producers give to jobs in its topics begin with it."""
    description: str = ""
    """For people, at most 200 bytes."""
    quotas: Quotas = field(default_factory=Quotas)
    """What the namespace may hold. What is not given is not bounded."""
    use: NamespaceUse = field(default_factory=NamespaceUse)
    """What the namespace holds."""


@dataclass(frozen=True)
class NamespacePut(Reply):
    """What became of a namespace."""

    _always = ("name", "revision",)
    name: str = ""
    """The name of the namespace."""
    revision: int = 0
    """It grows with every change."""
    existing: bool = False
    """Whether it was the same before."""


@dataclass(frozen=True)
class Health(Reply):
    """The cluster's state for an operator."""

    _always = ("healthy",)
    healthy: bool = False
    """Whether all works, and as many nodes may fail as should: problems that are only to be solved in time do not count."""
    failure_tolerance: int = 0
    """How many nodes can fail; negative: so many are missing."""
    severity: str = ""
    """How bad it is: critical means that clients are affected now. The alerts use the same words."""
    reasons: List[str] = field(default_factory=list)
    """What is wrong."""
    cluster_version: int = 0
    """The version of the replicated state."""
    upgrade: str = ""
    """What keeps the cluster version from being raised."""


@dataclass(frozen=True)
class Clocks(Reply):
    """The clocks of the nodes, as the leader sees them (docs/operations.md)."""

    _always = ("max_offset", "clocks",)
    max_offset: float = 0.0
    """By how much a clock may be off, in seconds."""
    agreed: bool = False
    """Whether the clocks of a majority agree."""
    majority: Optional[datetime] = None
    """The time of the majority."""
    cluster_ahead: float = 0.0
    """By how much the queue's clock is ahead of the majority's, in seconds."""
    clocks: List[NodeClock] = field(default_factory=list)
    """The clocks of the nodes."""


@dataclass(frozen=True)
class NodeClock(Reply):
    """One node's clock."""

    _always = ("id",)
    id: str = ""
    """The name of the node."""
    voter: bool = False
    """Whether it votes."""
    answered: bool = False
    """Whether the node told its time."""
    offset: float = 0.0
    """By how much its clock is ahead of the majority's, in seconds."""
    within: float = 0.0
    """The error of that measurement, in seconds."""
    off: bool = False
    """Whether its clock is wrong."""


@dataclass(frozen=True)
class Verification(Reply):
    """Whether the states of all nodes are equal at one index of the log."""

    _always = ("equal", "digests",)
    equal: bool = False
    """Whether all nodes that answered have the same state."""
    index: int = 0
    """The log index at which the states were compared."""
    digests: List[NodeDigest] = field(default_factory=list)
    """The digests of the nodes."""


@dataclass(frozen=True)
class NodeDigest(Reply):
    """The digest of one node's state, or why there is none."""

    _always = ("id",)
    id: str = ""
    """The name of the node."""
    digest: str = ""
    """A hash of the node's state."""
    error: str = ""
    """Why the node gave no digest."""
