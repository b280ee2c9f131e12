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
    public readonly Nodes $nodes;
    private Http $http;
    private bool $knowsMembers;
    /** Whether an earlier attempt of the last call may have been done. */
    public bool $earlier = false;

    /** @param list<string> $addresses */
    public function __construct(array $addresses, public readonly float $timeout, public readonly float $patience, bool $learn)
    {
        $this->nodes = new Nodes($addresses);
        $this->http = new Http();
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
        $body = $q->in === null ? null : Json::encode($q->in);
        $end = Clock::now() + $this->patience + $q->wait;
        $this->earlier = false;
        $said = null; // the last failure that a node has replied with
        $attempts = 0;
        for ($round = 0;; $round++) {
            $pause = min(0.05 * 2 ** min($round, 5), 1.0);
            foreach ($this->nodes->inOrder() as $node) {
                $limit = $this->timeout + $q->wait;
                if ($attempts > 0 && $q->wait > 0) { // the node would wait anew
                    $limit = min($limit, max($end - Clock::now(), 1.0));
                }
                if ($deadline !== null) {
                    $limit = min($limit, $deadline - Clock::now());
                }
                if ($limit <= 0) {
                    throw $this->failure($q, $said ?? new TarryException(ErrorCode::NOT_APPLIED, 'the deadline of the call is over'));
                }
                $attempts++;
                try {
                    $reply = $this->http->attempt($node, $q, $body, $limit, $stop);
                    $this->nodes->prefer($node);
                    $this->learn($deadline);
                    return $reply;
                } catch (TarryException $e) {
                    $failure = $e;
                }
                if ($q->changesNothing() && $failure->errorCode === ErrorCode::UNKNOWN) {
                    $failure = new TarryException(ErrorCode::NOT_APPLIED, $failure->getMessage(), status: $failure->status);
                }
                if ($failure->status !== 0) {
                    $said = $failure;
                } elseif ($failure->errorCode === ErrorCode::NOT_APPLIED) {
                    $this->nodes->forget($node);
                }
                $again = $failure->retryable() || ($failure->unknown && $q->repeat);
                if (!$again || ($stop !== null && $stop()) || ($deadline !== null && Clock::now() >= $deadline)) {
                    throw $this->failure($q, $failure);
                }
                $this->earlier = $this->earlier || ($failure->unknown && !$q->changesNothing());
                $pause = max($pause, $failure->retryAfter);
            }
            // What a node has replied says more than that another could not be reached.
            $last = $failure->status === 0 && $said !== null ? $said : $failure;
            $now = Clock::now();
            if ($now >= $end) {
                throw $this->failure($q, $last);
            }
            self::sleep(min($pause, $end - $now, ($deadline ?? INF) - $now));
        }
    }

    /** An error must not promise that nothing was done when an earlier attempt may have been. */
    private function failure(Request $q, TarryException $last): TarryException
    {
        if (!$this->earlier || $last->unknown || $q->changesNothing()) {
            return $last;
        }
        if (!$last->retryable()) {
            return $last;
        }
        return new TarryException(
            ErrorCode::UNKNOWN,
            'an earlier attempt may have been done; the last one failed: ' . $last->getMessage(),
            true,
            null,
            $last->status,
            $last->retryAfter,
            $last,
        );
    }

    /** Takes from the last reply who leads, and once from the cluster who its members are. */
    private function learn(?float $deadline): void
    {
        $this->lead($this->http->headers);
        if ($this->knowsMembers) {
            return;
        }
        $limit = min($this->timeout, ($deadline ?? INF) - Clock::now());
        if ($limit <= 0) {
            return;
        }
        try {
            $q = new Request('GET', '/v1/cluster/members');
            $reply = $this->http->attempt($this->nodes->inOrder()[0], $q, null, $limit, null);
        } catch (TarryException) {
            return; // asked again with a later call
        }
        foreach ($reply['members'] ?? [] as $member) {
            if (($member['http_address'] ?? '') !== '') {
                $this->nodes->learn($member['http_address']);
            }
        }
        $this->knowsMembers = true;
    }

    /**
     * Asks the leader first from now on, if a reply named it.
     *
     * @param array<string, string> $headers
     */
    public function lead(array $headers): void
    {
        $leader = isset($headers['tarry-leader']) ? $this->nodes->learn($headers['tarry-leader']) : null;
        if ($leader !== null) {
            $this->nodes->prefer($leader);
        }
    }

    public static function sleep(float $seconds): void
    {
        if ($seconds > 0) {
            usleep((int) ($seconds * 1e6));
        }
    }
}
