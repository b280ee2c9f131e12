<?php

declare(strict_types=1);

namespace Tarry;

/**
 * Makes calls: on one node after the other, again where that does no harm, until the
 * patience is over.
 *
 * @internal
 */
final class Caller
{
    private const BY_DEADLINE = 'the deadline ended the call';
    /** What a wait is shorter than its deadline, at most. */
    private const MAX_MARGIN = 0.5;

    public readonly Nodes $nodes;
    private Http $http;
    private bool $knowsMembers;
    /** Whether an earlier attempt of the last call may have been done. */
    public bool $earlier = false;

    /** @param list<string>|string $addresses */
    public function __construct(
        array|string $addresses,
        public readonly float $timeout,
        public readonly float $patience,
        bool $learn,
        public readonly Tls $tls,
        public readonly Token $token,
    ) {
        $this->nodes = new Nodes($addresses, $token->usable(...));
        $this->http = new Http($tls, $token);
        $this->knowsMembers = !$learn;
    }

    /**
     * @param float|null $deadline of Clock::now()
     * @param (callable(): bool)|null $stop
     * @return array<string, mixed>
     * @throws TarryException
     */
    public function call(Request $q, ?float $deadline = null, ?callable $stop = null): array
    {
        $waitEnd = Clock::now() + $q->wait;
        $end = $waitEnd + $this->patience;
        $this->earlier = false;
        $said = null; // the last failure that a node has replied with
        for ($round = 0;; $round++) {
            $pause = min(0.05 * 2 ** min($round, 5), 1.0);
            $refusesAll = true; // all failures of this round are of certificates
            foreach ($q->here ? $this->nodes->given() : $this->nodes->inOrder() as $node) {
                if ($deadline !== null && Clock::now() >= $deadline) {
                    throw $this->byDeadline($q, $said ?? $failure ?? null);
                }
                $left = max($waitEnd - Clock::now(), 0.0);
                $limit = min($this->timeout + $left + $q->work, ($deadline ?? INF) - Clock::now());
                try {
                    $reply = $this->http->attempt($node, $q, $q->body($left), $limit, $stop);
                    $this->replied($node, $this->http->headers);
                    if (!$q->here) {
                        $this->learn($deadline);
                    }
                    return $reply;
                } catch (TarryException $e) {
                    $failure = $e;
                }
                $refusesAll = $refusesAll && $failure->refusesNode();
                $unreachable = $failure->errorCode === ErrorCode::NOT_APPLIED;
                $late = $deadline !== null && Clock::now() >= $deadline;
                if ($q->changesNothing() && $failure->errorCode === ErrorCode::UNKNOWN) {
                    $failure = new TarryException(ErrorCode::NOT_APPLIED, $failure->getMessage(), status: $failure->status);
                }
                $stopped = $stop !== null && $stop();
                if ($failure->status !== 0) {
                    $this->replied($node, $this->http->headers);
                    $said = $failure;
                } elseif ($late) {
                    $failure = $failure->with($failure->errorCode, self::BY_DEADLINE . " before $node replied");
                } elseif (!$stopped) {
                    $this->nodes->failed($node, $unreachable);
                }
                $again = $failure->retryable() || ($failure->unknown && $q->repeat);
                if ($again && $late) {
                    throw $this->byDeadline($q, $failure);
                }
                if (!$again || $stopped) {
                    throw $this->failure($q, $failure);
                }
                $this->earlier = $this->earlier || ($failure->unknown && !$q->changesNothing());
                $pause = max($pause, $failure->retryAfter);
            }
            $now = Clock::now();
            if ($refusesAll || $now >= $end) {
                // What a node has replied says more than that another could not be reached.
                throw $this->failure($q, $failure->status === 0 && $said !== null ? $said : $failure);
            }
            self::sleep(min($pause, $end - $now, ($deadline ?? INF) - $now));
        }
    }

    /**
     * When a wait that begins now ends: early enough for its reply to come before the deadline.
     *
     * @param float|null $deadline of Clock::now()
     */
    public static function waitEnd(float $wait, ?float $deadline): float
    {
        $now = Clock::now();
        $left = ($deadline ?? INF) - $now;
        return $now + min($wait, $left - min($left / 4, self::MAX_MARGIN));
    }

    /** The error of a call that its deadline has ended, after the given failure of an attempt. */
    private function byDeadline(Request $q, ?TarryException $last): TarryException
    {
        if ($last === null) {
            return new TarryException(ErrorCode::NOT_APPLIED, self::BY_DEADLINE . ' before it was sent');
        }
        $failure = $this->failure($q, $last);
        $message = $failure->getMessage();
        return str_starts_with($message, self::BY_DEADLINE) ? $failure : $failure->with($failure->errorCode, self::BY_DEADLINE . ": $message");
    }

    /** An error must not promise that nothing was done when an earlier attempt may have been. */
    private function failure(Request $q, TarryException $last): TarryException
    {
        if (!$this->earlier || $q->changesNothing() || !$last->retryable()) {
            return $last;
        }
        return $last->with(ErrorCode::UNKNOWN, 'an earlier attempt may have been done; the last one failed: ' . $last->getMessage());
    }

    /** Asks the cluster once who its members are. */
    private function learn(?float $deadline): void
    {
        if ($this->knowsMembers) {
            return;
        }
        $limit = min($this->timeout, ($deadline ?? INF) - Clock::now());
        if ($limit <= 0) {
            return;
        }
        try {
            $q = new Request('GET', '/v1/cluster/members', gives: ['members' => [['id' => '']]]);
            $reply = $this->http->attempt($this->nodes->inOrder()[0], $q, null, $limit, null);
        } catch (TarryException) {
            return; // asked again with a later call
        }
        foreach ($reply['members'] as $member) {
            if (($member['http_address'] ?? '') !== '') {
                $this->nodes->learn($member['http_address']);
            }
        }
        $this->knowsMembers = true;
    }

    /**
     * Takes from a reply of a node who leads, and asks that one first from now on.
     *
     * @param array<string, string> $headers of the reply
     */
    public function replied(string $node, array $headers): void
    {
        $this->nodes->replied($node, $headers['tarry-leader'] ?? null);
    }

    public static function sleep(float $seconds): void
    {
        if ($seconds > 0) {
            usleep((int) ($seconds * 1e6));
        }
    }
}
