<?php

declare(strict_types=1);

namespace Tarry;

/**
 * A process that prolongs the reservation of one job while this process works on it, however
 * long that blocks. It ends with this process.
 *
 * @internal
 */
final class Heartbeat
{
    /** @var resource */
    private $pipe;
    private int $pid;

    public function __construct(private Client $client)
    {
        $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, STREAM_IPPROTO_IP);
        $this->pid = $pair === false ? -1 : pcntl_fork();
        if ($pair === false || $this->pid === -1) {
            throw new \RuntimeException('the heartbeat cannot have a process');
        }
        if ($this->pid === 0) {
            fclose($pair[0]);
            pcntl_signal(SIGTERM, SIG_IGN);
            pcntl_signal(SIGINT, SIG_IGN);
            try {
                $this->beat($pair[1]);
            } finally {
                // No destructor may run here: it would end connections of the other process.
                posix_kill((int) getmypid(), SIGKILL);
            }
        }
        fclose($pair[1]);
        $this->pipe = $pair[0];
    }

    /** Ends the process and waits for its end. */
    public function close(): void
    {
        fclose($this->pipe);
        pcntl_waitpid($this->pid, $status);
    }

    /** @param float|null $end of Clock: then this process gets a SIGALRM, and the reservation is prolonged no more */
    public function start(ReservedJob $job, ?float $end = null): void
    {
        fwrite($this->pipe, json_encode([$job->id, $job->token, $job->ttr, $end], JSON_THROW_ON_ERROR) . "\n");
    }

    public function stop(): void
    {
        fwrite($this->pipe, "null\n");
    }

    /** @param resource $pipe */
    private function beat($pipe): void
    {
        $job = null;
        $worker = posix_getppid();
        while (true) {
            $pause = $job === null ? 3600.0 : $job[2] / 3;
            $left = ($job[3] ?? INF) - Clock::now();
            $pause = min($pause, max($left, 0.0));
            [$read, $none] = [[$pipe], null];
            $ready = @stream_select($read, $none, $none, (int) $pause, (int) (fmod($pause, 1) * 1e6));
            if ($ready === false) {
                continue; // a signal
            }
            if ($ready > 0) {
                $line = fgets($pipe);
                if ($line === false) {
                    return;
                }
                $job = json_decode($line, true);
                continue;
            }
            if ($job === null) {
                continue;
            }
            if ($job[3] !== null && Clock::now() >= $job[3]) {
                $job = null;
                if (posix_getppid() === $worker) {
                    posix_kill($worker, SIGALRM);
                }
                continue;
            }
            try {
                $this->client->withDeadline(max($job[2] / 2, 1.0))->touch($job[0], $job[2], $job[1]);
            } catch (TarryException $e) {
                if (!$e->retryable() && !$e->unknown) {
                    $job = null; // the reservation is over; the finish will say so
                }
            }
        }
    }
}
