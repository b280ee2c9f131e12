// What calls return. Made from package api/wire: go test ./api -run OpenAPI -update
// Durations are numbers of seconds.

import { Backoff, Body, Schedule, State } from "./index.js";

/** What became of an add. */
export interface Added {
  /** The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes. */
  id: string;
  /** The number of the job, in the order of the adds. */
  seq: number;
  /** The state of the job; gone: it does not exist any more. */
  state: State;
  /** When the job becomes or became ready. */
  dueAt: Date;
  /** It grows with every change. */
  revision: number;
  /** Whether the same was there before, and nothing was created. */
  existing: boolean;
  /** Whether the job that was there before is dead, finished or deleted: this add makes nothing run. */
  ended?: boolean;
  /** Whether it took the place of an earlier one. */
  replaced?: boolean;
  /** Whether the existing job got the due time of this add. */
  postponed?: boolean;
}

/** What became of a job. */
export interface Changed {
  /** The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes. */
  id: string;
  /** The number of the job, in the order of the adds. */
  seq: number;
  /** The state of the job; gone: it does not exist any more. */
  state: State;
  /** It grows with every change. */
  revision: number;
  /** When the job becomes or became ready. */
  dueAt: Date;
  /** When the reservation expires. */
  reservedUntil?: Date;
}

/** Everything known of a job. */
export interface Job<B = Body> {
  /** The producer's name of the job, or the server's. */
  id: string;
  /** The number of the job, in the order of the adds. */
  seq: number;
  /** The topic that the job is in. */
  topic: string;
  /** Delayed, ready, reserved, dead, finished or deleted. */
  state: State;
  /** 1, and one more with every change; falling due is none. */
  revision: number;
  /** The smallest is handed out first. */
  priority: number;
  /** When the job becomes or became ready. */
  dueAt: Date;
  /** The delay that the last add, change or release gave it. */
  delay: number;
  /** How long a reservation lasts. */
  ttr: number;
  /** Attempts so far; bringing back a dead job sets it to 0. */
  attempts: number;
  /** Attempts after which it is dead; 0 is no limit. */
  maxAttempts: number;
  /** When it was added. */
  createdAt: Date;
  /** When it last changed, other than by falling due. */
  modifiedAt: Date;
  /** When the reservation expires. */
  reservedUntil?: Date;
  /** The consumer that the reserve named. */
  reservedBy?: string;
  /** When it became dead. */
  diedAt?: Date;
  /** When it was finished. */
  finishedAt?: Date;
  /** When it was deleted. */
  deletedAt?: Date;
  /** How long a finished or deleted job stays known. */
  retainedUntil?: Date;
  /** When it is dropped or dead if nobody has taken it. */
  expiresAt?: Date;
  /** Of the last release, bury or timeout. */
  reason: string;
  /** The last reason that a consumer gave. */
  lastError?: string;
  /** How often it was handed out. */
  reserves: number;
  /** How often a reservation expired. */
  timeouts: number;
  /** How often it was given back. */
  releases: number;
  /** How often it was set aside. */
  buries: number;
  /** How often it was brought back. */
  kicks: number;
  /** Its waits after a failed attempt: retries.md. */
  backoff?: Backoff;
  /** Where the topic's push posts it, instead of the topic's URL: push.md. */
  pushUrl?: string;
  /** An object of names and values. */
  headers?: Record<string, string>;
  /** The body of the job: any JSON value, returned as it was sent. Absent in lists without bodies. */
  body?: B;
}

/** A job that was handed out to the caller. */
export interface ReservedJob<B = Body> {
  /** The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes. */
  id: string;
  /** The number of the job, in the order of the adds. */
  seq: number;
  /** The name of the topic, 1 to 200 bytes. */
  topic: string;
  /** Names one reservation of a job. */
  token: string;
  /** Attempts so far, this one included. */
  attempts: number;
  /** The smallest is handed out first. */
  priority: number;
  /** When the job becomes or became ready. */
  dueAt: Date;
  /** When the reservation expires. */
  reservedUntil: Date;
  /** How long a reservation lasts, in seconds. */
  ttr: number;
  /** Names and values that go with the job: at most 64, of 8 KiB together. */
  headers?: Record<string, string>;
  /** Where the job is posted instead of the URL of its topic, whose push must have job_urls; up to 2000 bytes. In a change, an empty one removes it. */
  pushUrl?: string;
  /** The body of the job: any JSON value, returned as it was sent. */
  body: B;
}

/** What happened to a job. */
export interface History {
  /** The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes. */
  id: string;
  /** The number of the job, in the order of the adds. */
  seq: number;
  /** The name of the topic, 1 to 200 bytes. */
  topic: string;
  /** The state of the job; gone: it does not exist any more. */
  state: State;
  /** What happened, oldest first. */
  events: HistoryEvent[];
  /** Events after the first that are not kept any more. */
  dropped: number;
}

/** One thing that happened to a job. */
export interface HistoryEvent {
  /** When it happened. */
  at: Date;
  /** What happened, such as reserved or timed_out. */
  event: string;
  /** The state of the job; gone: it does not exist any more. */
  state: State;
  /** The attempt that it belongs to. */
  attempt?: number;
  /** When the job becomes or became ready. */
  dueAt?: Date;
  /** The name of the consumer, at most 64 bytes. */
  consumer?: string;
  /** Why, in the consumer's words: at most 1000 bytes. */
  reason?: string;
}

/** Why a job is not delivered yet, or was delivered late. */
export interface Explanation {
  /** The producer's id of the job, or the server's, which begins with $; 1 to 200 bytes. */
  id: string;
  /** The number of the job, in the order of the adds. */
  seq: number;
  /** The name of the topic, 1 to 200 bytes. */
  topic: string;
  /** The state of the job; gone: it does not exist any more. */
  state: State;
  /** When the job becomes or became ready. */
  dueAt: Date;
  /** How long the job waited after it was due, in seconds; of a cause, how much of that is its. */
  late: number;
  /** The same in words. */
  text: string;
  /** What keeps, or kept, the job from its consumer. */
  causes: Cause[];
}

/** A reason why a job is not delivered yet, or was late. */
export interface Cause {
  /** What it is. */
  cause: "not_due" | "paused" | "rate" | "max_reserved" | "jobs_ahead" | "no_consumer" | "reserved" | "dead" | "finished" | "deleted" | "not_recorded" | "expires" | "expired" | "no_target";
  /** How long the job waited after it was due, in seconds; of a cause, how much of that is its. */
  late?: number;
  /** When it ends; of a cause, at the latest. */
  until?: Date;
  /** When it happened. */
  at?: Date;
  /** How many jobs it is about. */
  count?: number;
  /** Who has reserved the job, if it said so. */
  consumer?: string;
  /** Why the job is dead, 100 characters at most; absent if no reason was given. */
  reason?: string;
  /** What becomes of a job that expires. */
  then?: "dead" | "dropped";
  /** The same in words. */
  text: string;
}

/** The counts of a topic: its jobs by state now, and totals. */
export interface Topic {
  /** The name of the topic, 1 to 200 bytes. */
  topic: string;
  /** Jobs that are delayed. */
  delayed: number;
  /** Jobs that are ready. */
  ready: number;
  /** Jobs that are reserved. */
  reserved: number;
  /** Jobs that are dead. */
  dead: number;
  /** Finished and deleted jobs that are retained. */
  retained?: number;
  /** The earliest due time of a delayed or ready job. */
  oldestDueAt?: Date;
  /** Whether it is paused. */
  paused: boolean;
  /** When the pause ends; absent for one without end. */
  pausedUntil?: Date;
  /** When the topic's rate allows the next job. */
  throttledUntil?: Date;
  /** Jobs added so far. */
  added: number;
  /** Jobs finished so far. */
  finished: number;
  /** Jobs deleted. */
  deleted: number;
  /** Reservations that expired so far. */
  timeouts: number;
  /** Jobs that died so far. */
  died: number;
  /** Jobs that nobody took in time so far. */
  expired?: number;
  /** The revision of the topic's settings. */
  settingsRevision?: number;
}

/** The counts of all topics together. */
export interface Stats {
  /** How many topics there are. */
  topics: number;
  /** Jobs that are delayed. */
  delayed: number;
  /** Jobs that are ready. */
  ready: number;
  /** Jobs that are reserved. */
  reserved: number;
  /** Jobs that are dead. */
  dead: number;
  /** Finished and deleted jobs that are retained. */
  retained: number;
}

/** How many delayed jobs are due in each step of time. */
export interface Forecast {
  /** The name of the topic, 1 to 200 bytes. */
  topic?: string;
  /** When the first step begins. */
  start: Date;
  /** How long a step is, in seconds. */
  step: number;
  /** Delayed jobs that are due in each step. */
  jobs: number[];
  /** Delayed jobs that are due before the first step. */
  before: number;
  /** Delayed jobs that are due after the last step. */
  after: number;
  /** Of all these, jobs that were due before the present minute. */
  overdue: number;
}

/** The topics of which most delayed jobs are due in one step of time. */
export interface DueTopics {
  /** When the time begins. */
  start: Date;
  /** How long it is, in seconds. */
  step: number;
  /** Delayed jobs of all topics that are due then. */
  jobs: number;
  /** The topics of which most jobs are due then, the most first. */
  topics: DueTopic[];
}

/** A topic with how many of its jobs are due. */
export interface DueTopic {
  /** The name of the topic, 1 to 200 bytes. */
  topic: string;
  /** Delayed jobs of the topic that are due then. */
  jobs: number;
}

/** What happened to jobs in each step of the last 15 minutes, oldest first; the last number is of the step under way. */
export interface Rates {
  /** The name of the topic, 1 to 200 bytes. */
  topic?: string;
  /** When the first step begins; absent if the node has recorded nothing. */
  start?: Date;
  /** How long a step is, in seconds. */
  step: number;
  /** Jobs added in each step, the last one of the step under way. */
  added: number[];
  /** Jobs handed to consumers in each step. */
  delivered: number[];
  /** Jobs finished in each step. */
  finished: number[];
  /** Jobs deleted in each step. */
  deleted: number[];
  /** Reservations that expired in each step. */
  timeouts: number[];
  /** Jobs that died in each step. */
  died: number[];
  /** Jobs that nobody took in time in each step. */
  expired: number[];
}

/** Dead jobs grouped by reason, the largest group first. */
export interface DeadReasons {
  /** The name of the topic, 1 to 200 bytes. */
  topic?: string;
  /** All dead jobs. */
  jobs: number;
  /** How many reasons they have. */
  reasons?: number;
  /** The groups with most jobs, the most first. */
  groups: DeadReason[];
  /** Whether there are more groups. */
  more?: boolean;
  /** Whether a group that is missing may have more jobs than the last one listed, but less than twice as many. */
  incomplete?: boolean;
}

/** The dead jobs with one reason. */
export interface DeadReason {
  /** The reason with which the jobs died, cut to 200 bytes; empty: none was given. */
  reason: string;
  /** Dead jobs with this reason. */
  jobs: number;
  /** How many topics they are in. */
  topics?: number;
  /** The id of one of the jobs: of a topic the one that died first. */
  example: string;
  /** When the first of the jobs died. */
  firstDiedAt?: Date;
}

/** Dead jobs with one reason grouped by topic, the largest group first. */
export interface DeadTopics {
  /** The reason that was asked for. */
  reason: string;
  /** All dead jobs with this reason. */
  jobs: number;
  /** How many topics they are in. */
  topics: number;
  /** The topics with most of these jobs, the most first. */
  groups: DeadTopic[];
  /** Whether there are more topics. */
  more?: boolean;
  /** Whether a topic that is missing may have more jobs than the last one listed. */
  incomplete?: boolean;
}

/** The dead jobs of one topic with that reason. */
export interface DeadTopic {
  /** The name of the topic, 1 to 200 bytes. */
  topic: string;
  /** Dead jobs of the topic with this reason. */
  jobs: number;
  /** The id of one of the jobs: of a topic the one that died first. */
  example: string;
  /** When the first of the jobs died. */
  firstDiedAt: Date;
}

/** What became of due times. `more`: call again with `next` as cursor. */
export interface Rescheduled {
  /** Jobs that have another due time now. */
  rescheduled: number;
  /** Jobs that were already due when they should be. */
  unchanged?: number;
  /** Jobs that cannot be due then, for example because they expire before. */
  skipped?: number;
  /** Why the first job was skipped. */
  reason?: string;
  /** Whether there are more jobs: repeat the call. */
  more?: boolean;
  /** The cursor of the call that goes on. */
  next?: string;
}

/** The settings of a topic, and their revision, 0 when there are none. */
export interface TopicSettings {
  /** The name of the topic, 1 to 200 bytes. */
  topic: string;
  /** It grows with every change. */
  revision: number;
  /** The settings of the topic. */
  settings: Settings;
}

/** docs/limits.md explains them. */
export interface Settings {
  /** How long a reservation lasts, for jobs added without a ttr. Without it: 60 s. */
  ttr?: number;
  /** Attempts (0 is no limit) for jobs added without max_attempts. Without it: 16. */
  maxAttempts?: number;
  /** Delays after a failure, for jobs without a backoff of their own. Without it: after a release 1 s, doubling up to an hour, shortened by up to 20% at random; after an expired reservation none. */
  backoff?: Backoff;
  /** Maximum number of delayed and ready jobs; further adds are refused. Without it: no limit. */
  maxPending?: number;
  /** Maximum number of reserved jobs. Without it: no limit. */
  maxReserved?: number;
  /** Maximum average number of jobs handed out per second, with up to three decimals. Without it: no limit. */
  rate?: number;
  /** Maximum number of jobs handed out at once under a rate. Without it: the jobs of one second. */
  burst?: number;
  /** How long after its due time a job may be handed out. Without it: no limit. */
  expire?: number;
  /** What happens to an expired job. Without it: drop. */
  expiry?: "drop" | "dead";
  /** Window over which jobs that are due at the same time are spread. Without it: none. */
  spread?: number;
  /** How long finished and deleted jobs are retained, with a history. Without it: not retained. */
  retain?: number;
  /** Maximum number of retained jobs; beyond it those are removed whose retention ends first. Without it: 1,000,000. */
  retainMax?: number;
  /** What happens to a finish after the reservation has expired, if nobody else has had the job since. Without it: accept. */
  lateFinish?: "accept" | "refuse";
  /** A reservation can only be ended or extended with its token. Without it: false. */
  requireToken?: boolean;
  /** Up to 4 headers by which the jobs are found. Without it: none. */
  indexHeaders?: string[];
  /** The HTTP target that the leader posts jobs to: see push.md. Without it: none. */
  push?: { url?: string; secret?: string; hasSecret?: boolean; timeout?: number; concurrency?: number; jobUrls?: boolean };
  /** Purpose and owner of the topic, up to 200 bytes. Without it: none. */
  description?: string;
}

/** How a topic stands after a pause or resume. */
export interface Pause {
  /** The name of the topic, 1 to 200 bytes. */
  topic: string;
  /** Whether it is paused. */
  paused: boolean;
  /** When the pause ends; absent for one without end. */
  pausedUntil?: Date;
}

/** A recurring job (docs/schedules.md). */
export interface ScheduleInfo {
  /** The name of the schedule, 1 to 150 bytes. */
  schedule: string;
  /** It grows with every change. */
  revision: number;
  /** When it runs: a cron expression, @daily and the like, or @every 90s. */
  spec: string;
  /** The time zone, as in the tz database; UTC unless given. */
  zone: string;
  /** It does not run before. */
  start?: Date;
  /** It does not run after. */
  end?: Date;
  /** By how much runs are spread at random, in seconds. */
  jitter: number;
  /** What happens when a run is due while the job of the run before exists. */
  overlap: "allow" | "skip";
  /** What happens to runs that were missed. */
  missed: "skip" | "one" | "all";
  /** How many missed runs are made up for. */
  missedMax?: number;
  /** By how much a run may be late before it counts as missed, in seconds. */
  missedAfter: number;
  /** Whether it is paused. */
  paused: boolean;
  /** Why the schedule was paused by itself. */
  trouble?: string;
  /** When it runs next. */
  nextAt?: Date;
  /** When it was created. */
  createdAt: Date;
  /** When it was changed. */
  changedAt: Date;
  /** How many runs there were. */
  counts: ScheduleCounts;
  /** The job that each run adds. */
  job: Schedule["job"];
}

/** How many runs of a schedule there were. */
export interface ScheduleCounts {
  /** Runs that added a job. */
  started: number;
  /** Runs left out because of an overlap. */
  skipped: number;
  /** Runs that were missed. */
  missed: number;
  /** Runs whose job was refused. */
  refused: number;
}

/** What became of a schedule. */
export interface SchedulePut {
  /** The name of the schedule, 1 to 150 bytes. */
  schedule: string;
  /** It grows with every change. */
  revision: number;
  /** Whether the same was there before, and nothing was created. */
  existing: boolean;
  /** Whether it took the place of an earlier one. */
  replaced?: boolean;
}

/** A time at which a schedule runs. */
export interface PlannedRun {
  /** When the run is, or was, planned. */
  plannedAt: Date;
  /** The same in the schedule's time zone. */
  local: string;
}

/** What became of a run. */
export interface PastRun {
  /** When the run is, or was, planned. */
  plannedAt: Date;
  /** When it happened. */
  at: Date;
  /** What came of it. */
  outcome: "started" | "skipped" | "missed" | "refused";
  /** Whether it was asked for by a call. */
  now?: boolean;
  /** How many jobs it is about. */
  count?: number;
  /** The id of the job that it added. */
  id?: string;
  /** The number of the job, in the order of the adds. */
  seq?: number;
  /** What failed, for programs; docs/http-api.md lists them. */
  code?: string;
}

/** A node of the cluster. */
export interface Member {
  /** The name of the node. */
  id: string;
  /** Where other nodes reach it, host:port. */
  address: string;
  /** Where clients reach it, host:port. */
  httpAddress: string;
  /** leader, follower or another of Raft's. */
  role: "leader" | "follower";
  /** Whether it votes. */
  voter: boolean;
  /** It was started with --non-voter, so it never will; absent if not, and while it is not alive. */
  nonVoter?: boolean;
  /** Whether it answers. */
  alive: boolean;
  /** It is drained, or about to stop: it does not lead, and clients should use other nodes; absent if not. */
  draining?: boolean;
  /** How far it has applied the log. */
  appliedIndex: number;
  /** Log entries that it is behind the leader. */
  lag: number;
  /** The free bytes of the disk of its data directory; absent while it does not answer. */
  diskFree?: number;
  /** Whether that is below its --disk-low-water, so that adds are refused or soon will be. */
  diskLow?: boolean;
  /** The release that it runs. */
  version: string;
  /** The version of the replicated state. */
  clusterVersion: number;
  /** The oldest version of the state that it can run. */
  minClusterVersion: number;
  /** The newest version of the state that it can run. */
  maxClusterVersion: number;
}

/** Allows verbs on topics (docs/tokens.md). */
export interface Rule {
  /** Names of topics, or prefixes with a * behind them. */
  topics: string[];
  /** What is allowed on them; observe, operate and admin are about the cluster. */
  verbs: ("add" | "consume" | "read" | "manage" | "push" | "observe" | "operate" | "admin")[];
}

/** A token without its text, which is stored nowhere. */
export interface Token {
  /** The id of the token. */
  id: string;
  /** It grows with every change. */
  revision: number;
  /** For people, at most 200 bytes. */
  description?: string;
  /** What is allowed: at most 64 rules. */
  rules: Rule[];
  /** The ids of the jobs that the token adds must begin with it. */
  idPrefix?: string;
  /** What the token may use on each node; absent: no limit. */
  limits?: TokenLimits;
  /** When the token ends. */
  expiresAt?: Date;
  /** When it was created. */
  createdAt: Date;
  /** Until when the text before the last rotation is accepted, too. */
  oldUntil?: Date;
}

/** What a token may use on each node. */
export interface TokenLimits {
  /** Operations a second; each job of a batch, and of a get of many, is one. */
  rate?: number;
  /** Open connections. */
  connections?: number;
  /** Streams, and reserves that wait, at once. */
  waiters?: number;
  /** Bytes of bodies a second, of requests and of the jobs that it gets. */
  bytes?: number;
}

/** What became of a token. */
export interface TokenPut {
  /** The id of the token. */
  id: string;
  /** It grows with every change. */
  revision: number;
  /** The text of the token, which is shown this once and stored nowhere. */
  token?: string;
}

/** Who the client is for the cluster, and what it may do. */
export interface Identity {
  /** What becomes of a call that nothing allows: nothing is checked, it is done and counted, or it is refused. */
  mode: "off" | "report" | "enforce";
  /** The id of the token; absent without one. */
  id?: string;
  /** For people, at most 200 bytes. */
  description?: string;
  /** What is allowed: at most 64 rules. */
  rules: Rule[];
  /** The ids of the jobs that the token adds must begin with it. */
  idPrefix?: string;
  /** What the token may use on each node; absent: no limit. */
  limits?: TokenLimits;
  /** When the token ends. */
  expiresAt?: Date;
}

/** What a namespace may hold; what is missing is not bounded. */
export interface Quotas {
  /** Jobs in all states, also retained ones. */
  jobs?: number;
  /** Bytes of the bodies of these jobs. */
  bytes?: number;
  /** Topics. One without jobs counts until it is removed, after an hour. */
  topics?: number;
  /** Jobs added a second through each node. */
  rate?: number;
}

/** What a namespace holds. */
export interface NamespaceUse {
  /** Jobs in all states, also retained ones. */
  jobs: number;
  /** Bytes of the bodies of these jobs. */
  bytes: number;
  /** Topics. */
  topics: number;
}

/** A namespace, and what it holds (docs/namespaces.md). */
export interface Namespace {
  /** The name of the namespace. */
  name: string;
  /** It grows with every change. */
  revision: number;
  /** The topics whose names begin with it are in the namespace. It may not begin with that of another namespace. */
  topicPrefix: string;
  /** The ids that producers give to jobs in its topics begin with it. */
  idPrefix?: string;
  /** For people, at most 200 bytes. */
  description?: string;
  /** What the namespace may hold. What is not given is not bounded. */
  quotas: Quotas;
  /** What the namespace holds. */
  use: NamespaceUse;
}

/** What became of a namespace. */
export interface NamespacePut {
  /** The name of the namespace. */
  name: string;
  /** It grows with every change. */
  revision: number;
  /** Whether it was the same before. */
  existing: boolean;
}

/** The cluster's state for an operator. */
export interface Health {
  /** Whether all works, and as many nodes may fail as should: problems that are only to be solved in time do not count. */
  healthy: boolean;
  /** How many nodes can fail; negative: so many are missing. */
  failureTolerance: number;
  /** How bad it is: critical means that clients are affected now. The alerts use the same words. */
  severity: "none" | "warning" | "critical";
  /** What is wrong. */
  reasons: string[];
  /** What is wrong, or soon will be, with how bad it is. */
  problems: Problem[];
  /** The version of the replicated state. */
  clusterVersion: number;
  /** What keeps the cluster version from being raised. */
  upgrade: string;
}

/** What is wrong with the cluster, or soon will be. */
export interface Problem {
  /** How bad it is. */
  severity: "warning" | "critical";
  /** What is wrong. */
  reason: string;
  /** What it is about, such as node_down. */
  kind: string;
  /** Whether the cluster is not healthy because of it; otherwise all works, and something is to be done in time. */
  unhealthy: boolean;
  /** The node that it is about; absent if it is about no single one. */
  node?: string;
  /** The instant that it is about, such as the end of a certificate; absent if there is none. */
  at?: Date;
}

/** The clocks of the nodes, as the leader sees them (docs/operations.md). */
export interface Clocks {
  /** By how much a clock may be off, in seconds. */
  maxOffset: number;
  /** Whether the clocks of a majority agree. */
  agreed: boolean;
  /** The time of the majority. */
  majority?: Date;
  /** By how much the queue's clock is ahead of the majority's, in seconds. */
  clusterAhead: number;
  /** The clocks of the nodes. */
  clocks: NodeClock[];
}

/** One node's clock. */
export interface NodeClock {
  /** The name of the node. */
  id: string;
  /** Whether it votes. */
  voter: boolean;
  /** Whether the node told its time. */
  answered: boolean;
  /** By how much its clock is ahead of the majority's, in seconds. */
  offset: number;
  /** The error of that measurement, in seconds. */
  within: number;
  /** Whether its clock is wrong. */
  off: boolean;
}

/** Whether the states of all nodes are equal at one index of the log. */
export interface Verification {
  /** Whether all nodes that answered have the same state. */
  equal: boolean;
  /** The log index at which the states were compared. */
  index: number;
  /** The digests of the nodes. */
  digests: NodeDigest[];
}

/** The digest of one node's state, or why there is none. */
export interface NodeDigest {
  /** The name of the node. */
  id: string;
  /** A hash of the node's state. */
  digest: string;
  /** Why the node gave no digest. */
  error?: string;
}
