<?php

declare(strict_types=1);

namespace Tarry;

/**
 * A client of a cluster. Any node serves any call; the client asks the leader first, once a
 * reply has named it.
 *
 * Calls throw TarryException. A call that a node refuses for now is tried again, on the other
 * nodes at once, for as long as $patience says; one whose outcome is unknown only where
 * repeating does no harm. Durations are in seconds.
 */
final class Client
{
    /** The longest wait that a node takes in one request. */
    private const MAX_WAIT = 300.0;
    /** A rest of a wait that is not worth another request. */
    private const SHORT_WAIT = 0.05;
    /** About how long a node works on one sweep before it replies that there is more. */
    private const SWEEP_TIME = 20.0;

    private Caller $caller;
    private ?float $deadline = null;
    /** @var (callable(): bool)|null */
    private $stop = null;

    /**
     * @param list<string> $addresses of nodes: host:port, or URLs
     * @param float $timeout of one attempt at one node, beyond the wait that a reserve asks for
     * @param float $patience for how long a call is tried again; 0 is one round over the nodes
     * @param bool $learn ask for the other members after the first reply; a process that lives for
     *     one web request need not
     */
    public function __construct(array $addresses, float $timeout = 10.0, float $patience = 30.0, bool $learn = true)
    {
        $this->caller = new Caller($addresses, $timeout, $patience, $learn);
    }

    /** The same client, whose calls end so many seconds from now, retries and all. */
    public function withDeadline(float $seconds): self
    {
        $copy = clone $this;
        $copy->deadline = Clock::now() + $seconds;
        return $copy;
    }

    /**
     * The same client, whose calls end when $stop returns true; it is asked about once a second.
     *
     * @param callable(): bool $stop
     */
    public function withStop(callable $stop): self
    {
        $copy = clone $this;
        $copy->stop = $stop;
        return $copy;
    }

    /** Adds a job. Adding the same NewJob again, after whatever error, makes no second job. */
    public function add(NewJob $job): Added
    {
        return Added::fromReply($this->post('/v1/jobs', $job->toRequest(), true));
    }

    /**
     * Adds up to 1000 jobs in one request.
     *
     * @param list<NewJob> $jobs
     * @return list<Added|TarryException> one for each job, in order
     */
    public function addBatch(array $jobs): array
    {
        $reply = $this->post('/v1/jobs/batch', ['jobs' => self::requests($jobs)], true);
        return array_map(
            static fn (array $r): Added|TarryException => $r['success'] ? Added::fromReply($r) : TarryException::fromReply($r, 200),
            self::results($reply, count($jobs)),
        );
    }

    /**
     * Adds up to 1000 jobs, all of them or none.
     *
     * @param list<NewJob> $jobs
     * @return list<Added>
     */
    public function addAll(array $jobs): array
    {
        $reply = $this->post('/v1/jobs/batch', ['jobs' => self::requests($jobs), 'atomic' => true], true);
        return self::allAdded($reply, count($jobs));
    }

    /**
     * Waits up to $wait for jobs and reserves up to $max of them.
     *
     * @param list<string> $topics
     * @param float|null $ttr how long the reservations last; null: each job's own
     * @param string $consumer who asks, up to 64 bytes, shown with the jobs
     * @return list<ReservedJob> empty when there was none in time
     */
    public function reserve(array $topics, int $max = 1, float $wait = 0.0, ?float $ttr = null, string $consumer = ''): array
    {
        $end = Clock::now() + $wait;
        for ($left = $wait;; $left = $end - Clock::now()) {
            $now = round(min(max($left, 0.0), self::MAX_WAIT), 3);
            $reply = $this->call(new Request('POST', '/v1/reserve', self::given([
                'topics' => $topics,
                'max' => $max,
                'wait' => $now,
                'ttr' => $ttr,
                'consumer' => $consumer === '' ? null : $consumer,
            ]), true, $now));
            if ($reply['jobs'] !== [] || $end - Clock::now() <= self::SHORT_WAIT) {
                return array_map(ReservedJob::fromReply(...), $reply['jobs']);
            }
            Caller::sleep(self::SHORT_WAIT); // the node ended the wait early because it stops
        }
    }

    /**
     * Delivers jobs over one open connection as they become ready: read it with foreach.
     *
     * @param list<string> $topics
     * @param int $credit how many jobs of the stream may be unfinished at a time, 1 to 1000
     * @param int $max ends the stream after so many jobs; 0: never
     * @param float|null $ttr how long the reservations last; null: each job's own
     * @param float $heartbeat after three of them without a sign of the node the stream goes on with another
     * @param bool $releaseOnClose gives unfinished jobs back when the connection ends
     */
    public function stream(
        array $topics,
        int $credit = 1,
        int $max = 0,
        ?float $ttr = null,
        string $consumer = '',
        float $heartbeat = 15.0,
        bool $releaseOnClose = false,
    ): Stream {
        return new Stream($this->caller, self::given([
            'topics' => $topics,
            'credit' => $credit,
            'max' => $max === 0 ? null : $max,
            'ttr' => $ttr,
            'heartbeat' => $heartbeat,
            'on_close' => $releaseOnClose ? 'release' : null,
            'consumer' => $consumer === '' ? null : $consumer,
        ]), $this->stop);
    }

    /**
     * Ends a job that was worked on. It succeeds too when an earlier attempt of this call, whose
     * reply was lost, has ended it.
     */
    public function finish(ReservedJob|string $job, ?string $token = null): void
    {
        $this->end(new Request('POST', self::jobPath($job, 'finish'), self::given(['token' => self::token($job, $token)]), true));
    }

    /**
     * Finishes up to 1000 jobs in one request.
     *
     * @param list<ReservedJob> $jobs
     * @return list<TarryException|null> null for each one that is finished
     */
    public function finishBatch(array $jobs): array
    {
        $refs = array_map(static fn (ReservedJob $j): array => ['id' => $j->id, 'token' => $j->token], $jobs);
        $reply = $this->post('/v1/finish', ['jobs' => $refs], true);
        $earlier = $this->caller->earlier;
        return array_map(
            static fn (array $r): ?TarryException => $r['success'] || ($earlier && $r['code'] === ErrorCode::NOT_FOUND)
                ? null : TarryException::fromReply($r, 200),
            self::results($reply, count($jobs)),
        );
    }

    /**
     * Ends a job and adds others in the same step: all of it happens, or nothing. It is not sent
     * again after an unknown outcome.
     *
     * @param list<NewJob> $then
     * @return list<Added>
     */
    public function finishThen(ReservedJob|string $job, array $then, ?string $token = null): array
    {
        $reply = $this->post(self::jobPath($job, 'finish'), self::given([
            'token' => self::token($job, $token),
            'then' => self::requests($then),
        ]), false);
        return self::allAdded($reply, count($then));
    }

    /** Prolongs a reservation by $ttr from now; null is the job's own TTR. */
    public function touch(ReservedJob|string $job, ?float $ttr = null, ?string $token = null): Changed
    {
        return $this->change($job, 'touch', ['token' => self::token($job, $token), 'ttr' => $ttr], true);
    }

    /** Gives a reserved job back. $delay null: as the job's backoff says; 0.0: at once. */
    public function release(
        ReservedJob|string $job,
        ?float $delay = null,
        string $reason = '',
        ?int $priority = null,
        ?string $token = null,
    ): Changed {
        return $this->change($job, 'release', [
            'token' => self::token($job, $token),
            'delay' => $delay,
            'priority' => $priority,
            'reason' => $reason === '' ? null : $reason,
        ]);
    }

    /** Sets a reserved job aside until it is kicked. */
    public function bury(ReservedJob|string $job, string $reason = '', ?int $priority = null, ?string $token = null): Changed
    {
        return $this->change($job, 'bury', [
            'token' => self::token($job, $token),
            'priority' => $priority,
            'reason' => $reason === '' ? null : $reason,
        ]);
    }

    /** Makes a dead or delayed job ready, in $toTopic if that is given. */
    public function kick(string $id, ?string $toTopic = null): Changed
    {
        return $this->change($id, 'kick', ['to_topic' => $toTopic]);
    }

    /** Puts a job into another topic, in the state in which it is. */
    public function move(ReservedJob|string $job, string $to, ?string $token = null): Changed
    {
        return $this->change($job, 'move', ['token' => self::token($job, $token), 'to' => $to], true);
    }

    /**
     * Changes a delayed, ready or dead job in place.
     *
     * @param array{delay?: float, due_at?: \DateTimeInterface|string, expires_at?: \DateTimeInterface|string, ttr?: float, priority?: int, max_attempts?: int,
     *     backoff?: array<mixed>, headers?: array<string, string>, body?: mixed,
     *     if_revision?: int, if_state?: list<string>} $changes
     */
    public function update(string $id, array $changes): Changed
    {
        foreach (['due_at', 'expires_at'] as $name) {
            if (($changes[$name] ?? null) instanceof \DateTimeInterface) {
                $changes[$name] = Json::time($changes[$name]);
            }
        }
        if (isset($changes['headers'])) {
            $changes['headers'] = (object) $changes['headers'];
        }
        if (array_key_exists('body', $changes)) {
            $body = Json::body($changes['body']);
            unset($changes['body']);
            $changes += $body;
        }
        return Changed::fromReply($this->call(new Request('PATCH', self::jobPath($id), $changes)));
    }

    /**
     * Deletes a job in any state; with a token only while that reservation lasts.
     *
     * @param list<string>|null $ifState deletes only a job in one of these states
     */
    public function delete(ReservedJob|string $job, ?string $token = null, ?int $ifRevision = null, ?array $ifState = null): void
    {
        $this->end(new Request('DELETE', self::jobPath($job) . self::query([
            'token' => self::token($job, $token),
            'if_revision' => $ifRevision,
            'if_state' => $ifState === null ? null : implode(',', $ifState),
        ]), null, true));
    }

    /** Everything known of a job. */
    public function get(string $id): Job
    {
        return Job::fromReply($this->read(self::jobPath($id)));
    }

    /**
     * What happened to a job, as far as its topic keeps histories.
     *
     * @return array{id: string, seq: int, topic: string, state: string, events: list<array<string, mixed>>, dropped: int}
     */
    public function history(string $id): array
    {
        return $this->read(self::jobPath($id, 'history'));
    }

    /**
     * Jobs, page by page while they are read: those of a topic, or those of all topics whose id
     * begins with a prefix.
     *
     * @param array<string, string> $headers that a job must have, with these values
     * @param int $page jobs in one reply, 1 to 1000
     * @return \Generator<int, Job>
     */
    public function jobs(
        ?string $topic = null,
        ?string $state = null,
        ?string $idPrefix = null,
        ?string $reason = null,
        array $headers = [],
        bool $bodies = false,
        int $page = 100,
    ): \Generator {
        $query = ['state' => $state, 'id_prefix' => $idPrefix, 'reason' => $reason, 'body' => $bodies ? 'true' : null, 'max' => $page];
        $query += self::headerQuery($headers);
        $path = $topic === null ? '/v1/jobs' : self::topicPath($topic, 'jobs');
        $incomplete = false;
        do {
            $reply = $this->read($path . self::query($query));
            foreach ($reply['jobs'] as $job) {
                yield Job::fromReply($job);
            }
            $incomplete = $incomplete || ($reply['incomplete'] ?? false);
            $query['cursor'] = $reply['next'] ?? null;
        } while ($query['cursor'] !== null);
        if ($incomplete) {
            throw new TarryException(ErrorCode::INCOMPLETE, 'jobs may be missing: the index of a header is being built');
        }
    }

    /**
     * Why a job is not delivered yet, or was late.
     *
     * @return array<string, mixed> as in docs/http-api.md
     */
    public function explain(string $id): array
    {
        return $this->read(self::jobPath($id, 'explain'));
    }

    /**
     * Deletes the jobs that are found, such as all timers of one order.
     *
     * @param array<string, mixed> $found topic, state, id_prefix, reason, headers, cursor, and max; without max all
     * @return array{deleted: int, more?: bool, next?: string} more: call again with next as cursor
     */
    public function deleteJobs(array $found): array
    {
        return $this->changeFound('DELETE', '/v1/jobs', $found, null);
    }

    /**
     * Changes the jobs that are found, as update() does with one.
     *
     * @param array<string, mixed> $found as in deleteJobs()
     * @param array<string, mixed> $changes as in update()
     * @return array{updated: int, skipped?: int, reason?: string, more?: bool, next?: string}
     */
    public function updateJobs(array $found, array $changes): array
    {
        return $this->changeFound('PATCH', '/v1/jobs', $found, $changes);
    }

    /**
     * Makes the dead and delayed ones of the jobs that are found ready.
     *
     * @param array<string, mixed> $found as in deleteJobs()
     * @return array{kicked: int, skipped?: int, reason?: string, more?: bool, next?: string}
     */
    public function kickJobs(array $found, ?string $toTopic = null): array
    {
        return $this->changeFound('POST', '/v1/jobs/kick', $found, self::given(['to_topic' => $toTopic]));
    }

    /**
     * @param array<string, mixed> $found
     * @param array<string, mixed>|null $in
     * @return array<string, mixed>
     */
    private function changeFound(string $method, string $path, array $found, ?array $in): array
    {
        $query = self::headerQuery($found['headers'] ?? []) + array_diff_key($found, ['headers' => 0]);
        if (!isset($found['max'])) {
            $query['all'] = 'true';
        }
        return $this->call(new Request($method, $path . self::query($query), $in, wait: self::SWEEP_TIME));
    }

    /**
     * @param array<string, string> $headers
     * @return array<string, string>
     */
    private static function headerQuery(array $headers): array
    {
        $query = [];
        foreach ($headers as $name => $value) {
            $query["header.$name"] = $value;
        }
        return $query;
    }

    /**
     * Kicks dead jobs of a topic, the longest dead first.
     *
     * @param array<string, mixed> $filter as in docs/http-api.md
     * @param int|null $max null: all of them
     * @param float|null $rate jobs a second that become due; null: all at once
     * @return array{kicked: int, more: bool} more: the call ended before it had seen all
     */
    public function kickTopic(string $topic, array $filter = [], ?int $max = null, ?float $rate = null, ?string $toTopic = null): array
    {
        return $this->sweep($topic, 'kick', $filter, $max, ['rate' => $rate, 'to_topic' => $toTopic]);
    }

    /**
     * Deletes jobs of a topic in a state: "dead", "delayed" or "ready".
     *
     * @param array<string, mixed> $filter as in docs/http-api.md
     * @param int|null $max null: all of them
     * @return array{deleted: int, more: bool}
     */
    public function purge(string $topic, string $state, array $filter = [], ?int $max = null): array
    {
        return $this->sweep($topic, 'purge', $filter, $max, ['state' => $state]);
    }

    /**
     * Puts all jobs of a topic into another one, or those in the given states.
     *
     * @param list<string>|null $states
     * @return array{moved: int, more: bool}
     */
    public function moveTopic(string $topic, string $to, ?array $states = null): array
    {
        return $this->call(new Request('POST', self::topicPath($topic, 'move'), self::given(['to' => $to, 'states' => $states]), wait: self::SWEEP_TIME));
    }

    /**
     * The counts of one topic, all zero when it has no jobs.
     *
     * @return array<string, mixed>
     */
    public function topic(string $topic): array
    {
        return $this->read(self::topicPath($topic));
    }

    /**
     * One page of the topics, by name.
     *
     * @return array{topics: list<array<string, mixed>>, next?: string} next: $after of the next page
     */
    public function topics(string $after = '', int $max = 1000): array
    {
        return $this->read('/v1/topics' . self::query(['after' => $after === '' ? null : $after, 'max' => $max]));
    }

    /**
     * The counts over all topics.
     *
     * @return array<string, mixed>
     */
    public function stats(): array
    {
        return $this->read('/v1/stats');
    }

    /**
     * Holds a topic's ready jobs back for so many seconds; null: until it is resumed.
     *
     * @return array{paused: bool, paused_until?: string}
     */
    public function pause(string $topic, ?float $for = null): array
    {
        return $this->post(self::topicPath($topic, 'pause'), self::given(['for' => $for]), true);
    }

    /** @return array{paused: bool} */
    public function resume(string $topic): array
    {
        return $this->call(new Request('POST', self::topicPath($topic, 'resume'), null, true));
    }

    /** @return array{topic: string, revision: int, settings: array<string, mixed>} */
    public function settings(string $topic): array
    {
        return $this->read(self::topicPath($topic, 'settings'));
    }

    /**
     * Replaces the settings of a topic as a whole; with $ifRevision only those of that revision.
     *
     * @param array<string, mixed> $settings as in docs/limits.md
     * @return array{topic: string, revision: int, settings: array<string, mixed>}
     */
    public function setSettings(string $topic, array $settings, ?int $ifRevision = null): array
    {
        $path = self::topicPath($topic, 'settings') . self::query(['if_revision' => $ifRevision]);
        return $this->call(new Request('PUT', $path, $settings, $ifRevision === null));
    }

    /**
     * Makes or replaces a schedule.
     *
     * @param array<string, mixed> $schedule as in docs/schedules.md
     * @return array{schedule: string, revision: int, existing: bool, replaced?: bool}
     */
    public function putSchedule(string $name, array $schedule, ?int $ifRevision = null): array
    {
        $in = $schedule + ($ifRevision === null ? [] : ['if_revision' => $ifRevision]);
        return $this->call(new Request('PUT', self::schedulePath($name), $in, $ifRevision === null));
    }

    /** @return array<string, mixed> */
    public function schedule(string $name): array
    {
        return $this->read(self::schedulePath($name));
    }

    /** Removes a schedule; the jobs of its runs stay. */
    public function deleteSchedule(string $name, ?int $ifRevision = null): void
    {
        $path = self::schedulePath($name) . self::query(['if_revision' => $ifRevision]);
        $this->end(new Request('DELETE', $path, null, $ifRevision === null));
    }

    public function pauseSchedule(string $name): void
    {
        $this->call(new Request('POST', self::schedulePath($name, 'pause'), null, true));
    }

    public function resumeSchedule(string $name): void
    {
        $this->call(new Request('POST', self::schedulePath($name, 'resume'), null, true));
    }

    /** Starts a run now. With a key, the same call again is the same run. */
    public function runSchedule(string $name, ?string $key = null): Added
    {
        return Added::fromReply($this->post(self::schedulePath($name, 'run'), self::given(['key' => $key]), $key !== null));
    }

    /** @return list<array<string, mixed>> the outcomes of the last runs, the latest first */
    public function scheduleRuns(string $name): array
    {
        return $this->read(self::schedulePath($name, 'runs'))['runs'];
    }

    /** @return list<array{planned_at: string, local: string}> */
    public function previewSchedule(string $name, int $count = 10): array
    {
        return $this->read(self::schedulePath($name, 'preview') . self::query(['count' => $count]))['runs'];
    }

    /** @return list<array<string, mixed>> */
    public function members(): array
    {
        return $this->read('/v1/cluster/members')['members'];
    }

    /** @return array<string, mixed> */
    private function call(Request $q): array
    {
        return $this->caller->call($q, $this->deadline, $this->stop);
    }

    /** @return array<string, mixed> */
    private function read(string $path): array
    {
        return $this->call(new Request('GET', $path, null, true));
    }

    /**
     * @param array<string, mixed> $in
     * @return array<string, mixed>
     */
    private function post(string $path, array $in, bool $repeat): array
    {
        return $this->call(new Request('POST', $path, $in, $repeat));
    }

    /** @param array<string, mixed> $in */
    private function change(ReservedJob|string $job, string $verb, array $in, bool $repeat = false): Changed
    {
        return Changed::fromReply($this->post(self::jobPath($job, $verb), self::given($in), $repeat));
    }

    /** That it is not there after an attempt with unknown outcome is what was wanted. */
    private function end(Request $q): void
    {
        try {
            $this->call($q);
        } catch (TarryException $e) {
            if (!$this->caller->earlier || $e->errorCode !== ErrorCode::NOT_FOUND) {
                throw $e;
            }
        }
    }

    /**
     * @param array<string, mixed> $filter
     * @param array<string, mixed> $more
     * @return array<string, mixed>
     */
    private function sweep(string $topic, string $verb, array $filter, ?int $max, array $more): array
    {
        $in = ['max' => $max, 'all' => $max === null ? true : null, 'filter' => $filter === [] ? null : $filter];
        return $this->call(new Request('POST', self::topicPath($topic, $verb), self::given($in + $more), wait: self::SWEEP_TIME));
    }

    /**
     * @param list<NewJob> $jobs
     * @return list<array<string, mixed>>
     */
    private static function requests(array $jobs): array
    {
        return array_map(static fn (NewJob $j): array => $j->toRequest(), array_values($jobs));
    }

    /**
     * @param array<string, mixed> $reply
     * @return list<array<string, mixed>>
     */
    private static function results(array $reply, int $count): array
    {
        $results = $reply['results'] ?? [];
        if (count($results) !== $count) {
            throw new TarryException(ErrorCode::UNKNOWN, "$count items were replied to with " . count($results) . ' results', true);
        }
        return $results;
    }

    /**
     * @param array<string, mixed> $reply
     * @return list<Added>
     */
    private static function allAdded(array $reply, int $count): array
    {
        return array_map(static function (array $r): Added {
            if (!$r['success']) {
                throw TarryException::fromReply($r, 200);
            }
            return Added::fromReply($r);
        }, self::results($reply, $count));
    }

    /**
     * @param array<string, mixed> $values
     * @return array<string, mixed> without those that are null
     */
    private static function given(array $values): array
    {
        return array_filter($values, static fn (mixed $v): bool => $v !== null);
    }

    /** @param array<string, mixed> $parameters */
    private static function query(array $parameters): string
    {
        $query = http_build_query(self::given($parameters), '', '&', PHP_QUERY_RFC3986);
        return $query === '' ? '' : '?' . $query;
    }

    private static function token(ReservedJob|string $job, ?string $token): ?string
    {
        return $token ?? ($job instanceof ReservedJob ? $job->token : null);
    }

    private static function jobPath(ReservedJob|string $job, string $verb = ''): string
    {
        $id = $job instanceof ReservedJob ? $job->id : $job;
        if ($id === '') {
            throw new TarryException(ErrorCode::INVALID_ARGUMENT, 'id is missing', false, 'id');
        }
        return self::path('/v1/jobs/', $id, $verb);
    }

    private static function topicPath(string $topic, string $verb = ''): string
    {
        return self::path('/v1/topics/', $topic, $verb);
    }

    private static function schedulePath(string $name, string $verb = ''): string
    {
        return self::path('/v1/schedules/', $name, $verb);
    }

    /** Dots alone are escaped too: they would mean this or the upper folder. */
    private static function path(string $folder, string $name, string $verb): string
    {
        $segment = $name === '.' || $name === '..' ? str_replace('.', '%2E', $name) : rawurlencode($name);
        return $folder . $segment . ($verb === '' ? '' : '/' . $verb);
    }
}
