// Durations are numbers of seconds, as everywhere in Tarry. Instants are Dates.

import {
  Added,
  Changed,
  Job,
  ReservedJob,
  History,
  Explanation,
  Topic,
  Stats,
  Forecast,
  DueTopics,
  Rates,
  DeadReasons,
  DeadTopics,
  Rescheduled,
  TopicSettings,
  Settings,
  ScheduleInfo,
  SchedulePut,
  Pause,
  PlannedRun,
  PastRun,
  Member,
  Rule,
  Token,
  TokenPut,
  Identity,
  Quotas,
  Namespace,
  NamespacePut,
  Health,
  Clocks,
  Verification,
} from "./replies.js";

// What calls return.
export * from "./replies.js";

/** What each call may be given besides its own arguments. */
export interface CallOptions {
  /** Cancels the call, its retries included. It then fails with a TarryError whose `cause` is the signal's reason. */
  signal?: AbortSignal;
  /**
   * Seconds by which the call ends, retries and all. It then fails with a TarryError that says so. A reserve waits no longer
   * than that, and gives an empty list. Of lists it is the time for each page.
   */
  deadline?: number;
  /** Seconds that one attempt at one node may take, beyond the `wait` of a reserve. */
  timeout?: number;
  /** Seconds for which the call is tried again, beyond the `wait` of a reserve. 0: one round over the nodes. */
  patience?: number;
}

export interface ClientOptions {
  /** As in CallOptions; default 10. */
  timeout?: number;
  /** As in CallOptions; default 30. */
  patience?: number;
  /**
   * Whether the client learns the leader and the members of the cluster; default true.
   * Turn it off where the nodes' own addresses mean something else than here, as behind a tunnel.
   */
  discover?: boolean;
  /** What is wanted of nodes' certificates, and this client's own, as in Node's tls.connect. `ca` replaces the known authorities. */
  tls?: TLSOptions;
  /** The token that is sent with each call (docs/tokens.md), without TLS only to this machine. */
  token?: string;
  /** A file that has the token. When it changes, the next call sends the new one. Not with `token`. */
  tokenFile?: string;
  /** Also send the token without TLS to other machines. Whoever reads the network then has it. */
  tokenOverHttp?: boolean;
  /** Makes the requests instead of this package. It cannot send an id that is `.` or `..`. Not with `tls`. */
  fetch?: typeof globalThis.fetch;
  /** Called once a call, when it is about to be tried again: why, and for how many seconds. */
  onRetry?: (error: TarryError, left: number) => void;
}

type PEM = string | Uint8Array;

export interface TLSOptions {
  /** Certificates of authorities, as PEM. */
  ca?: PEM | PEM[];
  cert?: PEM | PEM[];
  key?: PEM | PEM[];
  passphrase?: string;
  /** The name in the nodes' certificates, if it is not the host of their addresses. */
  servername?: string;
  /** false: any certificate is accepted; then others can read and change what is sent. */
  rejectUnauthorized?: boolean;
}

export type Outcome = "not_applied" | "unknown";

/** A call that failed. */
export class TarryError extends Error {
  constructor(message: string, details: { code: string; outcome?: Outcome; status?: number; field?: string; retryAfter?: number; cause?: unknown });
  /** Tells failures apart; docs/http-api.md lists the codes. Without a response: `not_applied` or `unknown`. */
  readonly code: string;
  /** `unknown`: the call may have been done. */
  readonly outcome: Outcome;
  /** The HTTP status; undefined when no node responded. */
  readonly status?: number;
  /** The invalid field of the request, with the name of the HTTP API, such as `jobs[3].max_attempts`. */
  readonly field?: string;
  /** Seconds after which the server asks to try again. */
  readonly retryAfter?: number;
  readonly cause?: unknown;
}

/**
 * The body of a job. A string is its text, a Uint8Array its bytes, any other value its JSON.
 * Bytes that are UTF-8 come back as a string.
 */
export type Body = unknown;

/** A job by its id, or one reservation of it by its token too: then a call applies only while it lasts. */
export type Ref = string | { id: string; token?: string };

export type State = "delayed" | "ready" | "reserved" | "dead" | "finished" | "deleted";

/** Waits after failed attempts: always the same, one for each attempt, or growing. */
export type Backoff = number | number[] | { delays?: number[]; base?: number; factor?: number; max?: number; jitter?: number };

/** Narrows a call to a job that is still as it was seen; else it fails with `condition_failed`. */
export interface Condition {
  ifRevision?: number;
  ifState?: State[];
}

export interface AddJob<B = Body> extends Condition {
  topic: string;
  /** Unique while the job lives. Without one the client makes one, so that retries are safe. */
  id?: string;
  body: B;
  /** Until it is due; default 0. Not with `dueAt`. */
  delay?: number;
  dueAt?: Date;
  /** Dropped then, or dead if the topic says so, unless somebody has it. */
  expiresAt?: Date;
  /** How long a reservation lasts; default 60, or the topic's. */
  ttr?: number;
  /** The smallest is handed out first; default 1024. */
  priority?: number;
  /** 0: no limit; default 16, or the topic's. */
  maxAttempts?: number;
  backoff?: Backoff;
  headers?: Record<string, string>;
  /** Where the job is posted, in a topic whose push has `jobUrls`. */
  pushUrl?: string;
  /** What the add does when the id is taken; default `conflict`. */
  ifExists?: "conflict" | "keep" | "replace" | "replace_ended" | "postpone";
}

export interface UpdateJob extends Condition {
  delay?: number;
  dueAt?: Date;
  /** `"never"` removes it. */
  expiresAt?: Date | "never";
  ttr?: number;
  priority?: number;
  maxAttempts?: number;
  /** `[]` removes it. */
  backoff?: Backoff;
  /** All of them; `{}` removes them. */
  headers?: Record<string, string>;
  /** `""` removes it. */
  pushUrl?: string;
  body?: Body;
}

/** Which jobs are meant: those that fit all that is given. Ranges of time do not include their end. */
export interface Filter {
  idPrefix?: string;
  /** A part of the reason or of the last error. */
  reason?: string;
  /** The reason, or else the last error, of dead jobs, as in DeadReasons; `""`: jobs without either. */
  exactReason?: string;
  dueFrom?: Date;
  dueTo?: Date;
  diedFrom?: Date;
  diedTo?: Date;
  headers?: Record<string, string>;
}

export interface ListRequest extends Filter {
  /** Without it: the jobs of all topics, by `idPrefix` or by `headers` that their topics index (docs/headers.md). */
  topic?: string;
  state?: State;
  /** With the bodies. */
  body?: boolean;
  /** Jobs in one page, 1 to 1000; default 100. */
  max?: number;
}

/** The jobs of all topics, or of one, by `idPrefix` or by `headers` that their topics index (docs/headers.md). */
export interface FoundRequest extends Filter {
  topic?: string;
  state?: State;
  /** 1 to 10,000; without it all. */
  max?: number;
  /** The `next` of a call that had `more`. */
  cursor?: string;
}

/** `more`: there may be more jobs; call again with `next` as cursor. */
export interface Found {
  more?: boolean;
  next?: string;
  /** Jobs may have been missed because the index of a topic is being built. */
  incomplete?: boolean;
  /** Jobs that were not as they must be, and why not the first of them. */
  skipped?: number;
  reason?: string;
}

export interface ReserveRequest {
  topics: string[];
  /** 1 to 1000; default 1. */
  max?: number;
  /** How long to wait for a job; default 0. */
  wait?: number;
  /** How long the reservations last; default: each job's own. */
  ttr?: number;
  /** Who asks, in up to 64 bytes: jobs show it while they are reserved. */
  consumer?: string;
}

export interface StreamRequest {
  topics: string[];
  /** How many jobs of the stream may be unfinished at a time, 1 to 1000; default 1. */
  credit?: number;
  /** Ends the stream after so many jobs. */
  max?: number;
  ttr?: number;
  consumer?: string;
  /** How often a node shows on a silent stream that it is there; default 15. After three of them the stream goes on elsewhere. */
  heartbeat?: number;
  /** What becomes of unfinished jobs when the connection ends; default `keep`. */
  onClose?: "keep" | "release";
}

export interface StreamOptions extends Omit<CallOptions, "deadline"> {
  /** false: the stream ends with its connection. */
  reconnect?: boolean;
}

/** Steps of time, counted as in UTC. */
export interface ForecastSteps {
  /** Of the first step; default: of the present one. */
  start?: Date;
  /** Seconds, a multiple of 60; default 3600. */
  step?: number;
}

/** docs/schedules.md explains it. */
export interface Schedule {
  /** A cron expression of five or six fields, a name such as `@daily`, or `@every 90s`. */
  spec: string;
  /** IANA name of a time zone; default UTC. */
  zone?: string;
  start?: Date;
  end?: Date;
  jitter?: number;
  overlap?: "allow" | "skip";
  missed?: "skip" | "one" | "all";
  missedMax?: number;
  missedAfter?: number;
  paused?: boolean;
  job: Pick<AddJob, "topic" | "body" | "ttr" | "priority" | "maxAttempts" | "backoff" | "headers" | "pushUrl">;
}

/** What a token may do. */
export interface TokenSpec {
  description?: string;
  rules: Rule[];
  /** Of the ids of the jobs that it adds. */
  idPrefix?: string;
  expiresAt?: Date;
}

/** A tenant: the topics whose names begin with a prefix, and what they may hold (docs/namespaces.md). */
export interface NamespaceSpec {
  topicPrefix: string;
  /** Of the ids that producers give to its jobs; without one: any. */
  idPrefix?: string;
  description?: string;
  quotas?: Quotas;
}

/**
 * A client of a cluster. It knows several nodes and asks the leader first. It may be shared;
 * it holds nothing that must be closed.
 *
 * A call that a node refuses without doing it (`not_applied`, `overloaded`, `rate_limited`, `disk_low`), or that
 * could not be sent, is tried again for `patience` seconds. A call whose outcome is unknown is
 * tried again where that does no harm: all but update, release, bury, kick, finishThen, kickTopic,
 * releaseTopic, purge, moveTopic, kickDead, purgeDead, deleteJobs, updateJobs, kickJobs, runSchedule without a key, putToken, rotateToken, what changes the cluster, and what has an
 * `ifRevision` for settings or a schedule. Every failure is a TarryError, whose `outcome` says whether the call may have been done.
 */
export class Client {
  /** @param addresses of nodes: host:port, or URLs; a text may have several, separated by commas. It does not connect. */
  constructor(addresses: string | string[], options?: ClientOptions);

  add(job: AddJob, options?: CallOptions): Promise<Added>;
  /**
   * Adds jobs, up to 1000 in one request; each result is what was added, or the error. When a request fails after the
   * first, its jobs have its error, and those after it are not sent and have `not_applied`. So it is with the other batches.
   */
  addBatch(jobs: AddJob[], options?: CallOptions): Promise<(Added | TarryError)[]>;
  /** Adds all of the jobs, or none. */
  addAll(jobs: AddJob[], options?: CallOptions): Promise<Added[]>;
  get<B = Body>(id: string, options?: CallOptions): Promise<Job<B>>;
  /**
   * Jobs by their ids; each result is the job, or the error. With `body: false` without their bodies.
   * It asks again for jobs for which a response has no room.
   */
  getBatch<B = Body>(ids: string[], options?: { body?: boolean } & CallOptions): Promise<(Job<B> | TarryError)[]>;
  history(id: string, options?: CallOptions): Promise<History>;
  /** Why a job is not delivered yet, or was late. */
  explain(id: string, options?: CallOptions): Promise<Explanation>;
  /** Changes a delayed, ready or dead job in place. */
  update(id: string, changes: UpdateJob, options?: CallOptions): Promise<Changed>;
  /** Deletes a job in any state; with a token only while that reservation lasts. */
  delete(ref: Ref, options?: Condition & CallOptions): Promise<void>;
  /** Lists jobs, page by page. Each page is the state at one time; the pages together are not. */
  list<B = Body>(request: ListRequest, options?: CallOptions): AsyncGenerator<Job<B>, void, undefined>;
  /** One page of what list gives. It may be short, or empty, and still have a `next`, the cursor of the next. */
  listPage<B = Body>(request: ListRequest, cursor?: string, options?: CallOptions): Promise<{ jobs: Job<B>[]; next?: string; incomplete?: boolean }>;
  /** Deletes the jobs that are found, such as all timers of one order. */
  deleteJobs(found: FoundRequest, options?: CallOptions): Promise<Found & { deleted: number }>;
  /** Changes them as update does. */
  updateJobs(found: FoundRequest, changes: UpdateJob, options?: CallOptions): Promise<Found & { updated: number }>;
  /** Makes the dead and delayed ones ready. */
  kickJobs(found: FoundRequest, options?: { toTopic?: string } & CallOptions): Promise<Found & { kicked: number }>;

  /** Waits for jobs and reserves some; an empty list means that none came in time. */
  reserve<B = Body>(request: ReserveRequest, options?: CallOptions): Promise<ReservedJob<B>[]>;
  /**
   * Gives jobs as they become ready, until the loop is left or the signal is aborted. When a node
   * stops or fails it goes on with another one; it throws when none responds for `patience`.
   */
  stream<B = Body>(request: StreamRequest, options?: StreamOptions): AsyncIterableIterator<ReservedJob<B>>;
  /** Ends a job that was worked on. Give the reserved job: without its token this ends anybody's reservation. */
  finish(ref: Ref, options?: CallOptions): Promise<void>;
  /** Finishes jobs, up to 1000 in one request; each result is null, or the error. */
  finishBatch(refs: Ref[], options?: CallOptions): Promise<(TarryError | null)[]>;
  /** Deletes jobs as delete does, up to 1000 in one request; each result is null, or the error. */
  deleteBatch(refs: Ref[], options?: CallOptions): Promise<(TarryError | null)[]>;
  /** Makes dead or delayed jobs ready, up to 1000 in one request. */
  kickBatch(ids: string[], options?: CallOptions): Promise<(Changed | TarryError)[]>;
  /** Changes jobs as update does, up to 1000 in one request. */
  updateBatch(updates: ({ id: string } & UpdateJob)[], options?: CallOptions): Promise<(Changed | TarryError)[]>;
  /**
   * Finishes up to 1000 jobs and then reserves others, in one step: one call and one commit a job while there is work.
   * A finish that fails does not stop the reserve; each result in `finished` is null, or the error. The finishes are done
   * at once, but the call ends as `reserve` does. It fails only if it is not known that they are done; if the
   * reserve fails after them there are no jobs.
   */
  finishAndReserve<B = Body>(
    refs: Ref[],
    request: ReserveRequest,
    options?: CallOptions,
  ): Promise<{ jobs: ReservedJob<B>[]; finished: (TarryError | null)[] }>;
  /** Ends a job and adds others, all of it or nothing. One may have the id of the finished job. */
  finishThen(ref: Ref, jobs: AddJob[], options?: CallOptions): Promise<Added[]>;
  /** Prolongs a reservation by `ttr` from now, or by the job's own. */
  touch(ref: Ref, options?: { ttr?: number } & CallOptions): Promise<Changed>;
  /** Gives a reserved job back: after `delay`, or as its backoff says. */
  release(ref: Ref, options?: { delay?: number; priority?: number; reason?: string } & CallOptions): Promise<Changed>;
  /** Sets a reserved job aside until it is kicked. */
  bury(ref: Ref, options?: { priority?: number; reason?: string } & CallOptions): Promise<Changed>;
  /** Makes a dead or delayed job ready. */
  kick(id: string, options?: { toTopic?: string } & CallOptions): Promise<Changed>;
  /** Puts a job into another topic, in the state in which it is. */
  move(ref: Ref, to: string, options?: CallOptions): Promise<Changed>;

  topics(options?: { max?: number } & CallOptions): AsyncGenerator<Topic, void, undefined>;
  topicsPage(options?: { after?: string; max?: number } & CallOptions): Promise<{ topics: Topic[]; next?: string }>;
  /** The counts of a topic, all 0 when it has no jobs. */
  topic(name: string, options?: CallOptions): Promise<Topic>;
  stats(options?: CallOptions): Promise<Stats>;
  /** How many delayed jobs of a topic, or of all, are due in each of the next steps; 24 unless `steps` says otherwise. */
  forecast(topic?: string, options?: { steps?: number } & ForecastSteps & CallOptions): Promise<Forecast>;
  /** The topics of which most delayed jobs are due in one step; 10 unless `max` says otherwise. */
  forecastTopics(options?: { max?: number } & ForecastSteps & CallOptions): Promise<DueTopics>;
  /** What happened to the jobs of a topic, or of all. */
  rates(topic?: string, options?: CallOptions): Promise<Rates>;
  /** Stops handing out the ready jobs of a topic, until it is resumed if no end is given. */
  pause(topic: string, options?: { for?: number; until?: Date } & CallOptions): Promise<Pause>;
  resume(topic: string, options?: CallOptions): Promise<Pause>;
  /** Makes dead jobs ready, the longest dead first; `rate` is in jobs a second. `more`: call it again. */
  kickTopic(topic: string, options?: { max?: number; filter?: Filter; rate?: number; toTopic?: string } & CallOptions): Promise<{ kicked: number; more?: boolean }>;
  /** Gives reserved jobs back at once, because their consumers are gone: those of one, or of all. */
  releaseTopic(topic: string, options?: { consumer?: string; max?: number; filter?: Filter; reason?: string } & CallOptions): Promise<{ released: number; more?: boolean }>;
  /** Deletes jobs in a state. */
  purge(topic: string, state: "dead" | "delayed" | "ready", options?: { max?: number; filter?: Filter } & CallOptions): Promise<{ deleted: number; more?: boolean }>;
  /** Moves the jobs of a topic, those in some states, or those that match. `more`: call it again with `next` as `cursor`. */
  moveTopic(
    topic: string,
    to: string,
    options?: { states?: State[]; max?: number; filter?: Filter; cursor?: string } & CallOptions,
  ): Promise<{ moved: number; skipped?: number; reason?: string; more?: boolean; next?: string }>;
  /**
   * Gives delayed jobs that are due from `dueFrom` to `dueTo` other due times: spread evenly over so many seconds (none becomes
   * due earlier unless `earlier`), or each later by `postpone` seconds.
   */
  reschedule(
    topic: string,
    filter: Filter,
    options: { spread?: number; earlier?: boolean; postpone?: number; max?: number; cursor?: string } & CallOptions,
  ): Promise<Rescheduled>;

  /** The reasons that most dead jobs of a topic have, or of all; 100 unless `max` says otherwise. */
  dead(topic?: string, options?: { max?: number } & CallOptions): Promise<DeadReasons>;
  /** The topics that most dead jobs with a reason are in; an empty one is that of jobs without any. */
  deadTopics(reason: string, options?: { max?: number } & CallOptions): Promise<DeadTopics>;
  /** Makes the dead jobs of all topics with a reason ready. */
  kickDead(reason: string, options?: { max?: number; rate?: number; toTopic?: string } & CallOptions): Promise<{ kicked: number; more?: boolean }>;
  /** Deletes the dead jobs of all topics with a reason. */
  purgeDead(reason: string, options?: { max?: number } & CallOptions): Promise<{ deleted: number; more?: boolean }>;

  settings(topic: string, options?: CallOptions): Promise<TopicSettings>;
  /** Replaces all settings of a topic, if they have the revision; 0: if there are none. */
  setSettings(topic: string, settings: Settings, options?: { ifRevision?: number } & CallOptions): Promise<TopicSettings>;
  /** Sets those that are named and removes those that are null. */
  changeSettings(topic: string, settings: { [K in keyof Settings]: Settings[K] | null }, options?: { ifRevision?: number } & CallOptions): Promise<TopicSettings>;
  deleteSettings(topic: string, options?: { ifRevision?: number } & CallOptions): Promise<TopicSettings>;
  /** The settings of all topics that have any, by name. */
  allSettings(options?: { max?: number } & CallOptions): AsyncGenerator<TopicSettings, void, undefined>;
  allSettingsPage(options?: { after?: string; max?: number } & CallOptions): Promise<{ topics: TopicSettings[]; next?: string }>;

  /** Makes or replaces a schedule. */
  putSchedule(name: string, schedule: Schedule, options?: { ifRevision?: number } & CallOptions): Promise<SchedulePut>;
  schedule(name: string, options?: CallOptions): Promise<ScheduleInfo>;
  schedules(options?: { max?: number } & CallOptions): AsyncGenerator<ScheduleInfo, void, undefined>;
  schedulesPage(options?: { after?: string; max?: number } & CallOptions): Promise<{ schedules: ScheduleInfo[]; next?: string }>;
  deleteSchedule(name: string, options?: { ifRevision?: number } & CallOptions): Promise<void>;
  pauseSchedule(name: string, options?: CallOptions): Promise<void>;
  resumeSchedule(name: string, options?: CallOptions): Promise<void>;
  /** Starts a run now. With a `key` a repeated request is recognized, and so is tried again. */
  runSchedule(name: string, options?: { key?: string } & CallOptions): Promise<Added>;
  /** The last 20 runs, latest first. */
  scheduleRuns(name: string, options?: CallOptions): Promise<PastRun[]>;
  /** The next runs, 1 to 100; default 10. */
  previewSchedule(name: string, options?: { count?: number } & CallOptions): Promise<PlannedRun[]>;
  /** The runs of a schedule that is not stored. */
  previewSpec(spec: string, options?: { zone?: string; start?: Date; end?: Date; after?: Date; count?: number } & CallOptions): Promise<PlannedRun[]>;

  whoAmI(options?: CallOptions): Promise<Identity>;
  /** The tokens by id, without their texts. */
  tokens(options?: { max?: number } & CallOptions): AsyncGenerator<Token, void, undefined>;
  tokensPage(options?: { after?: string; max?: number } & CallOptions): Promise<{ tokens: Token[]; next?: string }>;
  token(id: string, options?: CallOptions): Promise<Token>;
  /** Makes a token, whose text is in the result, or changes what one may do. It is not tried again when its outcome is unknown. */
  putToken(id: string, token: TokenSpec, options?: { ifRevision?: number } & CallOptions): Promise<TokenPut>;
  /** Gives a token a new text. The one before is accepted for `overlap` more seconds; default an hour. */
  rotateToken(id: string, options?: { overlap?: number } & CallOptions): Promise<TokenPut & { token: string }>;
  /** Revokes a token at once and for good. */
  deleteToken(id: string, options?: CallOptions): Promise<void>;

  /** The namespaces that the client may see, by name. */
  namespaces(options?: CallOptions): Promise<Namespace[]>;
  namespace(name: string, options?: CallOptions): Promise<Namespace>;
  /** Makes or replaces a namespace. Quotas that are not given do not bound it. */
  putNamespace(name: string, namespace: NamespaceSpec, options?: { ifRevision?: number } & CallOptions): Promise<NamespacePut>;
  /** Removes a namespace. Its topics and jobs stay. */
  deleteNamespace(name: string, options?: CallOptions): Promise<void>;

  members(options?: CallOptions): Promise<Member[]>;
  health(options?: CallOptions): Promise<Health>;
  clocks(options?: CallOptions): Promise<Clocks>;
  /** Compares the states of all nodes, for up to two minutes, until all have replied. */
  verify(options?: CallOptions): Promise<Verification>;
  /** Hands leadership to a node, or to the best follower; false: it leads already. */
  transferLeadership(id?: string, options?: CallOptions): Promise<boolean>;
  /** Removes a node from the cluster for good. */
  removeMember(id: string, options?: CallOptions): Promise<void>;
  /** Makes the node of this client, which has the address of no other one, join the cluster whose nodes gossip at these addresses. */
  join(addresses: string[], options?: CallOptions): Promise<void>;
  /** Makes the node of this client, which has the address of no other one, leave its cluster and stop. */
  leave(options?: CallOptions): Promise<void>;
  /** Sets the queue's clock back to that of the majority of the nodes, if it is too far ahead. */
  resetClock(options?: CallOptions): Promise<void>;
}

/** Thrown by a worker's function when no further attempt can succeed: the job is buried. */
export class BuryError extends Error {}

/**
 * What a worker does with a job. When it returns the job is finished; when it throws the job is
 * released, or buried with a BuryError, with the message as reason.
 */
export type Handler<B = Body> = (
  job: ReservedJob<B>,
  context: {
    /** Aborted when the reservation is lost, so that another consumer will have the job, and after `timeout`. */
    signal: AbortSignal;
    /** Aborted when the worker stops and waits for the function. */
    stopping: AbortSignal;
  },
) => unknown;

export interface WorkerOptions {
  /** How many functions may run at once, 1 to 1000; default 1. */
  concurrency?: number;
  /** How long reservations last; default: each job's own. They are prolonged while the function runs. */
  ttr?: number;
  /**
   * How long a function may run; default: without end. Then its `signal` is aborted with a TimeoutError, and the
   * reservation is prolonged no more: if the function throws the job is released, and if it does not end the job
   * comes back when the reservation expires.
   */
  timeout?: number;
  /** How long a failed job waits: `base * factor ** (attempts - 1)`, at most `max`. Default: as the job's own backoff says. */
  backoff?: { base: number; factor?: number; max?: number };
  /** As in ReserveRequest. */
  consumer?: string;
  /** As in StreamRequest. */
  heartbeat?: number;
  /** Process signals that stop the worker; default SIGTERM and SIGINT. The second one ends the process. */
  signals?: string[];
  /** Stops the worker when it is aborted. */
  signal?: AbortSignal;
  /**
   * Told what a function has thrown, and what is wrong with a reservation: it could not be prolonged, or ended as
   * wanted. Without a job: no node opens a stream, after 5 s of attempts and each 5 s from then on. Default: console.error.
   */
  onError?: (error: unknown, job?: ReservedJob) => void;
}

/** Runs a function for the jobs of topics. */
export class Worker<B = Body> {
  constructor(client: Client, topics: string | string[], handler: Handler<B>, options?: WorkerOptions);
  /**
   * Works until stop() or a signal, and until the functions that then run have ended. While no node
   * responds it keeps trying; it throws when the nodes refuse its request.
   */
  run(): Promise<void>;
  stop(): void;
}
