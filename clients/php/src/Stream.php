<?php

declare(strict_types=1);

namespace Tarry;

/**
 * Jobs over one open connection. When a node stops or fails, the stream goes on with the next
 * one. Nothing is read ahead while the caller works, but what the node has sent is reserved
 * already, up to the credit.
 *
 * @implements \IteratorAggregate<int, ReservedJob>
 */
final class Stream implements \IteratorAggregate
{
    /** How many heartbeats may be missing. */
    private const SILENT_BEATS = 3;

    private ?\CurlMultiHandle $multi = null;
    private ?\CurlHandle $curl = null;
    private string $node = '';
    private string $buffer = '';
    /** @var array<string, string> */
    private array $headers = [];
    private bool $opened = false;
    private bool $ended = false;
    private float $heard = 0.0;
    /** @var list<string> nodes of the present round that were not tried yet */
    private array $candidates = [];
    /** Whether all failures of the present round are of certificates. */
    private bool $refusesAll = true;
    private int $rounds = 0;
    private ?float $hopeEnds = null;
    private ?float $pauseEnds = null;

    /**
     * @internal use Client::stream
     * @param array<string, mixed> $request
     * @param (callable(): bool)|null $stop
     */
    public function __construct(private Caller $caller, private array $request, private $stop)
    {
    }

    /** @return \Generator<int, ReservedJob> */
    public function getIterator(): \Generator
    {
        try {
            while (($job = $this->next()) !== null) {
                yield $job;
            }
        } finally {
            $this->close();
        }
    }

    /**
     * The next job; blocks for up to $timeout seconds (null: until there is one). Null when none
     * came in time, and when the stream has ended: see ended().
     *
     * @throws TarryException when the nodes refuse the stream, or none has taken it for as long as
     *     the client's patience lasts
     */
    public function next(?float $timeout = null): ?ReservedJob
    {
        $until = $timeout === null ? INF : Clock::now() + $timeout;
        while (!$this->ended) {
            try {
                $job = $this->line();
                if ($job !== null) {
                    return $job;
                }
                if (Clock::now() >= $until || ($this->stop !== null && ($this->stop)())) {
                    return null;
                }
                $this->wait($until);
            } catch (TarryException $e) {
                $this->lost($e);
            }
        }
        return null;
    }

    /** Reports whether the stream has ended: by max, or because it was closed. */
    public function ended(): bool
    {
        return $this->ended;
    }

    public function close(): void
    {
        $this->disconnect();
        $this->ended = true;
    }

    public function __destruct()
    {
        $this->disconnect();
    }

    /** Reads the lines that have arrived, up to a job. */
    private function line(): ?ReservedJob
    {
        while (($at = strpos($this->buffer, "\n")) !== false) {
            $line = substr($this->buffer, 0, $at);
            $this->buffer = substr($this->buffer, $at + 1);
            $event = json_decode($line, true, 512, JSON_BIGINT_AS_STRING);
            $kind = $event['event'] ?? null;
            $wrong = $kind === 'job' ? Shape::wrong(Shape::RESERVED, $event) : null;
            switch ($wrong === null ? $kind : null) {
                case 'open':
                    $this->opened = true;
                    $this->caller->replied($this->node, $this->headers);
                    [$this->candidates, $this->rounds, $this->hopeEnds] = [[], 0, null];
                    break;
                case 'job':
                    if (isset($this->request['max']) && --$this->request['max'] === 0) {
                        $this->close();
                    }
                    return ReservedJob::fromReply($event);
                case 'heartbeat':
                    break;
                case 'bye':
                    throw new TarryException(ErrorCode::NOT_APPLIED, 'the node ended the stream');
                case 'error':
                    throw TarryException::fromReply($event, 200);
                default:
                    throw new TarryException(ErrorCode::UNKNOWN, 'a line of the stream is not understood', true);
            }
        }
        return null;
    }

    /** Connects if need be, and lets bytes arrive, for a part of a second at most. */
    private function wait(float $until): void
    {
        $most = max(0.0, min(0.5, $until - Clock::now()));
        if ($this->pauseEnds !== null) {
            $left = $this->pauseEnds - Clock::now();
            if ($left > 0) {
                Caller::sleep(min($left, $most));
                return;
            }
            $this->pauseEnds = null;
        }
        if ($this->curl === null) {
            $this->connect();
        }
        do {
            $status = curl_multi_exec($this->multi, $running);
        } while ($status === CURLM_CALL_MULTI_PERFORM);
        if ($running > 0 && !str_contains($this->buffer, "\n")) {
            if (Clock::now() > $this->heard + $this->silence()) {
                throw new TarryException(ErrorCode::UNKNOWN, "$this->node has fallen silent", true);
            }
            curl_multi_select($this->multi, $most);
            curl_multi_exec($this->multi, $running);
        }
        if ($running === 0 && !str_contains($this->buffer, "\n")) {
            $this->over();
        }
    }

    private function silence(): float
    {
        return $this->opened ? self::SILENT_BEATS * (float) $this->request['heartbeat'] : $this->caller->timeout;
    }

    /** Says why the connection has ended. */
    private function over(): never
    {
        $message = curl_multi_info_read($this->multi);
        $status = (int) curl_getinfo($this->curl, CURLINFO_RESPONSE_CODE);
        if ($message !== false && $message['result'] === CURLE_OK && $status >= 300) {
            Http::reply($this->node, $status, $this->buffer, $this->headers);
        }
        throw Http::connectionError($this->node, $this->curl);
    }

    private function connect(): void
    {
        if ($this->candidates === []) {
            [$this->candidates, $this->refusesAll] = [$this->caller->nodes->inOrder(), true];
        }
        $this->node = array_shift($this->candidates);
        [$this->buffer, $this->headers, $this->opened, $this->heard] = ['', [], false, Clock::now()];
        $curl = curl_init();
        $multi = curl_multi_init();
        if ($curl === false) {
            throw new \RuntimeException('curl has no handle');
        }
        curl_setopt_array($curl, Http::options($this->node . '/v1/stream', 'POST', Json::encode($this->request), $this->caller->tls, $this->caller->token) + [
            CURLOPT_WRITEFUNCTION => function (\CurlHandle $_, string $part): int {
                $this->buffer .= $part;
                $this->heard = Clock::now();
                return strlen($part);
            },
            CURLOPT_HEADERFUNCTION => function (\CurlHandle $_, string $line): int {
                Http::header($line, $this->headers);
                return strlen($line);
            },
        ]);
        curl_multi_add_handle($multi, $curl);
        [$this->curl, $this->multi] = [$curl, $multi];
    }

    private function disconnect(): void
    {
        if ($this->multi !== null && $this->curl !== null) {
            curl_multi_remove_handle($this->multi, $this->curl);
            curl_multi_close($this->multi);
        }
        [$this->curl, $this->multi, $this->buffer] = [null, null, ''];
    }

    /** Goes on with the next node, or gives up. */
    private function lost(TarryException $e): void
    {
        $wasOpen = $this->opened;
        $this->disconnect();
        if ($e->status === 0 && $this->node !== '') {
            $this->caller->nodes->failed($this->node, $e->errorCode === ErrorCode::NOT_APPLIED);
        }
        if (!$e->retryable() && !$e->unknown) {
            $this->ended = true;
            throw $e;
        }
        $this->refusesAll = $this->refusesAll && $e->refusesNode();
        $this->hopeEnds ??= Clock::now() + $this->caller->patience;
        if ($wasOpen || $this->candidates === []) { // also a node that takes streams and ends them
            if (!$wasOpen && ($this->refusesAll || Clock::now() >= $this->hopeEnds)) {
                $this->ended = true;
                throw $e;
            }
            $this->pauseEnds = Clock::now() + min(0.05 * 2 ** min($this->rounds++, 5), 1.0);
        }
        if ($wasOpen) { // not the same one first
            $this->candidates = array_values(array_diff($this->caller->nodes->inOrder(), [$this->node]));
        }
    }
}
