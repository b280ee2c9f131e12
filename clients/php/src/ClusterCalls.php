<?php

declare(strict_types=1);

namespace Tarry;

/**
 * The calls of a Client on the cluster and its nodes, most of them for operators.
 *
 * @internal
 */
trait ClusterCalls
{
    /** @return list<array<string, mixed>> */
    public function members(): array
    {
        return $this->read('/v1/cluster/members', ['members' => [['id' => '']]])['members'];
    }

    /** @return array{healthy: bool, failure_tolerance: int, reasons: list<string>, cluster_version: int, upgrade: string} */
    public function health(): array
    {
        return $this->read('/v1/cluster/health', ['healthy' => false]);
    }

    /**
     * The clocks of the nodes, compared.
     *
     * @return array<string, mixed> as in docs/http-reference.md
     */
    public function clocks(): array
    {
        return $this->read('/v1/cluster/clock', ['max_offset' => 0.0, 'clocks' => [['id' => '']]]);
    }

    /**
     * Compares the states of all nodes at one index of the log, for up to two minutes, until all have replied.
     *
     * @return array{equal: bool, index: int, digests: list<array{id: string, digest: string, error?: string}>}
     */
    public function verify(): array
    {
        $gives = ['equal' => false, 'digests' => [['id' => '']]];
        return $this->call(new Request('POST', '/v1/cluster/verify', null, true, work: self::OPERATOR_TIME, reads: true, gives: $gives));
    }

    /** Hands leadership to a node; null: to the best follower. Returns false if it leads already. */
    public function transferLeadership(?string $id = null): bool
    {
        return $this->operate('POST', '/v1/cluster/transfer-leadership', self::given(['id' => $id]), gives: ['moved' => false])['moved'];
    }

    /** Removes a node from the cluster for good. */
    public function removeMember(string $id): void
    {
        $this->operate('DELETE', self::path('/v1/cluster/members/', $id, ''));
    }

    /**
     * Makes the node of this client, which has the address of no other one, join a cluster.
     *
     * @param list<string> $addresses at which the nodes of the cluster gossip
     */
    public function join(array $addresses): void
    {
        $this->operate('POST', '/v1/cluster/join', ['addresses' => $addresses], here: true);
    }

    /** Makes the node of this client, which has the address of no other one, leave its cluster and stop. */
    public function leave(): void
    {
        $this->operate('POST', '/v1/cluster/leave', here: true);
    }

    /** Sets the queue's clock back to that of the majority of the nodes, if it is too far ahead. */
    public function resetClock(): void
    {
        $this->operate('POST', '/v1/cluster/clock/reset');
    }

    /**
     * @param array<string, mixed>|null $in
     * @param array<string, mixed> $gives
     * @return array<string, mixed>
     */
    private function operate(string $method, string $path, ?array $in = null, bool $here = false, array $gives = []): array
    {
        return $this->call(new Request($method, $path, $in, work: self::OPERATOR_TIME, here: $here, gives: $gives));
    }
}
