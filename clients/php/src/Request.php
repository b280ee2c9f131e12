<?php

declare(strict_types=1);

namespace Tarry;

/**
 * One call before it is sent.
 *
 * @internal
 */
final class Request
{
    /**
     * @param string $path escaped, with its query
     * @param array<string, mixed>|null $in null: no request body
     * @param bool $repeat sending it twice does no harm, so an unknown outcome may be followed by
     *     another attempt
     * @param float $wait seconds that the server may take because it was asked to
     */
    public function __construct(
        public readonly string $method,
        public readonly string $path,
        public readonly ?array $in = null,
        public readonly bool $repeat = false,
        public readonly float $wait = 0.0,
    ) {
    }

    public function changesNothing(): bool
    {
        return $this->method === 'GET';
    }
}
