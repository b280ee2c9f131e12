<?php

// Laravel's queue with its own driver for beanstalkd: a job that is delayed, a job that fails
// once and is tried again, and a job that is deleted. Arguments: host and port.

declare(strict_types=1);

use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Queue\Job;
use Illuminate\Events\Dispatcher;
use Illuminate\Queue\Capsule\Manager;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;

require 'Illuminate/Queue/autoload.php';
require 'Illuminate/Events/autoload.php';
require 'Pheanstalk/autoload.php';

function check(bool $ok, string $what): void
{
    if (!$ok) {
        fwrite(STDERR, "not so: $what\n");
        exit(1);
    }
}

/** What an application's job class is: Laravel calls fire() with the job and its data. */
final class CloseOrder
{
    /** @var list<string> */
    public static array $closed = [];

    /** @param array<string, mixed> $data */
    public function fire(Job $job, array $data): void
    {
        if (($data['fails'] ?? false) && $job->attempts() === 1) {
            throw new RuntimeException('the shop does not answer');
        }
        self::$closed[] = $data['order'] . '@' . $job->attempts();
        $job->delete();
    }
}

final class Reports implements ExceptionHandler
{
    public int $count = 0;

    public function report(Throwable $e)
    {
        $this->count++;
    }

    public function shouldReport(Throwable $e)
    {
        return true;
    }

    public function render($request, Throwable $e)
    {
        throw $e;
    }

    public function renderForConsole($output, Throwable $e)
    {
        throw $e;
    }
}

$container = new Container();
$events = new Dispatcher($container);
$container->instance('events', $events);
$container->instance(Illuminate\Contracts\Events\Dispatcher::class, $events);
$queues = new Manager($container);
$queues->addConnection([
    'driver' => 'beanstalkd',
    'host' => $argv[1],
    'port' => (int) $argv[2],
    'queue' => 'laravel',
    'retry_after' => 90,
    'block_for' => 0,
]);
$queue = $queues->getConnection();

$began = microtime(true);
$queue->push(CloseOrder::class, ['order' => 'o1']);
$queue->later(2, CloseOrder::class, ['order' => 'o2']);
$queue->push(CloseOrder::class, ['order' => 'o3', 'fails' => true]);
check($queue->size() === 2, 'two jobs are ready, one is delayed');

$reports = new Reports();
$worker = new Worker($queues->getQueueManager(), $events, $reports, static fn (): bool => false);
$options = new WorkerOptions('default', 1, 128, 60, 0, 3);
while (count(CloseOrder::$closed) < 3 && microtime(true) < $began + 30) {
    $worker->runNextJob('default', 'laravel', $options);
}
$took = microtime(true) - $began;
sort(CloseOrder::$closed);
check(CloseOrder::$closed === ['o1@1', 'o2@1', 'o3@2'], 'all orders are closed, the third at its second attempt: ' . implode(' ', CloseOrder::$closed));
check($reports->count === 1, "the failure was reported once, not $reports->count times");
check($took >= 2, 'the delayed job was not early');
check($queue->size() === 0, 'nothing is left');
