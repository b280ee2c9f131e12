<?php

declare(strict_types=1);

namespace Tarry;

/**
 * A call that failed. The codes are listed in docs/http-api.md; ErrorCode names those
 * that callers commonly tell apart.
 */
final class TarryException extends \RuntimeException
{
    /**
     * @param string $errorCode tells failures apart
     * @param bool $unknown whether the call may have been done
     * @param string|null $field the invalid field of the request, such as jobs[3].delay
     * @param int $status the HTTP status, 0 when no node replied
     * @param float $retryAfter seconds that the server asks to wait before another attempt
     */
    public function __construct(
        public readonly string $errorCode,
        string $message,
        public readonly bool $unknown = false,
        public readonly ?string $field = null,
        public readonly int $status = 0,
        public readonly float $retryAfter = 0.0,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, $status, $previous);
    }

    /** Reports whether certainly nothing was done and another attempt may have more luck. */
    public function retryable(): bool
    {
        return in_array(
            $this->errorCode,
            [ErrorCode::NOT_APPLIED, ErrorCode::OVERLOADED, ErrorCode::RATE_LIMITED, ErrorCode::DISK_LOW],
            true,
        );
    }

    /**
     * Reports whether the node's certificate is not accepted, which another attempt does not change.
     *
     * @internal
     */
    public function refusesNode(): bool
    {
        return $this->status === 0 && $this->getPrevious()?->getCode() === CURLE_SSL_CACERT;
    }

    /**
     * The same failure with another code and message.
     *
     * @internal
     */
    public function with(string $code, string $message): self
    {
        return new self($code, $message, $this->unknown || $code === ErrorCode::UNKNOWN, $this->field, $this->status, $this->retryAfter, $this);
    }

    /**
     * The same failure, of the part of a batch that begins with the item $first: it names the item of the batch.
     *
     * @internal
     */
    public function ofPart(int $first): self
    {
        $named = static fn (string $text): string => (string) preg_replace_callback(
            '/^jobs\[(\d+)\]/',
            static fn (array $found): string => 'jobs[' . ($first + (int) $found[1]) . ']',
            $text,
        );
        $field = $this->field === null ? null : $named($this->field);
        return new self($this->errorCode, $named($this->getMessage()), $this->unknown, $field, $this->status, $this->retryAfter, $this->getPrevious());
    }

    /**
     * @internal
     * @param array<string, mixed> $reply
     */
    public static function fromReply(array $reply, int $status, float $retryAfter = 0.0): self
    {
        $code = (string) $reply['code'];
        return new self(
            $code,
            (string) ($reply['error'] ?? $code),
            ($reply['outcome'] ?? '') === 'unknown' || $code === ErrorCode::INTERNAL,
            isset($reply['field']) ? (string) $reply['field'] : null,
            $status,
            $retryAfter,
        );
    }
}
