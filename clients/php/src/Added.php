<?php

declare(strict_types=1);

namespace Tarry;

/** The result of an add. */
final class Added
{
    /**
     * @param int $seq the number that the server gave the job
     * @param string $state "ready" or "delayed"; of a job that was there, its state
     * @param bool $existing the job was there already
     * @param bool $replaced another job was there, and is replaced
     * @param bool $postponed the job that was there got the new due time
     * @param bool $ended the job that was there is dead, finished or deleted: nothing runs because of this add
     */
    public function __construct(
        public readonly string $id,
        public readonly int $seq,
        public readonly string $state,
        public readonly ?\DateTimeImmutable $dueAt,
        public readonly int $revision,
        public readonly bool $existing,
        public readonly bool $replaced,
        public readonly bool $postponed,
        public readonly bool $ended = false,
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
            $r['state'],
            Json::instant($r['due_at'] ?? null),
            $r['revision'] ?? 0,
            $r['existing'] ?? false,
            $r['replaced'] ?? false,
            $r['postponed'] ?? false,
            $r['ended'] ?? false,
        );
    }
}
