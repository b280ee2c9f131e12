<?php

declare(strict_types=1);

namespace Tarry;

/** The result of a call that changed a job. */
final class Changed
{
    public function __construct(
        public readonly string $id,
        public readonly int $seq,
        public readonly string $state,
        public readonly int $revision,
        public readonly ?\DateTimeImmutable $dueAt,
        public readonly ?\DateTimeImmutable $reservedUntil,
    ) {
    }

    /**
     * @internal
     * @param array<string, mixed> $r
     */
    public static function fromReply(array $r): self
    {
        return new self(
            $r['id'],
            $r['seq'] ?? 0,
            $r['state'],
            $r['revision'] ?? 0,
            Json::instant($r['due_at'] ?? null),
            Json::instant($r['reserved_until'] ?? null),
        );
    }
}
