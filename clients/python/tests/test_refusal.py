"""A node that refuses a request before it has all of it, as it does with a body that is too large."""

import asyncio
import socket
import threading
import time
import unittest

from tarry import AsyncClient, Client, TarryError

REPLY = b'{"success":false,"code":"too_large","error":"the request is too large","outcome":"not_applied"}'
LARGE = "x" * (16 << 20)  # more than the buffers of a connection hold


class Refuses:
    """Reads the head of a request, replies, and closes the connection with the body unread, as late as a node does."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            with connection:
                if not connection.recv(1024):
                    return
                connection.sendall(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(REPLY))
                connection.sendall(REPLY)
                connection.shutdown(socket.SHUT_WR)
                time.sleep(0.5)  # a reset that comes at once may overtake the reply

    def close(self) -> None:
        socket.create_connection(self.listener.getsockname()).close()
        self.thread.join()
        self.listener.close()


class TestRefusal(unittest.TestCase):
    def setUp(self) -> None:
        self.node = Refuses()
        self.addCleanup(self.node.close)

    def check(self, failure: TarryError) -> None:
        self.assertEqual((failure.code, failure.unknown), ("too_large", False))

    def test_its_reply_is_read_though_the_request_could_not_be_sent(self) -> None:
        with Client(self.node.address, patience=5) as client:
            with self.assertRaises(TarryError) as raised:
                client.add("t", LARGE)
        self.check(raised.exception)

    def test_also_with_asyncio(self) -> None:
        async def add() -> None:
            async with AsyncClient(self.node.address, patience=5) as client:
                await client.add("t", LARGE)

        with self.assertRaises(TarryError) as raised:
            asyncio.run(add())
        self.check(raised.exception)
