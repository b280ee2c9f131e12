<?php

declare(strict_types=1);

namespace Tarry\Tests;

use PHPUnit\Framework\TestCase;
use Tarry\Client;
use Tarry\ErrorCode;
use Tarry\NewJob;
use Tarry\TarryException;

/** Calls against a server that does as the test says. */
final class CallsTest extends TestCase
{
    /** @var list<array{resource, resource}> */
    private array $servers = [];

    protected function tearDown(): void
    {
        foreach ($this->servers as [$process]) {
            proc_terminate($process, 9);
            proc_close($process);
        }
    }

    /**
     * Starts a server that gives these replies in turn: [status, reply], or null to close the
     * connection once the request has arrived.
     *
     * @param list<array{int, array<string, mixed>}|null> $replies
     * @param array<string, string> $headers
     */
    private function serve(array $replies, array $headers = []): string
    {
        $process = proc_open(
            [PHP_BINARY, __DIR__ . '/server.php', json_encode($replies), json_encode((object) $headers)],
            [1 => ['pipe', 'w']],
            $pipes,
        );
        self::assertIsResource($process);
        $this->servers[] = [$process, $pipes[1]];
        return trim((string) fgets($pipes[1]));
    }

    /** @return list<string> the requests of a server so far: method and path, with the body behind */
    private function requests(int $server = 0): array
    {
        stream_set_blocking($this->servers[$server][1], false);
        usleep(50_000);
        return array_values(array_filter(explode("\n", (string) stream_get_contents($this->servers[$server][1]))));
    }

    private const ADDED = ['success' => true, 'id' => 'a', 'seq' => 1, 'state' => 'ready', 'revision' => 1, 'existing' => false];
    private const REFUSED = ['success' => false, 'code' => 'overloaded', 'error' => 'too much', 'outcome' => 'not_applied'];

    public function testARefusedCallIsSentAgain(): void
    {
        $client = new Client([$this->serve([[429, self::REFUSED], [503, self::REFUSED], [201, self::ADDED]])], learn: false);
        self::assertSame('a', $client->add(new NewJob('t', 'x', id: 'a'))->id);
        self::assertCount(3, $this->requests());
    }

    public function testAnAddWithoutAnIdIsRepeatedWithTheSameId(): void
    {
        $client = new Client([$this->serve([null, [201, self::ADDED]])], learn: false);
        $client->add(new NewJob('t', 'x'));
        $requests = $this->requests();
        self::assertCount(2, $requests);
        self::assertSame($requests[0], $requests[1]);
        self::assertMatchesRegularExpression('/"id":"[0-9a-f]{32}"/', $requests[0]);
    }

    public function testAReleaseIsNotSentTwice(): void
    {
        // The first reply leaves a connection open; curl itself must not send again when it breaks.
        $client = new Client([$this->serve([[201, self::ADDED], null, [200, self::ADDED]])], learn: false);
        $client->add(new NewJob('t', 'x', id: 'a'));
        try {
            $client->release('a', token: '0-1-1');
            self::fail('the reply was lost');
        } catch (TarryException $e) {
            self::assertSame(ErrorCode::UNKNOWN, $e->errorCode);
            self::assertTrue($e->unknown);
        }
        self::assertCount(2, $this->requests());
    }

    public function testADeleteThatFindsNoJobAfterALostReplyHasSucceeded(): void
    {
        $gone = [404, ['success' => false, 'code' => 'not_found', 'error' => 'no such job']];
        $client = new Client([$this->serve([[201, self::ADDED], null, $gone, $gone])], learn: false);
        $client->add(new NewJob('t', 'x', id: 'a'));
        $client->delete('a');
        self::assertCount(3, $this->requests());
        $this->expectException(TarryException::class);
        $client->delete('a');
    }

    public function testAnErrorAfterAnUnknownAttemptIsUnknown(): void
    {
        $refused = [429, self::REFUSED];
        $client = new Client([$this->serve([null, ...array_fill(0, 50, $refused)])], patience: 0.2, learn: false);
        $this->expectExceptionObject(new TarryException('unknown', 'an earlier attempt may have been done; the last one failed: too much', true, status: 429));
        $client->add(new NewJob('t', 'x', id: 'a'));
    }

    public function testWhatIsNoReplyOfTarryIsNotTakenForOne(): void
    {
        $client = new Client([$this->serve([[404, ['page' => 'not here']]])], patience: 0, learn: false);
        try {
            $client->get('a');
            self::fail('it is no reply of Tarry');
        } catch (TarryException $e) {
            self::assertSame(404, $e->status);
            self::assertNotSame(ErrorCode::NOT_FOUND, $e->errorCode);
        }
    }

    public function testTheLeaderIsAskedFirst(): void
    {
        $leader = $this->serve(array_fill(0, 3, [201, self::ADDED]));
        $follower = $this->serve([[201, self::ADDED]], ['Tarry-Leader' => $leader]);
        $client = new Client([$follower], learn: false);
        foreach (range(1, 4) as $_) {
            $client->add(new NewJob('t', 'x', id: 'a'));
        }
        self::assertCount(3, $this->requests(0));
        self::assertCount(1, $this->requests(1));
    }

    public function testNobodyIsThere(): void
    {
        $client = new Client(['127.0.0.1:1'], patience: 0.1);
        try {
            $client->get('a');
            self::fail('nobody is there');
        } catch (TarryException $e) {
            self::assertSame(ErrorCode::NOT_APPLIED, $e->errorCode);
            self::assertFalse($e->unknown);
            self::assertStringContainsString('127.0.0.1:1 cannot be reached', $e->getMessage());
        }
    }

    /** @dataProvider addresses */
    public function testAnAddressThatIsNoneIsRefused(string $address): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage("address \"$address\" is not of the form host:port");
        new Client([$address]);
    }

    /** @return list<array{string}> */
    public static function addresses(): array
    {
        return [[''], ['localhost'], ['ftp://h:1'], ['http://h:1/path'], ['h:99999'], ['http://u:p@h:1']];
    }
}
