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
     * @param float $wait seconds that the server is asked to wait; each attempt asks for what is left of it
     * @param float $work seconds that the server may take because there is much to do
     * @param bool $reads it changes nothing although it is no GET
     * @param bool $here it is for a node that was given to the client, not for any node of the cluster
     * @param array<string, mixed> $gives the Shape of a reply
     */
    public function __construct(
        public readonly string $method,
        public readonly string $path,
        public readonly ?array $in = null,
        public readonly bool $repeat = false,
        public readonly float $wait = 0.0,
        public readonly float $work = 0.0,
        private readonly bool $reads = false,
        public readonly bool $here = false,
        private readonly array $gives = [],
    ) {
    }

    /** The body of an attempt, when $left is left of the wait. */
    public function body(float $left): ?string
    {
        if ($this->in === null) {
            return null;
        }
        return Json::encode($this->wait > 0.0 ? ['wait' => round($left, 3)] + $this->in : $this->in);
    }

    /**
     * Says what is wrong with a reply that should be a success; null: nothing.
     *
     * @param array<mixed> $reply
     */
    public function wrong(array $reply): ?string
    {
        $what = Shape::wrong($this->gives + ['success' => false], $reply);
        // A batch of which an item failed has success false too.
        return $what ?? ($reply['success'] || isset($reply['results']) || isset($reply['finished']) ? null : 'success is false');
    }

    public function changesNothing(): bool
    {
        return $this->method === 'GET' || $this->reads;
    }
}
