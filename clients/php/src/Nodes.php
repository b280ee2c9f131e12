<?php

declare(strict_types=1);

namespace Tarry;

/**
 * The nodes that calls may go to: the given ones, which stay, and those learned from
 * replies, which are forgotten when they cannot be reached. One that has failed recently
 * is neither learned nor preferred as the leader.
 *
 * @internal
 */
final class Nodes
{
    /** For how many seconds a node that did not reply is not taken for the leader; by then another one leads. */
    private const AVOID_FAILED = 2.0;
    /** For how many seconds a learned node that cannot be reached is not learned again; each time twice as long. */
    private const AVOID_UNREACHABLE = 60.0;
    private const MAX_AVOID = 3600.0;

    private string $scheme;
    /** @var list<string> base URLs; the first $given are the caller's */
    private array $urls = [];
    private int $given;
    private string $first;
    /** @var array<string, array{float, float}> until when, of Clock::now(), and for how long */
    private array $avoided = [];

    /** @var \Closure(string): bool */
    private \Closure $usable;

    /**
     * @param list<string>|string $addresses host:port, or URLs with http or https; a text may have several, separated by commas
     * @param (\Closure(string): bool)|null $usable whether calls may go to a base URL; null: to all
     */
    public function __construct(array|string $addresses, ?\Closure $usable = null)
    {
        $this->usable = $usable ?? static fn (): bool => true;
        foreach ($addresses === [] ? [] : explode(',', implode(',', (array) $addresses)) as $address) {
            $this->urls[] = $url = self::url(trim($address));
            if (!($this->usable)($url)) {
                $how = 'use https:// (docs/tls.md), or tokenOverHttp if the network can be trusted';
                throw new \InvalidArgumentException("address \"$url\": a token is not sent to another machine without TLS; $how");
            }
        }
        if ($this->urls === []) {
            throw new \InvalidArgumentException('no address of a node is given');
        }
        $this->given = count($this->urls);
        $this->scheme = (string) parse_url($this->urls[0], PHP_URL_SCHEME);
        $this->first = $this->urls[array_rand($this->urls)];
    }

    /** @return list<string> all nodes, the one to ask first in front */
    public function inOrder(): array
    {
        $at = (int) array_search($this->first, $this->urls, true);
        return [...array_slice($this->urls, $at), ...array_slice($this->urls, 0, $at)];
    }

    /** @return list<string> the nodes that the caller has named */
    public function given(): array
    {
        return array_slice($this->urls, 0, $this->given);
    }

    /**
     * A node has replied, and named the leader unless it knows none.
     *
     * @param string|null $leader host:port
     */
    public function replied(string $url, ?string $leader): void
    {
        unset($this->avoided[$url]);
        $this->first = ($leader === null || $leader === '' ? null : $this->learn($leader)) ?? $url;
    }

    /** Adds a node whose address a reply has named. Returns its URL if it can be used. */
    public function learn(string $address): ?string
    {
        try {
            $url = self::url($this->scheme . '://' . $address);
        } catch (\InvalidArgumentException) {
            return null;
        }
        if (!($this->usable)($url) || ($this->avoided[$url][0] ?? 0.0) > Clock::now()) {
            return null;
        }
        if (!in_array($url, $this->urls, true)) {
            $this->urls[] = $url;
        }
        return $url;
    }

    /** A node did not reply: the one after it is asked first. A learned one that cannot be reached is forgotten. */
    public function failed(string $url, bool $unreachable): void
    {
        $at = array_search($url, $this->urls, true);
        if ($at === false) {
            return;
        }
        if ($this->first === $url) {
            $this->first = $this->urls[($at + 1) % count($this->urls)];
        }
        $forget = $unreachable && $at >= $this->given;
        if ($forget) {
            array_splice($this->urls, $at, 1);
        }
        $last = $this->avoided[$url][1] ?? 0.0;
        $pause = $forget ? min(max(self::AVOID_UNREACHABLE, 2 * $last), self::MAX_AVOID) : self::AVOID_FAILED;
        $this->avoided[$url] = [Clock::now() + $pause, $pause];
    }

    private static function url(string $address): string
    {
        $url = str_contains($address, '://') ? $address : 'http://' . $address;
        $parts = parse_url(rtrim($url, '/'));
        if (
            $parts === false || !isset($parts['host'], $parts['port'])
            || !in_array($parts['scheme'] ?? '', ['http', 'https'], true)
            || array_diff(array_keys($parts), ['scheme', 'host', 'port']) !== []
        ) {
            throw new \InvalidArgumentException("address \"$address\" is not of the form host:port");
        }
        return $parts['scheme'] . '://' . $parts['host'] . ':' . $parts['port'];
    }
}
