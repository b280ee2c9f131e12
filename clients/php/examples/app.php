<?php

// An unpaid order is closed after half an hour (here: after five seconds), whatever happens to
// the nodes meanwhile. Run it with the nodes' addresses:
//   php examples/app.php 127.0.0.1:7300 127.0.0.1:7310 127.0.0.1:7320

declare(strict_types=1);

use Tarry\Client;
use Tarry\NewJob;
use Tarry\ReservedJob;
use Tarry\Worker;

require __DIR__ . '/../autoload.php';

$client = new Client(array_slice($argv, 1) ?: ['127.0.0.1:7300']);

foreach (range(1, 10) as $order) {
    $added = $client->add(new NewJob('unpaid', ['order' => $order], id: "close-order-$order", delay: 5));
    echo "order $order is closed at {$added->dueAt->format('H:i:s')} unless it is paid\n";
}
$client->delete('close-order-3'); // it was paid

$left = 9;
$worker = new Worker($client, 'unpaid', function (ReservedJob $job) use (&$left, &$worker): void {
    echo "closed order {$job->body['order']} (attempt $job->attempts)\n";
    if (--$left === 0) {
        $worker->stop();
    }
});
$worker->run();
