<?php

declare(strict_types=1);

namespace Tarry;

/** A job to add. */
final class NewJob
{
    public readonly string $id;

    /**
     * @param string $topic 1 to 200 bytes
     * @param mixed $body a string is its bytes; anything else is sent as JSON
     * @param string|null $id the caller's name of the job, so that adding it twice makes one;
     *     without one the client makes a random one
     * @param float $delay seconds, up to 31 years
     * @param \DateTimeInterface|null $dueAt in the place of $delay
     * @param \DateTimeInterface|null $expiresAt dropped then, or dead if the topic says so, unless somebody has it
     * @param float|null $ttr seconds that one reservation lasts; null: the topic's or the server's default
     * @param int|null $priority the smallest is handed out first; null: 1024
     * @param int|null $maxAttempts then the job is dead; 0 is no limit, null the default
     * @param string|null $ifExists "conflict" (the default), "keep", "replace", "replace_ended" or "postpone"
     * @param list<float>|array{base?: float, factor?: float, max?: float, jitter?: float}|null $backoff
     *     seconds to wait after each failed attempt, or their law
     * @param array<string, string> $headers
     * @param int|null $ifRevision a condition on the job that is replaced or postponed
     * @param list<string>|null $ifState likewise
     * @param string|null $pushUrl where the job is posted, in a topic whose push has job_urls
     */
    public function __construct(
        public readonly string $topic,
        public readonly mixed $body,
        ?string $id = null,
        public readonly float $delay = 0.0,
        public readonly ?\DateTimeInterface $dueAt = null,
        public readonly ?\DateTimeInterface $expiresAt = null,
        public readonly ?float $ttr = null,
        public readonly ?int $priority = null,
        public readonly ?int $maxAttempts = null,
        public readonly ?string $ifExists = null,
        public readonly ?array $backoff = null,
        public readonly array $headers = [],
        public readonly ?int $ifRevision = null,
        public readonly ?array $ifState = null,
        public readonly ?string $pushUrl = null,
    ) {
        $this->id = $id ?? bin2hex(random_bytes(16));
    }

    /**
     * @internal
     * @return array<string, mixed>
     */
    public function toRequest(): array
    {
        return array_filter([
            'topic' => $this->topic,
            'id' => $this->id,
            'delay' => $this->delay === 0.0 ? null : $this->delay,
            'due_at' => Json::time($this->dueAt),
            'expires_at' => Json::time($this->expiresAt),
            'ttr' => $this->ttr,
            'priority' => $this->priority,
            'max_attempts' => $this->maxAttempts,
            'if_exists' => $this->ifExists,
            'backoff' => $this->backoff,
            'headers' => $this->headers === [] ? null : $this->headers,
            'if_revision' => $this->ifRevision,
            'if_state' => $this->ifState,
            'push_url' => $this->pushUrl,
        ], static fn (mixed $v): bool => $v !== null) + Json::body($this->body);
    }
}
