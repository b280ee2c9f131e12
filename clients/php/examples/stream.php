<?php

// Prints the jobs of a topic as they become ready, over one open connection.
//   php examples/stream.php mail 127.0.0.1:7300 127.0.0.1:7310 127.0.0.1:7320

declare(strict_types=1);

use Tarry\Client;

require __DIR__ . '/../autoload.php';

$client = new Client(array_slice($argv, 2) ?: ['127.0.0.1:7300']);
foreach ($client->stream([$argv[1] ?? 'mail'], credit: 20) as $job) {
    echo $job->id, ' ', json_encode($job->body), "\n";
    $client->finish($job);
}
