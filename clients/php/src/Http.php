<?php

declare(strict_types=1);

namespace Tarry;

/**
 * Requests over curl: one attempt at one node. Connections stay open between attempts.
 *
 * @internal
 */
final class Http
{
    private const CONNECT_TIMEOUT_MS = 3000;

    private ?\CurlHandle $curl = null;
    private int $owner = 0;
    /** @var list<\CurlHandle> of the process that forked this one: closing them would end its TLS */
    private static array $inherited = [];
    /** @var array<string, string> of the last reply, by names in lower case */
    public array $headers = [];

    public function __construct(private readonly Tls $tls, private readonly Token $token)
    {
    }

    /**
     * Sends a request and returns the decoded reply. $stop is asked about once a second
     * whether to give up.
     *
     * @param (callable(): bool)|null $stop
     * @return array<string, mixed>
     * @throws TarryException
     */
    public function attempt(string $node, Request $q, ?string $body, float $limit, ?callable $stop): array
    {
        $curl = $this->handle();
        $this->headers = [];
        curl_setopt_array($curl, self::options($node . $q->path, $q->method, $body, $this->tls, $this->token) + [
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT_MS => max(1, (int) ceil($limit * 1000)),
            CURLOPT_HEADERFUNCTION => function (\CurlHandle $_, string $line): int {
                self::header($line, $this->headers);
                return strlen($line);
            },
            // curl sends a request again when a kept connection turns out to be closed, and
            // does not say so. A body that it cannot rewind keeps it from that; a DELETE has
            // none, so it gets a connection of its own.
            CURLOPT_FRESH_CONNECT => $q->method === 'DELETE',
            CURLOPT_NOPROGRESS => $stop === null,
            CURLOPT_XFERINFOFUNCTION => static fn (): int => $stop !== null && $stop() ? 1 : 0,
        ]);
        $text = curl_exec($curl);
        $error = curl_errno($curl);
        if ($error !== 0 || !is_string($text)) {
            throw self::connectionError($node, $curl);
        }
        $status = (int) curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        $reply = self::reply($node, $status, $text, $this->headers);
        $wrong = $q->wrong($reply);
        if ($wrong !== null) {
            $what = "no node of Tarry sent it or one of another release: $wrong";
            throw new TarryException(ErrorCode::UNKNOWN, "the reply of $node is not understood, $what", true, null, $status);
        }
        return $reply;
    }

    /**
     * @internal
     * @return array<int, mixed>
     */
    public static function options(string $url, string $method, ?string $body, Tls $tls, Token $token): array
    {
        $headers = ['Accept: application/json', ...$token->headers()];
        $options = [
            CURLOPT_URL => $url,
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_CONNECTTIMEOUT_MS => self::CONNECT_TIMEOUT_MS,
            CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_1_1,
            CURLOPT_NOSIGNAL => true,
            CURLOPT_TCP_KEEPALIVE => 1,
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_PROXY => '',
            CURLOPT_PATH_AS_IS => true, // an id may be ..
        ] + $tls->options();
        if ($body === null) {
            return $options + [CURLOPT_HTTPGET => true, CURLOPT_HTTPHEADER => $headers];
        }
        $sent = 0;
        return $options + [
            CURLOPT_UPLOAD => true,
            CURLOPT_INFILESIZE => strlen($body),
            CURLOPT_READFUNCTION => static function ($_, $__, int $most) use ($body, &$sent): string {
                $part = substr($body, $sent, $most);
                $sent += strlen($part);
                return $part;
            },
            CURLOPT_HTTPHEADER => [...$headers, 'Content-Type: application/json', 'Expect:'],
        ];
    }

    /**
     * @internal
     * @param array<string, string> $headers
     */
    public static function header(string $line, array &$headers): void
    {
        if (str_contains($line, ':')) {
            [$name, $value] = explode(':', $line, 2);
            $headers[strtolower(trim($name))] = trim($value);
        }
    }

    /**
     * @internal
     * @param array<string, string> $headers
     * @return array<string, mixed>
     */
    public static function reply(string $node, int $status, string $text, array $headers): array
    {
        $reply = json_decode($text, true, 512, JSON_BIGINT_AS_STRING);
        if ($status < 300 && is_array($reply)) {
            return $reply;
        }
        if ($status >= 300 && is_array($reply) && isset($reply['code'])) {
            $retryAfter = $headers['retry-after'] ?? '';
            throw TarryException::fromReply($reply, $status, ctype_digit($retryAfter) ? (float) $retryAfter : 0.0);
        }
        // Something between the client and the node has replied.
        throw new TarryException(
            ErrorCode::UNKNOWN,
            "the reply of $node is not Tarry's: status $status",
            $status >= 500 || $status < 300,
            null,
            $status,
        );
    }

    /**
     * Tells apart whether the node can have seen the request.
     *
     * @internal
     */
    public static function connectionError(string $node, \CurlHandle $curl): TarryException
    {
        $reason = curl_error($curl) ?: 'no reply';
        if (curl_errno($curl) === CURLE_ABORTED_BY_CALLBACK) {
            return new TarryException(ErrorCode::UNKNOWN, 'the call was given up', true);
        }
        // No connection was made when nothing is known of its time.
        if ((float) curl_getinfo($curl, CURLINFO_PRETRANSFER_TIME) === 0.0) {
            $cause = new \RuntimeException($reason, curl_errno($curl));
            return new TarryException(ErrorCode::NOT_APPLIED, "$node cannot be reached: $reason", previous: $cause);
        }
        return new TarryException(
            ErrorCode::UNKNOWN,
            "the connection to $node was lost before it replied: $reason",
            true,
        );
    }

    /** The handle of this process: one that a fork has copied shares its connection. */
    private function handle(): \CurlHandle
    {
        $process = getmypid();
        if ($this->curl === null || $this->owner !== $process) {
            if ($this->curl !== null) {
                self::$inherited[] = $this->curl;
            }
            $made = curl_init();
            if ($made === false) {
                throw new \RuntimeException('curl has no handle');
            }
            [$this->curl, $this->owner] = [$made, (int) $process];
        }
        curl_reset($this->curl);
        return $this->curl;
    }
}
