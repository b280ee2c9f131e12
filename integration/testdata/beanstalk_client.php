<?php
// Leads jobs through their states with the client Pheanstalk:
// php beanstalk_client.php HOST PORT. Ends with a message at the first surprise.
require 'Pheanstalk/autoload.php';

use Pheanstalk\Pheanstalk;

function expect(string $what, $want, $have): void
{
    if ($want !== $have) {
        fwrite(STDERR, "$what: want " . var_export($want, true) . ', have ' . var_export($have, true) . "\n");
        exit(1);
    }
}

function connect(): Pheanstalk
{
    global $argv;
    return Pheanstalk::create($argv[1], (int) $argv[2])->useTube('php-work')->watchOnly('php-work');
}

$client = connect();
$binary = "\x00\r\n\xff{}";
$job = $client->put($binary, 5, 0, 60);
$later = $client->put('later', 1024, 600);
expect('peek ready', $job->getId(), $client->peekReady()->getId());
expect('peek delayed', $later->getId(), $client->peekDelayed()->getId());
expect('peek buried', null, $client->peekBuried());
expect('jobs ready', '1', $client->statsTube('php-work')['current-jobs-ready']);
expect('tubes', true, in_array('php-work', $client->listTubes(), true));

$mine = $client->reserveWithTimeout(1);
expect('reserved', [$job->getId(), $binary], [$mine->getId(), $mine->getData()]);
$client->touch($mine);
$client->release($mine, 7, 0);
$stats = $client->statsJob($mine);
expect('released', ['ready', '7', '1'], [$stats['state'], $stats['pri'], $stats['releases']]);

$mine = $client->reserveWithTimeout(1);
$client->bury($mine, 9);
expect('buried', $job->getId(), $client->peekBuried()->getId());
expect('kicked', 1, $client->kick(10));
$mine = $client->reserve();
$stats = $client->statsJob($mine);
expect('after the kick', ['1', '1', '3'], [$stats['kicks'], $stats['buries'], $stats['reserves']]);
$client->delete($mine);
expect('reserve without jobs', null, $client->reserveWithTimeout(0));
try {
    $client->peek($mine);
    expect('a peek at a deleted job', 'refused', 'answered');
} catch (\Pheanstalk\Exception\ServerException $e) {
}
try {
    $client->put(str_repeat('x', 70000));
    expect('a job that is too big', 'refused', 'inserted');
} catch (\Pheanstalk\Exception\JobTooBigException $e) {
}

$client->pauseTube('php-work', 600);
$client->kickJob($later);
expect('reserve while the tube is paused', null, $client->reserveWithTimeout(0));
$client->resumeTube('php-work');
expect('kicked by id', $later->getId(), $client->reserveWithTimeout(1)->getId());
unset($client); // closes the connection and so returns the job
gc_collect_cycles();
$client = connect();
$mine = $client->reserveWithTimeout(10);
expect('returned', $later->getId(), $mine->getId());
$client->delete($mine);
expect('version', '1.13', trim($client->stats()['version'], '"')); // quoted since 1.13, which this client leaves there
expect('jobs left', '0', $client->statsTube('php-work')['current-jobs-ready']);
