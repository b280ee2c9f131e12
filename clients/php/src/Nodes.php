<?php

declare(strict_types=1);

namespace Tarry;

/**
 * The nodes that calls may go to: the given ones, which stay, and those learned from
 * replies, which are forgotten when they cannot be reached.
 *
 * @internal
 */
final class Nodes
{
    private string $scheme;
    /** @var list<string> base URLs; the first $given are the caller's */
    private array $urls = [];
    private int $given;
    private string $first;

    /** @param list<string> $addresses host:port, or URLs with http or https */
    public function __construct(array $addresses)
    {
        foreach ($addresses as $address) {
            $this->urls[] = self::url($address);
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

    /** Asks this node first from now on. */
    public function prefer(string $url): void
    {
        $this->first = $url;
    }

    /** Adds a node whose address a reply has named. */
    public function learn(string $address): ?string
    {
        try {
            $url = self::url($this->scheme . '://' . $address);
        } catch (\InvalidArgumentException) {
            return null;
        }
        if (!in_array($url, $this->urls, true)) {
            $this->urls[] = $url;
        }
        return $url;
    }

    /** Forgets a learned node. */
    public function forget(string $url): void
    {
        $at = array_search($url, $this->urls, true);
        if ($at !== false && $at >= $this->given) {
            array_splice($this->urls, $at, 1);
            if ($this->first === $url) {
                $this->first = $this->urls[0];
            }
        }
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
