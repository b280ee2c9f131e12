<?php

// Symfony Messenger with its own transport for beanstalkd: a message that is delayed, one that
// is acknowledged and one that is rejected. Arguments: host and port.

declare(strict_types=1);

use Symfony\Component\Messenger\Bridge\Beanstalkd\Transport\BeanstalkdTransportFactory;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

require 'Symfony/Component/Messenger/autoload.php';
require 'Symfony/Component/Messenger/Bridge/Beanstalkd/autoload.php';

function check(bool $ok, string $what): void
{
    if (!$ok) {
        fwrite(STDERR, "not so: $what\n");
        exit(1);
    }
}

final class CloseOrder
{
    public function __construct(public string $order)
    {
    }
}

$transport = (new BeanstalkdTransportFactory())->createTransport(
    "beanstalkd://$argv[1]:$argv[2]",
    ['tube_name' => 'symfony', 'timeout' => 1, 'ttr' => 90],
    new PhpSerializer(),
);

$began = microtime(true);
$transport->send(new Envelope(new CloseOrder('o1')));
$transport->send(new Envelope(new CloseOrder('o2'), [new DelayStamp(2000)]));
$transport->send(new Envelope(new CloseOrder('o3')));
check($transport->getMessageCount() === 2, 'two messages are ready, one is delayed');

$got = [];
while (count($got) < 3 && microtime(true) < $began + 30) {
    foreach ($transport->get() as $envelope) {
        $order = $envelope->getMessage()->order;
        $got[] = $order;
        $order === 'o3' ? $transport->reject($envelope) : $transport->ack($envelope);
    }
}
check($got === ['o1', 'o3', 'o2'], 'all messages came, the delayed one last: ' . implode(' ', $got));
check(microtime(true) - $began >= 2, 'the delayed message was not early');
check($transport->getMessageCount() === 0, 'nothing is left');
