<?php

declare(strict_types=1);

namespace Tarry;

/** A job that this consumer has until $reservedUntil. */
final class ReservedJob
{
    /**
     * @param string $token names the reservation; each step sends it
     * @param int $attempts with this one
     * @param float $ttr seconds that the reservation lasts
     * @param array<string, string> $headers
     * @param mixed $body a string, or the value of a JSON body
     * @param string|null $pushUrl of a job that was not posted to it
     */
    public function __construct(
        public readonly string $id,
        public readonly int $seq,
        public readonly string $topic,
        public readonly string $token,
        public readonly int $attempts,
        public readonly int $priority,
        public readonly ?\DateTimeImmutable $dueAt,
        public readonly ?\DateTimeImmutable $reservedUntil,
        public readonly float $ttr,
        public readonly array $headers,
        public readonly mixed $body,
        public readonly ?string $pushUrl = null,
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
            $r['seq'],
            $r['topic'],
            $r['token'],
            $r['attempts'],
            $r['priority'],
            Json::instant($r['due_at'] ?? null),
            Json::instant($r['reserved_until'] ?? null),
            (float) $r['ttr'],
            $r['headers'] ?? [],
            Json::bodyOf($r),
            $r['push_url'] ?? null,
        );
    }
}
