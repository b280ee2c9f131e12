<?php

declare(strict_types=1);

namespace Tarry;

/**
 * Calls a function for each job of some topics, until SIGTERM or SIGINT.
 *
 * When the function returns, its job is finished. When it throws, the job is released with the
 * message as reason, or buried if it throws Bury. While the function works, its reservation is
 * prolonged. It may be called twice for one job: what it does must bear that.
 *
 * With a concurrency above 1 the functions run in processes of their own: connections to
 * databases belong into $boot, which each process calls before its first job.
 */
final class Worker
{
    /** Seconds that one request waits for a job. */
    private const WAIT = 20.0;
    /**
     * Seconds that a finish waits for the next job. A worker that is nearly always busy so makes one
     * call a job, and its next reserve is committed beside the finish and not after it.
     */
    private const NEXT_WAIT = 0.05;
    /** Of a reason, in bytes; longer ones are cut. */
    private const MAX_REASON = 1000;

    /** @var list<string> */
    private array $topics;
    private bool $stopping = false;
    /** When the function that runs has timed out; null: none runs. */
    private ?float $end = null;
    /** @var \Closure(ReservedJob): mixed */
    private \Closure $function;

    /**
     * @param string|list<string> $topics
     * @param callable(ReservedJob): mixed $function
     * @param float|null $ttr of the reservations, which are prolonged at a third of it; null: each job's own
     * @param array{base: float, factor?: float, max?: float}|null $backoff how long a job waits after a
     *     failure: base * factor^(attempts - 1), at most max; null: as the job itself says
     * @param (callable(\Throwable, ?ReservedJob): void)|null $onError hears of failures; null: the error log
     * @param (callable(): void)|null $boot
     * @param float|null $timeout how long the function may run; then it gets a JobTimeout, by a SIGALRM, and the
     *     reservation is prolonged no more: the job is released, or comes back when its reservation expires
     */
    public function __construct(
        private Client $client,
        string|array $topics,
        callable $function,
        private int $concurrency = 1,
        private ?float $ttr = null,
        private ?array $backoff = null,
        private string $consumer = '',
        private $onError = null,
        private $boot = null,
        private ?float $timeout = null,
    ) {
        if (!function_exists('pcntl_fork') || !function_exists('posix_kill')) {
            throw new \RuntimeException('a worker needs the extensions pcntl and posix');
        }
        if ($concurrency < 1) {
            throw new \InvalidArgumentException("concurrency is $concurrency; it must be at least 1");
        }
        if ($timeout !== null && !($timeout > 0)) {
            throw new \InvalidArgumentException("timeout is $timeout; it must be above 0");
        }
        $this->topics = (array) $topics;
        $this->function = $function(...);
    }

    /** Works until SIGTERM, SIGINT or stop(). It returns when all functions have. */
    public function run(): void
    {
        $async = pcntl_async_signals(true);
        $stop = fn () => $this->stop();
        $before = [];
        $handlers = [SIGTERM => $stop, SIGINT => $stop] + ($this->timeout === null ? [] : [SIGALRM => $this->timeOut(...)]);
        foreach ($handlers as $signal => $handler) {
            $before[$signal] = pcntl_signal_get_handler($signal);
            pcntl_signal($signal, $handler, false);
        }
        try {
            $this->concurrency === 1 ? $this->work() : $this->supervise();
        } finally {
            foreach ($before as $signal => $handler) {
                pcntl_signal($signal, $handler);
            }
            pcntl_async_signals($async);
        }
    }

    /** Takes no more jobs, and lets run return when the functions that run have. */
    public function stop(): void
    {
        $this->stopping = true;
    }

    /** Keeps the processes running, and ends them when it is told to stop. */
    private function supervise(): void
    {
        $children = [];
        $told = false;
        $nextStart = 0.0;
        while (!$this->stopping || $children !== []) {
            if ($this->stopping && !$told) {
                $told = true;
                foreach (array_keys($children) as $pid) {
                    posix_kill($pid, SIGTERM);
                }
            }
            while (!$this->stopping && count($children) < $this->concurrency && Clock::now() >= $nextStart) {
                $children[$this->spawn()] = true;
            }
            $pid = pcntl_waitpid(-1, $status, WNOHANG);
            if ($pid > 0 && isset($children[$pid])) {
                unset($children[$pid]);
                $nextStart = Clock::now() + 1.0; // one that fails at once must not be started in a loop
            } elseif ($pid <= 0) {
                Caller::sleep(0.05);
            }
        }
    }

    private function spawn(): int
    {
        $parent = getmypid();
        // A signal between the fork and the child's loop is not lost: the child has the handler.
        $pid = pcntl_fork();
        if ($pid === -1) {
            throw new \RuntimeException('a worker cannot have a process');
        }
        if ($pid !== 0) {
            return $pid;
        }
        try {
            $this->work((int) $parent);
        } catch (\Throwable $e) {
            $this->report($e, null);
        } finally {
            // No destructor may run here: it would end connections of the other process.
            posix_kill((int) getmypid(), SIGKILL);
        }
        exit(1);
    }

    /** @param int $parent the process to end with; 0: none */
    private function work(int $parent = 0): void
    {
        if ($this->boot !== null) {
            ($this->boot)();
        }
        $heartbeat = new Heartbeat($this->client);
        $client = $this->client->withStop(fn (): bool => $this->stopping || ($parent !== 0 && posix_getppid() !== $parent));
        $failures = 0;
        $goesOn = fn (): bool => !$this->stopping && ($parent === 0 || posix_getppid() === $parent);
        try {
            while ($goesOn()) {
                try {
                    $jobs = $client->reserve($this->topics, 1, self::WAIT, $this->ttr, $this->consumer);
                    $failures = 0;
                } catch (TarryException $e) {
                    if (!$this->stopping) {
                        $this->report($e, null);
                        Caller::sleep(min(0.1 * 2 ** min($failures++, 6), 5.0));
                    }
                    continue;
                }
                for ($job = $jobs[0] ?? null; $job !== null;) {
                    $job = $this->handle($job, $heartbeat, $goesOn);
                }
            }
        } finally {
            $heartbeat->close();
        }
    }

    /**
     * Does one job. The result is the next one, if one came soon after this one was finished.
     *
     * @param \Closure(): bool $goesOn
     */
    private function handle(ReservedJob $job, Heartbeat $heartbeat, \Closure $goesOn): ?ReservedJob
    {
        $failure = null;
        try {
            $this->end = $this->timeout === null ? null : Clock::now() + $this->timeout;
            $heartbeat->start($job, $this->end);
            ($this->function)($job);
            $this->end = null;
        } catch (\Throwable $e) {
            $this->end = null;
            $failure = $e;
        }
        $heartbeat->stop();
        $next = null;
        try {
            if ($failure === null && $goesOn()) {
                $next = $this->finishAndReserve($job);
            } elseif ($failure === null) {
                $this->client->finish($job);
            } elseif ($failure instanceof Bury) {
                $this->client->bury($job, self::reason($failure));
            } else {
                $this->client->release($job, $this->delay($job->attempts), self::reason($failure));
            }
        } catch (TarryException $e) {
            $this->report($e, $job); // the job comes again when its reservation expires
        }
        if ($failure !== null && !$failure instanceof Bury) {
            $this->report($failure, $job);
        }
        return $next;
    }

    /** Ends the function that has run for too long. The signal may come late, when it has ended. */
    private function timeOut(): void
    {
        if ($this->end !== null && Clock::now() >= $this->end) {
            $this->end = null;
            throw new JobTimeout("timed out after $this->timeout s");
        }
    }

    /** Finishes a job and takes the next one. To wait longer for one is left to the loop. */
    private function finishAndReserve(ReservedJob $job): ?ReservedJob
    {
        [$jobs, $finished] = $this->client->finishAndReserve([$job], $this->topics, 1, self::NEXT_WAIT, $this->ttr, $this->consumer);
        if ($finished[0] !== null) {
            $this->report($finished[0], $job);
        }
        return $jobs[0] ?? null;
    }

    private function delay(int $attempts): ?float
    {
        if ($this->backoff === null) {
            return null;
        }
        $wait = $this->backoff['base'] * ($this->backoff['factor'] ?? 1.0) ** ($attempts - 1);
        return min($wait, $this->backoff['max'] ?? INF);
    }

    private static function reason(\Throwable $e): string
    {
        $text = $e->getMessage() !== '' ? $e->getMessage() : $e::class;
        $text = (string) json_decode((string) json_encode($text, JSON_INVALID_UTF8_SUBSTITUTE));
        for ($length = self::MAX_REASON; strlen($text) > self::MAX_REASON || preg_match('//u', $text) !== 1; $length--) {
            $text = substr($text, 0, $length);
        }
        return $text;
    }

    private function report(\Throwable $e, ?ReservedJob $job): void
    {
        if ($this->onError !== null) {
            ($this->onError)($e, $job);
            return;
        }
        error_log('tarry: ' . ($job === null ? '' : "job $job->id: ") . $e->getMessage());
    }
}
