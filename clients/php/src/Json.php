<?php

declare(strict_types=1);

namespace Tarry;

/**
 * How values stand in requests and replies.
 *
 * @internal
 */
final class Json
{
    /** The body of a request. An empty array is an object: a list never stands alone. */
    public static function encode(mixed $value): string
    {
        try {
            return json_encode(
                $value === [] ? (object) [] : $value,
                JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_PRESERVE_ZERO_FRACTION,
            );
        } catch (\JsonException $e) {
            throw new TarryException(
                ErrorCode::BAD_JSON,
                'the request cannot be encoded as JSON: ' . $e->getMessage(),
                previous: $e,
            );
        }
    }

    /**
     * The members that carry a job's body.
     *
     * @return array{body: mixed}|array{body_base64: string}
     */
    public static function body(mixed $body): array
    {
        if (is_string($body) && preg_match('//u', $body) !== 1) {
            return ['body_base64' => base64_encode($body)];
        }
        return ['body' => $body];
    }

    /**
     * The body of a job in a reply: a string for text or bytes, else the JSON value.
     *
     * @param array<string, mixed> $job
     */
    public static function bodyOf(array $job): mixed
    {
        if (isset($job['body_base64'])) {
            return base64_decode((string) $job['body_base64'], true);
        }
        return $job['body'] ?? null;
    }

    /**
     * Members of a request as JSON carries them: instants as text, bodies that are not UTF-8 as
     * base64, and headers as an object also when there are none.
     *
     * @param array<string, mixed> $values
     * @return array<string, mixed>
     */
    public static function members(array $values): array
    {
        $made = [];
        foreach ($values as $name => $value) {
            if ($name === 'body') {
                $made += self::body($value);
            } elseif ($name === 'headers') {
                $made[$name] = is_array($value) ? (object) $value : $value;
            } elseif ($value instanceof \DateTimeInterface) {
                $made[$name] = self::time($value);
            } else {
                $made[$name] = is_array($value) ? self::members($value) : $value;
            }
        }
        return $made;
    }

    public static function time(?\DateTimeInterface $at): ?string
    {
        return $at?->format('Y-m-d\TH:i:s.vP');
    }

    public static function instant(mixed $text): ?\DateTimeImmutable
    {
        try {
            return $text === null ? null : new \DateTimeImmutable((string) $text);
        } catch (\Exception $e) {
            throw new TarryException(ErrorCode::UNKNOWN, 'the reply is not understood: ' . $e->getMessage(), true, previous: $e);
        }
    }
}
