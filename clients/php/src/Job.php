<?php

declare(strict_types=1);

namespace Tarry;

/** What a node knows of a job: the members of docs/http-reference.md. Durations are in seconds. */
final class Job
{
    /**
     * @param array<string, mixed> $members all members of the reply, as they came
     * @param mixed $body a string, or the value of a JSON body; null in lists without bodies
     */
    private function __construct(
        public readonly string $id,
        public readonly int $seq,
        public readonly string $topic,
        public readonly string $state,
        public readonly int $revision,
        public readonly int $priority,
        public readonly int $attempts,
        public readonly int $maxAttempts,
        public readonly float $delay,
        public readonly float $ttr,
        public readonly ?\DateTimeImmutable $dueAt,
        public readonly ?\DateTimeImmutable $createdAt,
        public readonly ?\DateTimeImmutable $reservedUntil,
        public readonly ?string $reservedBy,
        public readonly string $reason,
        public readonly ?string $lastError,
        public readonly mixed $body,
        public readonly array $members,
    ) {
    }

    /** @return array<string, string> */
    public function headers(): array
    {
        return $this->members['headers'] ?? [];
    }

    /**
     * @internal
     * @param array<string, mixed> $r
     */
    public static function fromReply(array $r): self
    {
        unset($r['success']);
        return new self(
            $r['id'],
            $r['seq'],
            $r['topic'],
            $r['state'],
            $r['revision'],
            $r['priority'],
            $r['attempts'],
            $r['max_attempts'],
            (float) $r['delay'],
            (float) $r['ttr'],
            Json::instant($r['due_at'] ?? null),
            Json::instant($r['created_at'] ?? null),
            Json::instant($r['reserved_until'] ?? null),
            $r['reserved_by'] ?? null,
            $r['reason'] ?? '',
            $r['last_error'] ?? null,
            Json::bodyOf($r),
            $r,
        );
    }
}
