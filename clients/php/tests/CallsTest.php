<?php

declare(strict_types=1);

namespace Tarry\Tests;

use PHPUnit\Framework\TestCase;
use Tarry\Client;
use Tarry\Clock;
use Tarry\ErrorCode;
use Tarry\NewJob;
use Tarry\Nodes;
use Tarry\ReservedJob;
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
     * Starts a server that gives these replies in turn: [status, reply], null to close the
     * connection once the request has arrived, or 'silence'.
     *
     * @param list<array{int, array<string, mixed>}|'silence'|null> $replies
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
        $text = '';
        do { // until the server has nothing more to say
            usleep(100_000);
            $more = (string) stream_get_contents($this->servers[$server][1]);
            $text .= $more;
        } while ($more !== '');
        return array_values(array_filter(explode("\n", $text)));
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

    public function testTheFinishesOfAReserveAreSentOnce(): void
    {
        $job = new ReservedJob('a', 1, 't', '0-1-1', 1, 0, null, null, 60.0, [], null);
        $gone = ['success' => false, 'code' => 'not_found', 'error' => 'no such job'];
        $client = new Client([$this->serve([
            null, // it may have finished the job
            [200, ['success' => false, 'finished' => [$gone], 'jobs' => []]],
            [400, ['success' => false, 'code' => 'invalid_argument', 'error' => 'no']],
        ])], learn: false);
        [$jobs, $finished] = $client->finishAndReserve([$job], ['t'], 1, 5.0);
        self::assertSame([[], [null]], [$jobs, $finished]);
        $requests = $this->requests();
        self::assertCount(3, $requests);
        self::assertStringContainsString('"finish":[{"id":"a","token":"0-1-1"}]', $requests[1]);
        self::assertStringNotContainsString('finish', $requests[2], 'the rest of the wait of a node that stops');
    }

    public function testATokenIsMadeOnceAndRevokedAsOftenAsItTakes(): void
    {
        $gone = [404, ['success' => false, 'code' => 'not_found', 'error' => 'no', 'outcome' => 'not_applied']];
        $client = new Client([$this->serve([null, null, $gone])], learn: false);
        try {
            $client->putToken('a', [['topics' => ['b.*'], 'verbs' => ['add']]], idPrefix: 'x-');
            self::fail('its outcome is unknown');
        } catch (TarryException $e) {
            self::assertTrue($e->unknown);
        }
        $client->deleteToken('a');
        $requests = $this->requests();
        self::assertCount(3, $requests);
        self::assertStringContainsString('PUT /v1/tokens/a', $requests[0]);
        self::assertStringContainsString('{"rules":[{"topics":["b.*"],"verbs":["add"]}],"id_prefix":"x-"}', $requests[0]);
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

    /**
     * @dataProvider repliesOfSomethingElse
     * @param array<string, mixed> $reply
     */
    public function testAReplyThatIsNotWhatTheCallGivesIsNoSuccess(array $reply, bool $reads, \Closure $call): void
    {
        $client = new Client([$this->serve([[200, $reply + ['success' => true]]])], patience: 0, learn: false);
        try {
            $call($client);
            self::fail('it is no reply to this call');
        } catch (TarryException $e) {
            self::assertSame($reads ? ErrorCode::NOT_APPLIED : ErrorCode::UNKNOWN, $e->errorCode);
            self::assertSame(!$reads, $e->unknown);
            self::assertStringContainsString('is not understood', $e->getMessage());
        }
    }

    /** @return list<array{array<string, mixed>, bool, \Closure}> */
    public static function repliesOfSomethingElse(): array
    {
        $job = new NewJob('t', 1, id: 'a');
        $item = ['results' => [['success' => true]]];
        $held = new ReservedJob('a', 1, 't', '0-1-1', 1, 0, null, null, 1.0, [], null);
        $write = static fn (\Closure $call, array $reply = []): array => [$reply, false, $call];
        $read = static fn (\Closure $call, array $reply = []): array => [$reply, true, $call];
        $found = ['id_prefix' => 'a'];
        return [
            $write(static fn (Client $c) => $c->add($job)),
            $write(static fn (Client $c) => $c->add($job), ['id' => 'a', 'seq' => '1', 'state' => 'ready']),
            $write(static fn (Client $c) => $c->add($job), ['id' => 'a', 'seq' => 1, 'state' => 'ready', 'due_at' => 'soon?']),
            $write(static fn (Client $c) => $c->add($job), ['success' => false, 'id' => 'a', 'seq' => 1, 'state' => 'ready']),
            $write(static fn (Client $c) => $c->addBatch([$job])),
            $write(static fn (Client $c) => $c->addBatch([$job]), ['results' => []]),
            $write(static fn (Client $c) => $c->addBatch([$job]), ['results' => [[]]]),
            $write(static fn (Client $c) => $c->addBatch([$job]), $item),
            $write(static fn (Client $c) => $c->addAll([$job]), ['results' => [null]]),
            $write(static fn (Client $c) => $c->finishThen('a', [$job]), $item),
            $write(static fn (Client $c) => $c->update('a', ['delay' => 1])),
            $write(static fn (Client $c) => $c->delete('a')),
            $write(static fn (Client $c) => $c->reserve(['t'])),
            $write(static fn (Client $c) => $c->reserve(['t']), ['jobs' => [['id' => 'a']]]),
            $write(static fn (Client $c) => $c->finish('a')),
            $write(static fn (Client $c) => $c->finishBatch([$held]), $item),
            $write(static fn (Client $c) => $c->deleteBatch(['a', $held]), ['results' => [$item['results'][0], $item['results'][0]]]),
            $write(static fn (Client $c) => $c->kickBatch(['a']), $item),
            $write(static fn (Client $c) => $c->updateBatch([['id' => 'a', 'delay' => 1]]), $item),
            $write(static fn (Client $c) => $c->touch('a')),
            $write(static fn (Client $c) => $c->release('a')),
            $write(static fn (Client $c) => $c->bury('a')),
            $write(static fn (Client $c) => $c->kick('a')),
            $write(static fn (Client $c) => $c->move('a', 'u')),
            $write(static fn (Client $c) => $c->deleteJobs($found)),
            $write(static fn (Client $c) => $c->updateJobs($found, ['delay' => 1])),
            $write(static fn (Client $c) => $c->kickJobs($found)),
            $write(static fn (Client $c) => $c->kickTopic('t')),
            $write(static fn (Client $c) => $c->purge('t', 'dead')),
            $write(static fn (Client $c) => $c->moveTopic('t', 'u')),
            $write(static fn (Client $c) => $c->pause('t')),
            $write(static fn (Client $c) => $c->resume('t')),
            $write(static fn (Client $c) => $c->setSettings('t', [])),
            $write(static fn (Client $c) => $c->putSchedule('s', [])),
            $write(static fn (Client $c) => $c->deleteSchedule('s')),
            $write(static fn (Client $c) => $c->pauseSchedule('s')),
            $write(static fn (Client $c) => $c->resumeSchedule('s')),
            $write(static fn (Client $c) => $c->runSchedule('s')),
            $read(static fn (Client $c) => $c->get('a')),
            $read(static fn (Client $c) => $c->getBatch(['a']), $item),
            $read(static fn (Client $c) => $c->history('a')),
            $read(static fn (Client $c) => $c->explain('a')),
            $read(static fn (Client $c) => iterator_to_array($c->jobs('t'))),
            $read(static fn (Client $c) => iterator_to_array($c->jobs('t')), ['jobs' => [[]]]),
            $read(static fn (Client $c) => iterator_to_array($c->topics())),
            $read(static fn (Client $c) => iterator_to_array($c->topics()), ['topics' => [[]]]),
            $read(static fn (Client $c) => $c->topic('t')),
            $read(static fn (Client $c) => $c->stats()),
            $read(static fn (Client $c) => $c->settings('t')),
            $read(static fn (Client $c) => $c->schedule('s')),
            $read(static fn (Client $c) => $c->scheduleRuns('s')),
            $read(static fn (Client $c) => $c->previewSchedule('s')),
            $read(static fn (Client $c) => $c->members()),
        ];
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

    public function testAnAddressThatCannotBeReachedIsAvoidedForTwiceAsLongEachTime(): void
    {
        $nodes = new Nodes(['a:1']);
        $avoided = new \ReflectionProperty(Nodes::class, 'avoided');
        $avoided->setAccessible(true);
        foreach ([60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0, 3600.0] as $seconds) {
            self::assertSame('http://b:1', $nodes->learn('b:1'));
            $before = Clock::now();
            $nodes->failed('http://b:1', true);
            self::assertNull($nodes->learn('b:1'));
            [$until, $pause] = $avoided->getValue($nodes)['http://b:1'];
            self::assertSame($seconds, $pause);
            self::assertGreaterThanOrEqual($before + $seconds, $until);
            $avoided->setValue($nodes, ['http://b:1' => [$before, $pause]]); // as if the time had passed
        }
    }

    public function testTheDeadlineThatEndsACallIsNamed(): void
    {
        $refused = array_fill(0, 50, [429, self::REFUSED]);
        $add = static fn (Client $c) => $c->add(new NewJob('t', 'x', id: 'a'));
        foreach (
            [
                [['silence'], 0.05, $add, ErrorCode::UNKNOWN],
                [['silence'], 0.05, static fn (Client $c) => $c->release('a'), ErrorCode::UNKNOWN],
                [['silence'], 0.05, static fn (Client $c) => $c->get('a'), ErrorCode::NOT_APPLIED],
                [$refused, 0.05, $add, ErrorCode::OVERLOADED],
                [['silence'], 0.0, $add, ErrorCode::NOT_APPLIED],
            ] as [$replies, $limit, $call, $code]
        ) {
            $client = new Client([$this->serve($replies)], learn: false);
            try {
                $call($client->withDeadline($limit));
                self::fail('it has a deadline');
            } catch (TarryException $e) {
                self::assertSame([$code, $code === ErrorCode::UNKNOWN], [$e->errorCode, $e->unknown]);
                self::assertStringStartsWith('the deadline ended the call', $e->getMessage());
            }
        }
        self::assertSame([], $this->requests(4));
    }

    public function testAWaitEndsBeforeTheDeadlineAndAFurtherAttemptAsksForTheRestOfIt(): void
    {
        $none = [200, ['success' => true, 'jobs' => []]];
        $wrong = [400, ['success' => false, 'code' => 'invalid_argument', 'error' => 'no']];
        $client = new Client([$this->serve([[503, self::REFUSED], $wrong, $wrong])], learn: false);
        foreach ([$client, $client->withDeadline(1.0)] as $c) {
            try {
                $c->reserve(['t'], wait: 60.0);
            } catch (TarryException) {
                continue;
            }
        }
        $waits = array_map(static fn (string $r): float => json_decode(strstr($r, '{'), true)['wait'], $this->requests());
        self::assertCount(3, $waits);
        self::assertLessThanOrEqual($waits[0] - 0.04, $waits[1], 'there was a pause of 50 ms');
        self::assertLessThanOrEqual(0.75, $waits[2]);
        self::assertGreaterThan(0.07, $waits[2]);
        $stopping = new Client([$this->serve(array_fill(0, 100, $none))], learn: false);
        self::assertSame([], $stopping->withDeadline(2.0)->reserve(['t'], wait: 60.0));
    }

    public function testInstantsBodiesAndHeadersAreTheSameInEveryCall(): void
    {
        $reply = self::ADDED + ['updated' => 0, 'deleted' => 0, 'schedule' => 's', 'settings' => []];
        $client = new Client([$this->serve(array_fill(0, 9, [200, $reply]))], learn: false);
        $at = new \DateTimeImmutable('2050-01-31T13:00:00.25+01:00');
        $time = '"2050-01-31T13:00:00.250+01:00"';
        $changes = ['due_at' => $at, 'body' => "\xff", 'headers' => []];
        $client->update('a', $changes);
        $client->updateJobs(['id_prefix' => 'a', 'due_to' => $at], $changes);
        $client->putSchedule('s', ['spec' => '@daily', 'start' => $at, 'job' => ['topic' => 't', 'body' => "\xff", 'headers' => []]]);
        $client->purge('t', 'dead', ['died_to' => $at, 'headers' => ['h' => 'v']]);
        $client->setSettings('t', []);
        $sent = '{"due_at":' . $time . ',"body_base64":"/w==","headers":{}}';
        self::assertSame([
            "PATCH /v1/jobs/a HTTP/1.1 $sent",
            'PATCH /v1/jobs?id_prefix=a&due_to=2050-01-31T13%3A00%3A00.250%2B01%3A00&all=true HTTP/1.1 ' . $sent,
            'PUT /v1/schedules/s HTTP/1.1 {"spec":"@daily","start":' . $time . ',"job":{"topic":"t","body_base64":"/w==","headers":{}}}',
            'POST /v1/topics/t/purge HTTP/1.1 {"all":true,"filter":{"died_to":' . $time . ',"headers":{"h":"v"}},"state":"dead"}',
            'PUT /v1/topics/t/settings HTTP/1.1 {}',
        ], $this->requests());
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
