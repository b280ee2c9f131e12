<?php

// The driver of the conformance cases: ../../conformance/README.md.

declare(strict_types=1);

namespace Tarry\Conformance;

use Tarry\Added;
use Tarry\Bury;
use Tarry\Changed;
use Tarry\Client;
use Tarry\ErrorCode;
use Tarry\Job;
use Tarry\NewJob;
use Tarry\ReservedJob;
use Tarry\Stream;
use Tarry\TarryException;
use Tarry\Tls;
use Tarry\Worker;

require __DIR__ . '/../autoload.php';

final class Driver
{
    private Client $client;
    private ?Stream $stream = null;

    /** @param array<string, mixed> $a */
    public function verb(string $verb, array $a): mixed
    {
        if ($verb === 'open') {
            $this->stream?->close();
            $this->stream = null;
            $tls = new Tls(...($a['tls'] ?? []));
            try {
                $this->client = new Client(
                    $a['addresses'],
                    $a['timeout'] ?? 10,
                    $a['patience'] ?? 30,
                    tls: $tls,
                    token: $a['token'] ?? null,
                    tokenFile: $a['token_file'] ?? null,
                    tokenOverHttp: $a['token_over_http'] ?? false,
                );
            } catch (\InvalidArgumentException $e) {
                throw new TarryException(ErrorCode::INVALID_ARGUMENT, $e->getMessage());
            }
            return [];
        }
        $c = isset($a['deadline']) ? $this->client->withDeadline($a['deadline']) : $this->client;
        $id = $a['id'] ?? '';
        $token = $a['token'] ?? null;
        $topic = $a['topic'] ?? null;
        $name = $a['name'] ?? '';
        return match ($verb) {
            'add' => self::added($c->add(self::job($a))),
            'add_batch' => ['results' => array_map(
                static fn (Added|TarryException $r): array => $r instanceof Added ? self::added($r) : self::failure($r),
                $c->addBatch(self::jobs($a['jobs'])),
            )],
            'add_all' => ['results' => array_map(self::added(...), $c->addAll(self::jobs($a['jobs'])))],
            'get' => self::known($c->get($id)),
            'get_batch' => ['results' => array_map(
                static fn (Job|TarryException $r): array => $r instanceof Job ? self::known($r) : self::failure($r),
                $c->getBatch($a['ids'], $a['body'] ?? true),
            )],
            'history' => $c->history($id),
            'update' => self::changed($c->update($id, self::changes($a))),
            'delete' => self::nothing($c->delete($id, $token, $a['if_revision'] ?? null, $a['if_state'] ?? null)),
            'reserve' => ['jobs' => array_map(
                self::reserved(...),
                $c->reserve($a['topics'], $a['max'] ?? 1, $a['wait'] ?? 0, $a['ttr'] ?? null, $a['consumer'] ?? ''),
            )],
            'finish_and_reserve' => $this->finishAndReserve($c, $a),
            'finish' => self::nothing($c->finish($id, $token)),
            'finish_batch' => ['results' => self::outcomes($c->finishBatch(array_map(self::reference(...), $a['jobs'])))],
            'delete_batch' => ['results' => self::outcomes($c->deleteBatch(array_map(
                static fn (array $j): ReservedJob|string => isset($j['token']) ? self::reference($j) : $j['id'],
                $a['jobs'],
            )))],
            'kick_batch' => ['results' => self::changedEach($c->kickBatch($a['ids']))],
            'update_batch' => ['results' => self::changedEach($c->updateBatch(array_map(
                static fn (array $j): array => ['id' => $j['id']] + self::changes($j),
                $a['jobs'],
            )))],
            'finish_then' => ['results' => array_map(self::added(...), $c->finishThen($id, self::jobs($a['then']), $token))],
            'touch' => self::changed($c->touch($id, $a['ttr'] ?? null, $token)),
            'release' => self::changed($c->release($id, $a['delay'] ?? null, $a['reason'] ?? '', $a['priority'] ?? null, $token)),
            'bury' => self::changed($c->bury($id, $a['reason'] ?? '', $a['priority'] ?? null, $token)),
            'kick' => self::changed($c->kick($id, $a['to_topic'] ?? null)),
            'move' => self::changed($c->move($id, $a['to'], $token)),
            'explain' => $c->explain($id),
            'delete_jobs' => $c->deleteJobs($a['found']),
            'update_jobs' => $c->updateJobs($a['found'], $a['changes']),
            'kick_jobs' => $c->kickJobs($a['found'], $a['to_topic'] ?? null),
            'list' => ['jobs' => $this->list($c, $a)],
            'kick_topic' => $c->kickTopic($topic, $a['filter'] ?? [], $a['max'] ?? null, $a['rate'] ?? null, $a['to_topic'] ?? null),
            'purge' => $c->purge($topic, $a['state'], $a['filter'] ?? [], $a['max'] ?? null),
            'move_topic' => $c->moveTopic($topic, $a['to'], $a['states'] ?? null, $a['filter'] ?? [], $a['max'] ?? null, $a['cursor'] ?? null),
            'topic' => $c->topic($topic)->members,
            'topics' => self::topics($c, $a['after'] ?? '', $a['max'] ?? 1000),
            'stats' => $c->stats(),
            'forecast' => $c->forecast($topic, $a['step'] ?? null, $a['steps'] ?? null, self::at($a, 'start')),
            'forecast_topics' => $c->forecastTopics($a['step'] ?? null, $a['max'] ?? null, self::at($a, 'start')),
            'rates' => $c->rates($topic),
            'release_topic' => $c->releaseTopic($topic, $a['consumer'] ?? '', $a['filter'] ?? [], $a['max'] ?? null, $a['reason'] ?? ''),
            'reschedule' => $c->reschedule(
                $topic,
                $a['filter'],
                $a['spread'] ?? null,
                $a['earlier'] ?? false,
                $a['postpone'] ?? null,
                $a['max'] ?? null,
                $a['cursor'] ?? null,
            ),
            'dead' => $c->dead($topic, $a['max'] ?? null),
            'dead_topics' => $c->deadTopics($a['reason'], $a['max'] ?? null),
            'kick_dead' => $c->kickDead($a['reason'], $a['max'] ?? null, $a['rate'] ?? null, $a['to_topic'] ?? null),
            'purge_dead' => $c->purgeDead($a['reason'], $a['max'] ?? null),
            'pause' => $c->pause($topic, $a['for'] ?? null, self::at($a, 'until')),
            'resume' => $c->resume($topic),
            'settings' => $c->settings($topic),
            'set_settings' => $c->setSettings($topic, $a['settings']),
            'change_settings' => $c->changeSettings($topic, $a['settings']),
            'delete_settings' => $c->deleteSettings($topic),
            'all_settings' => ['topics' => iterator_to_array($c->allSettings(page: $a['max'] ?? 1000))],
            'schedules' => ['schedules' => iterator_to_array($c->schedules(page: $a['max'] ?? 1000))],
            'put_schedule' => $c->putSchedule($name, $a['schedule']),
            'schedule' => $c->schedule($name),
            'delete_schedule' => self::nothing($c->deleteSchedule($name)),
            'pause_schedule' => self::nothing($c->pauseSchedule($name)),
            'resume_schedule' => self::nothing($c->resumeSchedule($name)),
            'run_schedule' => self::added($c->runSchedule($name, $a['key'] ?? null)),
            'schedule_runs' => ['runs' => $c->scheduleRuns($name)],
            'preview_schedule' => ['runs' => $c->previewSchedule($name, $a['count'] ?? 10)],
            'preview_spec' => ['runs' => $c->previewSpec(
                $a['spec'],
                $a['zone'] ?? null,
                self::at($a, 'start'),
                self::at($a, 'end'),
                self::at($a, 'after'),
                $a['count'] ?? 10,
            )],
            'whoami' => $c->whoAmI(),
            'tokens' => ['tokens' => iterator_to_array($c->tokens(page: $a['max'] ?? 1000))],
            'token' => $c->token($id),
            'put_token' => $c->putToken($id, $a['rules'], $a['description'] ?? null, $a['id_prefix'] ?? null, self::at($a, 'expires_at')),
            'rotate_token' => $c->rotateToken($id, $a['overlap'] ?? null),
            'delete_token' => self::nothing($c->deleteToken($id)),
            'namespaces' => ['namespaces' => $c->namespaces()],
            'namespace' => $c->namespace($a['name']),
            'put_namespace' => $c->putNamespace($a['name'], $a['topic_prefix'], $a['id_prefix'] ?? null, $a['description'] ?? null, $a['quotas'] ?? []),
            'delete_namespace' => self::nothing($c->deleteNamespace($a['name'])),
            'members' => ['members' => $c->members()],
            'health' => $c->health(),
            'clocks' => $c->clocks(),
            'verify' => $c->verify(),
            'transfer_leadership' => ['moved' => $c->transferLeadership($a['id'] ?? null)],
            'remove_member' => self::nothing($c->removeMember($id)),
            'join' => self::nothing($c->join($a['addresses'])),
            'leave' => self::nothing($c->leave()),
            'reset_clock' => self::nothing($c->resetClock()),
            'stream_open' => $this->open($a),
            'stream_next' => $this->next($a),
            'stream_close' => self::nothing($this->stream?->close()),
            default => throw new \DomainException($verb),
        };
    }

    /**
     * @param array<string, mixed> $a
     * @return array<string, mixed>
     */
    private function finishAndReserve(Client $c, array $a): array
    {
        $finish = array_map(self::reference(...), $a['finish']);
        [$jobs, $finished] = $c->finishAndReserve($finish, $a['topics'], $a['max'] ?? 1, $a['wait'] ?? 0, $a['ttr'] ?? null, $a['consumer'] ?? '');
        return ['finished' => self::outcomes($finished), 'jobs' => array_map(self::reserved(...), $jobs)];
    }

    /**
     * @param list<TarryException|null> $failures
     * @return list<array<string, mixed>|\stdClass>
     */
    private static function outcomes(array $failures): array
    {
        return array_map(static fn (?TarryException $e): array|\stdClass => $e === null ? new \stdClass() : self::failure($e), $failures);
    }

    /**
     * @param array<string, mixed> $a
     * @return array<string, mixed>
     */
    private function open(array $a): array
    {
        $this->stream = $this->client->stream(
            $a['topics'],
            $a['credit'] ?? 1,
            $a['max'] ?? 0,
            $a['ttr'] ?? null,
            $a['consumer'] ?? '',
            $a['heartbeat'] ?? 15.0,
            ($a['on_close'] ?? 'keep') === 'release',
        );
        return [];
    }

    /**
     * @param array<string, mixed> $a
     * @return array<string, mixed>
     */
    private function next(array $a): array
    {
        $job = $this->stream?->next($a['deadline'] ?? null);
        if ($job !== null) {
            return ['job' => self::reserved($job)];
        }
        return $this->stream?->ended() ? ['end' => true] : ['timeout' => true];
    }

    /** @param array<string, mixed> $a */
    private static function at(array $a, string $name): ?\DateTimeImmutable
    {
        return isset($a[$name]) ? new \DateTimeImmutable($a[$name]) : null;
    }

    /**
     * One page of the topics, as the harness wants it.
     *
     * @return array<string, mixed>
     */
    private static function topics(Client $c, string $after, int $max): array
    {
        $topics = [];
        foreach ($c->topics($after, $max) as $topic) {
            if (count($topics) === $max) {
                return ['topics' => $topics, 'next' => end($topics)['topic']];
            }
            $topics[] = $topic->members;
        }
        return ['topics' => $topics];
    }

    /**
     * @param array<string, mixed> $a
     * @return list<array<string, mixed>>
     */
    private function list(Client $c, array $a): array
    {
        $jobs = [];
        $all = $c->jobs(
            $a['topic'] ?? null,
            $a['state'] ?? null,
            $a['id_prefix'] ?? null,
            $a['reason'] ?? null,
            $a['headers'] ?? [],
            $a['body'] ?? false,
            $a['max'] ?? 100,
            exactReason: $a['exact_reason'] ?? null,
        );
        foreach ($all as $job) {
            $jobs[] = self::known($job);
        }
        return $jobs;
    }

    /** @param array<string, mixed> $a */
    private static function job(array $a): NewJob
    {
        return new NewJob(
            $a['topic'],
            self::bodyArgument($a),
            $a['id'] ?? null,
            $a['delay'] ?? 0.0,
            isset($a['due_at']) ? new \DateTimeImmutable($a['due_at']) : null,
            isset($a['expires_at']) ? new \DateTimeImmutable($a['expires_at']) : null,
            $a['ttr'] ?? null,
            $a['priority'] ?? null,
            $a['max_attempts'] ?? null,
            $a['if_exists'] ?? null,
            $a['backoff'] ?? null,
            $a['headers'] ?? [],
            $a['if_revision'] ?? null,
            $a['if_state'] ?? null,
            $a['push_url'] ?? null,
        );
    }

    /**
     * @param list<array<string, mixed>> $list
     * @return list<NewJob>
     */
    private static function jobs(array $list): array
    {
        return array_map(self::job(...), $list);
    }

    /** @param array<string, mixed> $a */
    private static function bodyArgument(array $a): mixed
    {
        return isset($a['body_base64']) ? base64_decode($a['body_base64'], true) : $a['body'] ?? null;
    }

    /**
     * @param array<string, mixed> $a
     * @return array<string, mixed>
     */
    private static function changes(array $a): array
    {
        $changes = array_diff_key($a, ['id' => 0, 'body_base64' => 0, 'deadline' => 0]);
        if (isset($a['body_base64'])) {
            $changes['body'] = self::bodyArgument($a);
        }
        return $changes;
    }

    /** @param array<string, mixed> $a */
    private static function reference(array $a): ReservedJob
    {
        return new ReservedJob($a['id'], 0, '', $a['token'], 0, 0, null, null, 0.0, [], null);
    }

    /** @return array<string, mixed> */
    private static function added(Added $r): array
    {
        return ['due_at' => self::time($r->dueAt)] + get_object_vars($r);
    }

    /** @return array<string, mixed> */
    private static function changed(Changed $r): array
    {
        return ['due_at' => self::time($r->dueAt), 'reserved_until' => self::time($r->reservedUntil)] + get_object_vars($r);
    }

    /**
     * @param list<Changed|TarryException> $results
     * @return list<array<string, mixed>>
     */
    private static function changedEach(array $results): array
    {
        return array_map(static fn (Changed|TarryException $r): array => $r instanceof Changed ? self::changed($r) : self::failure($r), $results);
    }

    /** @return array<string, mixed> */
    private static function reserved(ReservedJob $j): array
    {
        return self::withBody(
            ['due_at' => self::time($j->dueAt), 'reserved_until' => self::time($j->reservedUntil)] + get_object_vars($j),
            $j->body,
        );
    }

    /** @return array<string, mixed> */
    private static function known(Job $job): array
    {
        return self::withBody($job->members, $job->body);
    }

    /**
     * @param array<string, mixed> $members
     * @return array<string, mixed>
     */
    private static function withBody(array $members, mixed $body): array
    {
        unset($members['body'], $members['body_base64']);
        if (is_string($body) && preg_match('//u', $body) !== 1) {
            return $members + ['body_base64' => base64_encode($body)];
        }
        return $members + ['body' => $body];
    }

    private static function time(?\DateTimeImmutable $at): ?string
    {
        return $at?->setTimezone(new \DateTimeZone('UTC'))->format('Y-m-d\TH:i:s.v\Z');
    }

    private static function nothing(mixed $_): \stdClass
    {
        return new \stdClass();
    }

    /** @return array<string, mixed> */
    public static function failure(TarryException $e): array
    {
        return array_filter([
            'code' => $e->errorCode,
            'outcome' => $e->unknown ? 'unknown' : 'not_applied',
            'message' => $e->getMessage(),
            'field' => $e->field,
        ]);
    }

    /** @param array<string, mixed> $a */
    public static function work(array $a): void
    {
        $worker = new Worker(
            new Client($a['addresses']),
            $a['topic'],
            self::function(...),
            $a['concurrency'],
            $a['ttr'],
            $a['backoff'] ?? null,
            timeout: $a['timeout'] ?? null,
        );
        pcntl_async_signals(true);
        pcntl_signal(SIGTERM, static fn () => $worker->stop());
        self::write(['event' => 'ready']);
        $worker->run();
        self::write(['event' => 'stopped']);
    }

    private static function function(ReservedJob $job): void
    {
        self::write(['event' => 'start', 'id' => $job->id, 'attempts' => $job->attempts]);
        $until = microtime(true) + ($job->body['work'] ?? 0);
        while (($left = $until - microtime(true)) > 0) {
            usleep((int) ($left * 1e6)); // a signal cuts it short
        }
        self::write(['event' => 'end', 'id' => $job->id]);
        if (isset($job->body['bury'])) {
            throw new Bury($job->body['bury']);
        }
        if (isset($job->body['fail'])) {
            throw new \RuntimeException($job->body['fail']);
        }
    }

    public static function write(mixed $value): void
    {
        fwrite(STDOUT, json_encode($value, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION) . "\n");
    }
}

if (($argv[1] ?? '') === 'worker') {
    Driver::work(json_decode($argv[2], true, 512, JSON_THROW_ON_ERROR));
    exit(0);
}
$driver = new Driver();
while (($line = fgets(STDIN)) !== false) {
    $step = json_decode($line, true, 512, JSON_THROW_ON_ERROR);
    try {
        $result = $driver->verb($step['verb'], $step['args'] ?? []);
        Driver::write(['ok' => $result === [] ? new \stdClass() : $result]);
    } catch (TarryException $e) {
        Driver::write(['error' => Driver::failure($e)]);
    } catch (\DomainException) {
        Driver::write(['error' => ['code' => 'unknown_verb']]);
    } catch (\Throwable $e) {
        Driver::write(['error' => ['code' => 'driver', 'message' => (string) $e]]);
    }
}
