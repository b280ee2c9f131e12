<?php

// The server of CallsTest and TokenTest: replies from its first argument. With a third it writes the tokens of requests.

declare(strict_types=1);

$replies = json_decode($argv[1], true);
$headers = '';
foreach (json_decode($argv[2], true) as $name => $value) {
    $headers .= "$name: $value\r\n";
}
$server = stream_socket_server('tcp://127.0.0.1:0');
echo stream_socket_get_name($server, false), "\n";
$open = [$server];
while (true) {
    [$ready, $none] = [$open, null];
    stream_select($ready, $none, $none, 3600);
    foreach ($ready as $connection) {
        if ($connection === $server) {
            $open[] = stream_socket_accept($server);
        } elseif (!answer($connection, $replies, $headers)) {
            array_splice($open, (int) array_search($connection, $open, true), 1);
            fclose($connection);
        }
    }
}

/**
 * Answers one request; false: the connection is to be closed.
 *
 * @param resource $connection
 * @param list<array{int, array<string, mixed>}|'silence'|null> $replies
 */
function answer($connection, array &$replies, string $headers): bool
{
    $line = fgets($connection);
    if ($line === false) {
        return false;
    }
    [$length, $token] = [0, ''];
    while (($header = trim((string) fgets($connection))) !== '') {
        if (stripos($header, 'authorization:') === 0) {
            $token = trim(substr($header, 14));
        }
        if (stripos($header, 'content-length:') === 0) {
            $length = (int) trim(substr($header, 15));
        }
    }
    echo isset($GLOBALS['argv'][3]) ? "$token\n" : '';
    echo trim($line), ' ', $length > 0 ? stream_get_contents($connection, $length) : '', "\n";
    $reply = array_shift($replies);
    if (!is_array($reply)) {
        return $reply === 'silence';
    }
    $text = json_encode($reply[1]);
    fwrite($connection, "HTTP/1.1 $reply[0] X\r\n{$headers}Content-Length: " . strlen($text) . "\r\n\r\n$text");
    return true;
}
