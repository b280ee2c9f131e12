<?php

// The driver of the conformance cases: ../../conformance/README.md.

declare(strict_types=1);

namespace Tarry\Conformance;

use Tarry\Bury;
use Tarry\Client;
use Tarry\ErrorCode;
use Tarry\Job;
use Tarry\NewJob;
use Tarry\ReservedJob;
use Tarry\Stream;
use Tarry\TarryException;
use Tarry\Tls;
use Tarry\Topic;
use Tarry\Worker;

require __DIR__ . '/../autoload.php';

final class Driver
{
    private Client $client;
    private ?Stream $stream = null;

    /** Parameters that have another name than the argument. */
    private const RENAMED = ['get_batch' => ['body' => 'bodies'], 'jobs' => ['body' => 'bodies'], 'update_batch' => ['jobs' => 'updates']];

    /** @param array<string, mixed> $a */
    public function step(string $call, array $a): mixed
    {
        return match ($call) {
            'open' => $this->open($a),
            'stream_open' => $this->openStream($a),
            'stream_next' => $this->next($a),
            'stream_close' => $this->stream?->close(),
            default => $this->call($call, $a),
        };
    }

    /**
     * Calls the method that is named as the call, with the arguments that its parameters name.
     *
     * @param array<string, mixed> $a
     */
    private function call(string $call, array $a): mixed
    {
        if (!method_exists($this->client, self::camel($call))) {
            throw new TarryException('unknown_call', $call);
        }
        $c = isset($a['deadline']) ? $this->client->withDeadline($a['deadline']) : $this->client;
        unset($a['deadline']);
        $method = new \ReflectionMethod($c, self::camel($call));
        return self::plain($method->invokeArgs($c, self::arguments($method, $call, $a)));
    }

    /**
     * @param array<string, mixed> $a
     * @return array<string, mixed>
     */
    private static function arguments(\ReflectionMethod $method, string $call, array $a): array
    {
        $names = array_column($method->getParameters(), null, 'name');
        $given = [];
        foreach (self::values($a) as $name => $value) {
            $given[self::RENAMED[$call][$name] ?? self::camel($name)] = $value;
        }
        if ($call === 'add') {
            return ['job' => self::newJob($a)];
        }
        if ($call === 'update') {
            return ['id' => $a['id'], 'changes' => array_diff_key(self::values($a), ['id' => 0])];
        }
        if (isset($names['job'])) { // one that is reserved is given by id and token
            $given['job'] = $given['id'];
            unset($given['id']);
        }
        foreach ($given as $name => $value) {
            $given[$name] = match (true) {
                $name === 'then', $name === 'jobs' && str_starts_with($call, 'add') => array_map(self::newJob(...), $value),
                $name === 'finish', $name === 'jobs' => array_map(self::reference(...), $value),
                $name === 'updates' => array_map(self::values(...), $value),
                (string) $names[$name]->getType() === '?DateTimeInterface' => new \DateTimeImmutable($value),
                default => $value,
            };
        }
        return $given;
    }

    /** @param array<string, mixed> $a */
    private static function newJob(array $a): NewJob
    {
        $given = ['body' => null];
        foreach (self::values($a) as $name => $value) {
            $given[self::camel($name)] = in_array($name, ['due_at', 'expires_at'], true) ? new \DateTimeImmutable($value) : $value;
        }
        return new NewJob(...$given);
    }

    /**
     * Arguments whose body is what the client takes.
     *
     * @param array<string, mixed> $a
     * @return array<string, mixed>
     */
    private static function values(array $a): array
    {
        if (isset($a['body_base64'])) {
            $a['body'] = base64_decode($a['body_base64'], true);
            unset($a['body_base64']);
        }
        return $a;
    }

    /** @param array<string, mixed> $a */
    private static function reference(array $a): ReservedJob|string
    {
        return isset($a['token']) ? new ReservedJob($a['id'], 0, '', $a['token'], 0, 0, null, null, 0.0, [], null) : $a['id'];
    }

    private static function camel(string $name): string
    {
        return lcfirst(str_replace('_', '', ucwords($name, '_')));
    }

    /** A result as the harness reads it. */
    private static function plain(mixed $value): mixed
    {
        if ($value instanceof TarryException) {
            return self::failure($value);
        }
        if ($value instanceof \Traversable) {
            $value = iterator_to_array($value);
        }
        if ($value instanceof \DateTimeImmutable) {
            return $value->setTimezone(new \DateTimeZone('UTC'))->format('Y-m-d\TH:i:s.v\Z');
        }
        if ($value instanceof Topic) {
            return $value->members;
        }
        if ($value instanceof Job) {
            return self::withBody($value->members, $value->body);
        }
        if (is_object($value)) {
            $made = [];
            foreach (get_object_vars($value) as $name => $member) {
                $made[strtolower(preg_replace('/[A-Z]/', '_$0', $name))] = $name === 'body' ? $member : self::plain($member);
            }
            return array_key_exists('body', $made) ? self::withBody($made, $made['body']) : $made;
        }
        return is_array($value) && array_is_list($value) ? array_map(self::plain(...), $value) : $value;
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

    /** @param array<string, mixed> $a */
    private function open(array $a): void
    {
        $this->stream?->close();
        $this->stream = null;
        $given = ['tls' => new Tls(...($a['tls'] ?? []))];
        foreach (array_diff_key($a, $given) as $name => $value) {
            $given[self::camel($name)] = $value;
        }
        try {
            $this->client = new Client(...$given);
        } catch (\InvalidArgumentException $e) {
            throw new TarryException(ErrorCode::INVALID_ARGUMENT, $e->getMessage());
        }
    }

    /** @param array<string, mixed> $a */
    private function openStream(array $a): void
    {
        $release = ($a['on_close'] ?? 'keep') === 'release';
        $this->stream = $this->client->stream(...array_diff_key($a, ['on_close' => 0]), releaseOnClose: $release);
    }

    /**
     * @param array<string, mixed> $a
     * @return array<string, mixed>
     */
    private function next(array $a): array
    {
        $job = $this->stream?->next($a['deadline'] ?? null);
        if ($job !== null) {
            return ['job' => self::plain($job)];
        }
        return $this->stream?->ended() ? ['end' => true] : ['timeout' => true];
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
        Driver::write(['ok' => $driver->step($step['call'], $step['args'] ?? [])]);
    } catch (TarryException $e) {
        Driver::write(['error' => Driver::failure($e)]);
    } catch (\Throwable $e) {
        Driver::write(['error' => ['code' => 'driver', 'message' => (string) $e]]);
    }
}
