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
 *
 * The calls on jobs are here, those on topics, dead jobs, schedules and the cluster in a trait each.
 */
final class Client
{
    use TopicCalls;
    use ScheduleCalls;
    use DeadCalls;
    use NamespaceCalls;
    use TokenCalls;
    use ClusterCalls;

    /** How many items a node takes in one request. */
    private const MAX_BATCH = 1000;
    /** The longest wait that a node takes in one request. */
    private const MAX_WAIT = 300.0;
    /** A rest of a wait that is not worth another request. */
    private const SHORT_WAIT = 0.05;
    /** About how long a node works on one sweep before it replies that there is more. */
    private const SWEEP_TIME = 20.0;
    /** How long an operator's call may take that changes the cluster or compares its nodes. */
    private const OPERATOR_TIME = 120.0;

    private Caller $caller;
    private ?float $deadline = null;
    /** @var (callable(): bool)|null */
    private $stop = null;

    /**
     * @param list<string>|string $addresses of nodes: host:port, or URLs; a text may have several, separated by commas
     * @param float $timeout of one attempt at one node, beyond the wait that a reserve asks for
     * @param float $patience for how long a call is tried again; 0 is one round over the nodes
     * @param bool $learn ask for the other members after the first reply; a process that lives for
     *     one web request need not
     * @param Tls|null $tls for https addresses; null: certificates of the system's authorities are wanted
     * @param string|null $token sent with each call (docs/tokens.md), without TLS only to this machine
     * @param string|null $tokenFile a file that has the token; when it changes, the next call sends the new one
     * @param bool $tokenOverHttp also send the token without TLS to other machines: whoever reads the network has it
     */
    public function __construct(
        array|string $addresses,
        float $timeout = 10.0,
        float $patience = 30.0,
        bool $learn = true,
        ?Tls $tls = null,
        #[\SensitiveParameter]
        ?string $token = null,
        ?string $tokenFile = null,
        bool $tokenOverHttp = false,
    ) {
        $sent = new Token($token, $tokenFile, $tokenOverHttp);
        $this->caller = new Caller($addresses, $timeout, $patience, $learn, $tls ?? new Tls(), $sent);
    }

    /**
     * The same client, whose calls end so many seconds from now, retries and all. The message of a call that is
     * cut off says so. A reserve waits no longer than the deadline allows, and then returns an empty list. A
     * stream has no deadline.
     */
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
        return Added::fromReply($this->post('/v1/jobs', $job->toRequest(), true, Shape::ADDED));
    }

    /**
     * Adds jobs, up to 1000 in one request. When a request fails after the first, its jobs have its error, and
     * those after it are not sent and have not_applied. So it is with the other batches.
     *
     * @param list<NewJob> $jobs
     * @return list<Added|TarryException> one for each job, in order
     */
    public function addBatch(array $jobs): array
    {
        return $this->batch('/v1/jobs/batch', self::requests($jobs), true, Shape::ADDED, self::results(Added::fromReply(...)));
    }

    /**
     * Makes a batch in requests of as many items as a node takes.
     *
     * @param list<mixed> $jobs
     * @param array<string, mixed> $shape of a result
     * @param \Closure(list<array<string, mixed>>): list<mixed> $read
     * @return list<mixed>
     */
    private function batch(string $path, array $jobs, bool $repeat, array $shape, \Closure $read): array
    {
        $results = [];
        $failure = null;
        foreach ($jobs === [] ? [[]] : array_chunk($jobs, self::MAX_BATCH) as $part) {
            $first = count($results);
            $made = array_fill(0, count($part), $failure);
            if ($failure === null) {
                try {
                    $reply = $this->post($path, ['jobs' => $part], $repeat, Shape::batch(count($part), $shape));
                    $made = array_map(static fn (mixed $r): mixed => $r instanceof TarryException ? $r->ofPart($first) : $r, $read($reply['results']));
                } catch (TarryException $e) {
                    if ($first === 0) {
                        throw $e;
                    }
                    $made = array_fill(0, count($part), $e->ofPart($first));
                    $text = "it was not sent, because an earlier part of the batch failed: {$e->getMessage()}";
                    $failure = new TarryException(ErrorCode::NOT_APPLIED, $text, previous: $e);
                }
            }
            array_push($results, ...$made);
        }
        return $results;
    }

    /**
     * Reads results: each what $read makes of it, or an error.
     *
     * @param \Closure(array<string, mixed>): mixed $read
     * @return \Closure(list<array<string, mixed>>): list<mixed>
     */
    private static function results(\Closure $read): \Closure
    {
        $one = static fn (array $r): mixed => $r['success'] ? $read($r) : TarryException::fromReply($r, 200);
        return static fn (array $results): array => array_map($one, $results);
    }

    /**
     * Adds up to 1000 jobs, all of them or none.
     *
     * @param list<NewJob> $jobs
     * @return list<Added>
     */
    public function addAll(array $jobs): array
    {
        $in = ['jobs' => self::requests($jobs), 'atomic' => true];
        return self::allAdded($this->post('/v1/jobs/batch', $in, true, Shape::batch(count($jobs), Shape::ADDED)));
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
        return $this->reserveAfter([], $topics, $max, $wait, $ttr, $consumer)[0];
    }

    /**
     * Finishes up to 1000 jobs and then reserves others, in one step: one call and one commit a job while there is
     * work. One that cannot be finished does not stop the reserve. The finishes are done at once, but it returns
     * as reserve does. It throws only if it is not known that they are done; if the reserve fails after
     * them, there are no jobs.
     *
     * @param non-empty-list<ReservedJob> $finish
     * @param list<string> $topics
     * @return array{list<ReservedJob>, list<TarryException|null>} the jobs, and null for each one that is finished
     */
    public function finishAndReserve(
        array $finish,
        array $topics,
        int $max = 1,
        float $wait = 0.0,
        ?float $ttr = null,
        string $consumer = '',
    ): array {
        if ($finish === []) {
            throw new TarryException(ErrorCode::INVALID_ARGUMENT, 'there is no job to finish', field: 'finish');
        }
        return $this->reserveAfter($finish, $topics, $max, $wait, $ttr, $consumer);
    }

    /**
     * Finishes jobs with its first request, if there are any.
     *
     * @param list<ReservedJob> $finish
     * @param list<string> $topics
     * @return array{list<ReservedJob>, list<TarryException|null>|null}
     */
    private function reserveAfter(array $finish, array $topics, int $max, float $wait, ?float $ttr, string $consumer): array
    {
        $end = Caller::waitEnd($wait, $this->deadline);
        $finished = null;
        while (true) {
            $now = round(min(max($end - Clock::now(), 0.0), self::MAX_WAIT), 3);
            $gives = ['jobs' => [Shape::RESERVED]];
            if ($finish !== [] && $finished === null) {
                $gives += Shape::batch(count($finish), Shape::CHANGED, 'finished');
            }
            try {
                $reply = $this->call(new Request('POST', '/v1/reserve', self::given([
                    'topics' => $topics,
                    'max' => $max,
                    'wait' => $now,
                    'ttr' => $ttr,
                    'consumer' => $consumer === '' ? null : $consumer,
                    'finish' => $finish !== [] && $finished === null ? self::references($finish) : null,
                ]), true, $now, gives: $gives));
            } catch (TarryException $e) {
                if ($finished !== null) {
                    return [[], $finished]; // the next reserve meets it
                }
                throw $e;
            }
            if ($finish !== []) {
                $finished ??= $this->finished($reply['finished']);
            }
            if ($reply['jobs'] !== [] || $end - Clock::now() <= self::SHORT_WAIT) {
                return [array_map(ReservedJob::fromReply(...), $reply['jobs']), $finished];
            }
            Caller::sleep(self::SHORT_WAIT); // the node ended the wait early because it stops
        }
    }

    /**
     * @param list<ReservedJob> $jobs
     * @return list<array{id: string, token: string}>
     */
    private static function references(array $jobs): array
    {
        return array_map(static fn (ReservedJob $j): array => ['id' => $j->id, 'token' => $j->token], $jobs);
    }

    /**
     * What became of finishes: null for each job that is finished, perhaps by an earlier attempt of the last call.
     *
     * @param list<array<string, mixed>> $results
     * @return list<TarryException|null>
     */
    private function finished(array $results): array
    {
        $earlier = $this->caller->earlier;
        return array_map(
            static fn (array $r): ?TarryException => $r['success'] || ($earlier && $r['code'] === ErrorCode::NOT_FOUND)
                ? null : TarryException::fromReply($r, 200),
            $results,
        );
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
        $in = self::given(['token' => self::tokenOf($job, $token)]);
        $this->end(new Request('POST', self::jobPath($job, 'finish'), $in, true, gives: Shape::CHANGED));
    }

    /**
     * Finishes jobs, up to 1000 in one request.
     *
     * @param list<ReservedJob> $jobs
     * @return list<TarryException|null> null for each one that is finished
     */
    public function finishBatch(array $jobs): array
    {
        return $this->batch('/v1/finish', self::references($jobs), true, Shape::CHANGED, $this->finished(...));
    }

    /**
     * Deletes jobs, up to 1000 in one request.
     *
     * @param list<ReservedJob|string> $jobs a reserved job only while its reservation lasts
     * @return list<TarryException|null> null for each one that is deleted
     */
    public function deleteBatch(array $jobs): array
    {
        $refs = array_map(static fn (ReservedJob|string $j): array => is_string($j) ? ['id' => $j] : ['id' => $j->id, 'token' => $j->token], $jobs);
        return $this->batch('/v1/delete', $refs, true, Shape::CHANGED, $this->finished(...));
    }

    /**
     * Makes dead or delayed jobs ready, up to 1000 in one request.
     *
     * @param list<string> $ids
     * @return list<Changed|TarryException> one for each id, in order
     */
    public function kickBatch(array $ids): array
    {
        $refs = array_map(static fn (string $id): array => ['id' => $id], $ids);
        return $this->batch('/v1/kick', $refs, false, Shape::CHANGED, self::results(Changed::fromReply(...)));
    }

    /**
     * Changes jobs, up to 1000 in one request.
     *
     * @param list<array<string, mixed>> $updates each has an 'id' and the changes of update()
     * @return list<Changed|TarryException> one for each, in order
     */
    public function updateBatch(array $updates): array
    {
        $jobs = array_map(Json::members(...), $updates);
        return $this->batch('/v1/update', $jobs, false, Shape::CHANGED, self::results(Changed::fromReply(...)));
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
            'token' => self::tokenOf($job, $token),
            'then' => self::requests($then),
        ]), false, Shape::batch(count($then), Shape::ADDED));
        return self::allAdded($reply);
    }

    /** Prolongs a reservation by $ttr from now; null is the job's own TTR. */
    public function touch(ReservedJob|string $job, ?float $ttr = null, ?string $token = null): Changed
    {
        return $this->change($job, 'touch', ['token' => self::tokenOf($job, $token), 'ttr' => $ttr], true);
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
            'token' => self::tokenOf($job, $token),
            'delay' => $delay,
            'priority' => $priority,
            'reason' => $reason === '' ? null : $reason,
        ]);
    }

    /** Sets a reserved job aside until it is kicked. */
    public function bury(ReservedJob|string $job, string $reason = '', ?int $priority = null, ?string $token = null): Changed
    {
        return $this->change($job, 'bury', [
            'token' => self::tokenOf($job, $token),
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
        return $this->change($job, 'move', ['token' => self::tokenOf($job, $token), 'to' => $to], true);
    }

    /**
     * Changes a delayed, ready or dead job in place.
     *
     * @param array{delay?: float, due_at?: \DateTimeInterface|string, expires_at?: \DateTimeInterface|string, ttr?: float, priority?: int, max_attempts?: int,
     *     backoff?: array<mixed>, headers?: array<string, string>, push_url?: string, body?: mixed,
     *     if_revision?: int, if_state?: list<string>} $changes
     */
    public function update(string $id, array $changes): Changed
    {
        return Changed::fromReply($this->call(new Request('PATCH', self::jobPath($id), Json::members($changes), gives: Shape::CHANGED)));
    }

    /**
     * Deletes a job in any state; with a token only while that reservation lasts.
     *
     * @param list<string>|null $ifState deletes only a job in one of these states
     */
    public function delete(ReservedJob|string $job, ?string $token = null, ?int $ifRevision = null, ?array $ifState = null): void
    {
        $this->end(new Request('DELETE', self::jobPath($job) . self::query([
            'token' => self::tokenOf($job, $token),
            'if_revision' => $ifRevision,
            'if_state' => $ifState === null ? null : implode(',', $ifState),
        ]), null, true, gives: Shape::CHANGED));
    }

    /** Everything known of a job. */
    public function get(string $id): Job
    {
        return Job::fromReply($this->read(self::jobPath($id), Shape::JOB));
    }

    /**
     * Jobs by their ids. It asks again for jobs for which a reply has no room.
     *
     * @param list<string> $ids
     * @param bool $bodies false: without the bodies of the jobs
     * @return list<Job|TarryException> one for each id, in order
     */
    public function getBatch(array $ids, bool $bodies = true): array
    {
        $path = '/v1/get' . self::query(['body' => $bodies ? null : 'false']);
        $jobs = [];
        do {
            $left = array_slice($ids, count($jobs), self::MAX_BATCH);
            $gives = Shape::batch(count($left), Shape::JOB);
            $reply = $this->call(new Request('POST', $path, ['ids' => $left], true, reads: true, gives: $gives));
            foreach ($reply['results'] as $n => $r) {
                if ($n > 0 && ($r['code'] ?? null) === ErrorCode::REPLY_FULL) {
                    break;
                }
                $jobs[] = $r['success'] ? Job::fromReply($r) : TarryException::fromReply($r, 200);
            }
        } while (count($jobs) < count($ids));
        return $jobs;
    }

    /**
     * What happened to a job, as far as its topic keeps histories.
     *
     * @return array{id: string, seq: int, topic: string, state: string, events: list<array<string, mixed>>, dropped: int}
     */
    public function history(string $id): array
    {
        return $this->read(self::jobPath($id, 'history'), ['id' => '', 'events' => [['event' => '']]]);
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
        ?\DateTimeInterface $dueFrom = null,
        ?\DateTimeInterface $dueTo = null,
        ?\DateTimeInterface $diedFrom = null,
        ?\DateTimeInterface $diedTo = null,
        ?string $exactReason = null,
    ): \Generator {
        $query = ['state' => $state, 'id_prefix' => $idPrefix, 'reason' => $reason, 'body' => $bodies ? 'true' : null, 'max' => $page];
        $query += ['due_from' => Json::time($dueFrom), 'due_to' => Json::time($dueTo)];
        $query += ['died_from' => Json::time($diedFrom), 'died_to' => Json::time($diedTo)];
        $query['exact_reason'] = $exactReason;
        $query += self::headerQuery($headers);
        $path = $topic === null ? '/v1/jobs' : self::topicPath($topic, 'jobs');
        $incomplete = false;
        do {
            $reply = $this->read($path . self::query($query), ['jobs' => [Shape::JOB]]);
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
     * @return array<string, mixed> as in docs/http-reference.md
     */
    public function explain(string $id): array
    {
        return $this->read(self::jobPath($id, 'explain'), ['id' => '', 'text' => '', 'causes' => [['cause' => '']]]);
    }

    /**
     * Deletes the jobs that are found, such as all timers of one order.
     *
     * @param array<string, mixed> $found topic, state, id_prefix, reason, headers, cursor, and max; without max all
     * @return array{deleted: int, skipped?: int, reason?: string, incomplete?: bool, more?: bool, next?: string}
     *     more: call again with next as cursor; incomplete: an index is being built, and jobs may be missing
     */
    public function deleteJobs(array $found): array
    {
        return $this->changeFound('DELETE', '/v1/jobs', $found, null, 'deleted');
    }

    /**
     * Changes the jobs that are found, as update() does with one.
     *
     * @param array<string, mixed> $found as in deleteJobs()
     * @param array<string, mixed> $changes as in update()
     * @return array{updated: int, skipped?: int, reason?: string, incomplete?: bool, more?: bool, next?: string}
     */
    public function updateJobs(array $found, array $changes): array
    {
        return $this->changeFound('PATCH', '/v1/jobs', $found, $changes, 'updated');
    }

    /**
     * Makes the dead and delayed ones of the jobs that are found ready.
     *
     * @param array<string, mixed> $found as in deleteJobs()
     * @return array{kicked: int, skipped?: int, reason?: string, incomplete?: bool, more?: bool, next?: string}
     */
    public function kickJobs(array $found, ?string $toTopic = null): array
    {
        return $this->changeFound('POST', '/v1/jobs/kick', $found, self::given(['to_topic' => $toTopic]), 'kicked');
    }

    /**
     * @param array<string, mixed> $found
     * @param array<string, mixed>|null $in
     * @return array<string, mixed>
     */
    private function changeFound(string $method, string $path, array $found, ?array $in, string $count): array
    {
        $query = self::headerQuery($found['headers'] ?? []) + Json::members(array_diff_key($found, ['headers' => 0]));
        if (!isset($found['max'])) {
            $query['all'] = 'true';
        }
        $in = $in === null ? null : Json::members($in);
        return $this->call(new Request($method, $path . self::query($query), $in, work: self::SWEEP_TIME, gives: [$count => 0]));
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

    /** @return array<string, mixed> */
    private function call(Request $q): array
    {
        return $this->caller->call($q, $this->deadline, $this->stop);
    }

    /**
     * @param array<string, mixed> $gives
     * @return array<string, mixed>
     */
    private function read(string $path, array $gives): array
    {
        return $this->call(new Request('GET', $path, null, true, gives: $gives));
    }

    /**
     * @param array<string, mixed> $in
     * @param array<string, mixed> $gives
     * @return array<string, mixed>
     */
    private function post(string $path, array $in, bool $repeat, array $gives): array
    {
        return $this->call(new Request('POST', $path, $in, $repeat, gives: $gives));
    }

    /** @param array<string, mixed> $in */
    private function change(ReservedJob|string $job, string $verb, array $in, bool $repeat = false): Changed
    {
        return Changed::fromReply($this->post(self::jobPath($job, $verb), self::given($in), $repeat, Shape::CHANGED));
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
     * @param list<NewJob> $jobs
     * @return list<array<string, mixed>>
     */
    private static function requests(array $jobs): array
    {
        return array_map(static fn (NewJob $j): array => $j->toRequest(), array_values($jobs));
    }

    /**
     * @param array<string, mixed> $reply
     * @return list<Added>
     */
    private static function allAdded(array $reply): array
    {
        return array_map(static function (array $r): Added {
            if (!$r['success']) {
                throw TarryException::fromReply($r, 200);
            }
            return Added::fromReply($r);
        }, $reply['results']);
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

    private static function tokenOf(ReservedJob|string $job, ?string $token): ?string
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
