<?php

declare(strict_types=1);

namespace Tarry\Tests;

use PHPUnit\Framework\TestCase;
use Tarry\Client;
use Tarry\ErrorCode;
use Tarry\NewJob;
use Tarry\Nodes;
use Tarry\TarryException;
use Tarry\Token;

/** The token that calls send. */
final class TokenTest extends TestCase
{
    private const SECRET = 't0p-Secret';
    private const ADDED = ['success' => true, 'id' => 'a', 'seq' => 1, 'state' => 'ready', 'revision' => 1, 'existing' => false];
    private const HERE = ['127.0.0.1:1', 'localhost:1', '[::1]:1', '[::ffff:127.0.0.1]:1', 'https://queue.example:1', '127.9.9.9:1'];
    private const AWAY = ['queue.example:1', 'http://10.0.0.1:1', 'localhost.example:1', '0.0.0.0:1', '[::]:1', '127.1:1'];

    /** @var resource|null the process of the server */
    private $server = null;
    /** @var resource|null what it writes */
    private $output = null;
    private string $file = '';

    protected function setUp(): void
    {
        $this->file = (string) tempnam(sys_get_temp_dir(), 'tarry');
    }

    protected function tearDown(): void
    {
        if ($this->server !== null) {
            proc_terminate($this->server, 9);
            proc_close($this->server);
        }
        if (file_exists($this->file)) {
            unlink($this->file);
        }
    }

    /**
     * Starts a server that gives these replies in turn.
     *
     * @param list<array{int, array<string, mixed>}> $replies
     */
    private function serve(array $replies): string
    {
        $server = proc_open(
            [PHP_BINARY, __DIR__ . '/server.php', json_encode($replies), '{}', 'authorization'],
            [1 => ['pipe', 'w']],
            $pipes,
        );
        self::assertIsResource($server);
        [$this->server, $this->output] = [$server, $pipes[1]];
        return trim((string) fgets($this->output));
    }

    /** The token of the next request that the server got. */
    private function sent(): string
    {
        self::assertNotNull($this->output);
        $header = trim((string) fgets($this->output));
        fgets($this->output); // the request
        return $header;
    }

    public function testAFileIsReadAgainWhenItHasChanged(): void
    {
        file_put_contents($this->file, " first\n");
        $address = $this->serve([[201, self::ADDED], [201, self::ADDED]]);
        $client = new Client([$address], patience: 0, learn: false, tokenFile: $this->file);
        $client->add(new NewJob('t', 'x'));
        self::assertSame('Bearer first', $this->sent());
        file_put_contents($this->file, 'other');
        $client->add(new NewJob('t', 'x'));
        self::assertSame('Bearer other', $this->sent());
        foreach (['', 'two words', "line\nbreak", 'ümlaut', null] as $bad) {
            $bad === null ? unlink($this->file) : file_put_contents($this->file, $bad);
            try {
                $client->add(new NewJob('t', 'x'));
                self::fail('it was sent');
            } catch (TarryException $e) {
                self::assertSame([ErrorCode::INVALID_ARGUMENT, false], [$e->errorCode, $e->unknown]);
                self::assertStringContainsString('is not sent: tokenFile: ', $e->getMessage());
            }
            try {
                new Client([$address], tokenFile: $this->file);
                self::fail('it was taken');
            } catch (\InvalidArgumentException $e) {
                self::assertStringContainsString('tokenFile: ', $e->getMessage());
            }
        }
    }

    public function testWithoutATokenNoneIsSent(): void
    {
        (new Client([$this->serve([[201, self::ADDED]])], learn: false))->add(new NewJob('t', 'x'));
        self::assertSame('', $this->sent());
    }

    public function testARefusalIsNotTriedAgainAndNothingPrintsTheToken(): void
    {
        $codes = [401 => ErrorCode::UNAUTHORIZED, 403 => ErrorCode::FORBIDDEN];
        $replies = [];
        foreach ($codes as $status => $code) {
            $reply = [$status, ['success' => false, 'code' => $code, 'error' => 'no', 'outcome' => 'not_applied']];
            array_push($replies, $reply, $reply);
        }
        $client = new Client([$this->serve($replies)], learn: false, token: self::SECRET);
        foreach ($codes as $status => $code) {
            $calls = [fn () => $client->add(new NewJob('t', 'x')), fn () => $client->stream(['t'])->next(30.0)];
            foreach ($calls as $call) {
                try {
                    $call();
                    self::fail('it was allowed');
                } catch (TarryException $e) {
                    self::assertSame([$code, $status, false], [$e->errorCode, $e->status, $e->unknown]);
                    self::assertStringNotContainsString(self::SECRET, $e . print_r($e->getMessage(), true));
                }
                self::assertSame('Bearer ' . self::SECRET, $this->sent());
            }
        }
        ob_start();
        var_dump($client);
        $dumped = ob_get_clean() . print_r($client, true) . var_export($client, true);
        self::assertStringNotContainsString(self::SECRET, $dumped);
    }

    public function testATokenIsNotSerialized(): void
    {
        $this->expectException(\LogicException::class);
        serialize(new Token(self::SECRET, null, false));
    }

    public function testItIsNotSentInPlainTextToAnotherMachine(): void
    {
        foreach ([...self::HERE, ...self::AWAY] as $address) {
            new Client([$address]);
            new Client([$address], token: self::SECRET, tokenOverHttp: true);
            try {
                new Client(['127.0.0.1:2', $address], token: self::SECRET);
                self::assertContains($address, self::HERE);
            } catch (\InvalidArgumentException $e) {
                self::assertContains($address, self::AWAY);
                self::assertStringContainsString('without TLS', $e->getMessage());
                self::assertStringNotContainsString(self::SECRET, (string) $e);
            }
        }
    }

    public function testNorToOneThatAReplyNames(): void
    {
        $nodes = new Nodes(['127.0.0.1:1'], (new Token(self::SECRET, null, false))->usable(...));
        $nodes->replied('http://127.0.0.1:1', '10.0.0.1:1');
        self::assertNull($nodes->learn('10.0.0.2:1'));
        self::assertSame('http://127.0.0.1:2', $nodes->learn('127.0.0.1:2'));
        self::assertSame(['http://127.0.0.1:1', 'http://127.0.0.1:2'], $nodes->inOrder());
    }
}
