<?php

declare(strict_types=1);

namespace Tarry;

/** The counts of a topic: its jobs by state now, and totals. */
final class Topic
{
    /** @param array<string, mixed> $members all members of the reply, as they came */
    private function __construct(
        public readonly string $topic,
        public readonly int $delayed,
        public readonly int $ready,
        public readonly int $reserved,
        public readonly int $dead,
        public readonly int $retained,
        public readonly ?\DateTimeImmutable $oldestDueAt,
        public readonly bool $paused,
        public readonly ?\DateTimeImmutable $pausedUntil,
        public readonly ?\DateTimeImmutable $throttledUntil,
        public readonly int $added,
        public readonly int $finished,
        public readonly int $deleted,
        public readonly int $timeouts,
        public readonly int $died,
        public readonly int $expired,
        public readonly int $settingsRevision,
        public readonly array $members,
    ) {
    }

    /**
     * @internal
     * @param array<string, mixed> $r
     */
    public static function fromReply(array $r): self
    {
        unset($r['success']);
        return new self(
            $r['topic'],
            $r['delayed'] ?? 0,
            $r['ready'],
            $r['reserved'] ?? 0,
            $r['dead'] ?? 0,
            $r['retained'] ?? 0,
            Json::instant($r['oldest_due_at'] ?? null),
            $r['paused'],
            Json::instant($r['paused_until'] ?? null),
            Json::instant($r['throttled_until'] ?? null),
            $r['added'] ?? 0,
            $r['finished'] ?? 0,
            $r['deleted'] ?? 0,
            $r['timeouts'] ?? 0,
            $r['died'] ?? 0,
            $r['expired'] ?? 0,
            $r['settings_revision'] ?? 0,
            $r,
        );
    }
}
