<?php

declare(strict_types=1);

namespace Tarry;

/**
 * The token that calls send, perhaps of a file. The text is not in a property, so that no dump of a client has it.
 *
 * @internal
 */
final class Token
{
    /** Far more than a token has. */
    private const MAX_FILE = 4096;

    /** @var \WeakMap<self, string>|null */
    private static ?\WeakMap $texts = null;

    public function __construct(
        #[\SensitiveParameter]
        ?string $text,
        private readonly ?string $file,
        private readonly bool $overHttp,
    ) {
        if ($text !== null && $file !== null) {
            throw new \InvalidArgumentException('give token or tokenFile, not both');
        }
        if ($text !== null) {
            self::$texts ??= new \WeakMap();
            self::$texts[$this] = self::checked($text, 'token');
        }
        $this->text();
    }

    private function __clone()
    {
    }

    /** @return array<string, mixed> */
    public function __serialize(): array
    {
        throw new \LogicException('a token cannot be serialized');
    }

    /** Reports whether calls may go to a base URL. Whoever reads the network has a token that is sent without TLS. */
    public function usable(string $url): bool
    {
        return $this->none() || $this->overHttp || str_starts_with($url, 'https:') || self::isLoopback($url);
    }

    /**
     * The headers of the next request that are about the token.
     *
     * @return list<string>
     * @throws TarryException
     */
    public function headers(): array
    {
        try {
            $text = $this->text();
        } catch (\InvalidArgumentException $e) {
            throw new TarryException(ErrorCode::INVALID_ARGUMENT, 'the request is not sent: ' . $e->getMessage());
        }
        return $text === null ? [] : ["Authorization: Bearer $text"];
    }

    private function none(): bool
    {
        return $this->file === null && !isset(self::$texts[$this]);
    }

    /** The text; a file is read each time, because it may have changed and PHP knows the time of that only in seconds. */
    private function text(): ?string
    {
        if ($this->file === null) {
            return self::$texts[$this] ?? null;
        }
        $text = @file_get_contents($this->file, length: self::MAX_FILE);
        if ($text === false) {
            throw new \InvalidArgumentException("tokenFile: the file $this->file cannot be read");
        }
        return self::checked($text, "tokenFile: $this->file");
    }

    /** The text, if it can be in a header. A message never repeats it. */
    private static function checked(
        #[\SensitiveParameter]
        string $text,
        string $where,
    ): string {
        $text = trim($text);
        if ($text === '') {
            throw new \InvalidArgumentException("$where: the token is empty");
        }
        if (preg_match('/^[!-~]+$/D', $text) !== 1) {
            throw new \InvalidArgumentException("$where: the token is not one word of ASCII");
        }
        return $text;
    }

    private static function isLoopback(string $url): bool
    {
        $host = strtolower(trim((string) parse_url($url, PHP_URL_HOST), '[]'));
        if ($host === 'localhost') {
            return true;
        }
        $address = (string) @inet_pton($host);
        $mapped = str_repeat("\0", 10) . "\xff\xff";
        if (str_starts_with($address, $mapped)) {
            $address = substr($address, strlen($mapped));
        }
        return (strlen($address) === 4 && $address[0] === "\x7f") || $address === inet_pton('::1');
    }
}
