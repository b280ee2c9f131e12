"""The token that calls send, against a node that records it."""

import asyncio
import json
import os
import pickle
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, List, Optional

from tarry import AsyncClient, Client, Forbidden, Refused, Unauthorized
from tarry._nodes import Nodes
from tarry._token import Token

SECRET = "t0p-Secret"


class Node:
    """Replies to every call with one status and code, and records the tokens of the requests."""

    def __init__(self) -> None:
        self.status, self.code = 200, ""
        self.seen: List[Optional[str]] = []
        node = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                node.seen.append(self.headers.get("Authorization"))
                reply = {"success": node.status == 200, "id": "a", "seq": 1, "state": "ready", "revision": 1, "existing": False}
                if node.code:
                    reply.update(code=node.code, error="no", outcome="not_applied")
                data = json.dumps(reply).encode()
                self.send_response(node.status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def take(self) -> List[Optional[str]]:
        seen, self.seen = self.seen, []
        return seen

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class TokenTest(unittest.TestCase):
    def setUp(self) -> None:
        self.node = Node()
        self.addCleanup(self.node.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "token"

    def write(self, text: str, time: int) -> None:
        self.file.write_text(text, encoding="utf-8")
        os.utime(self.file, (time, time))

    def test_a_file_is_read_again_when_it_has_changed(self) -> None:
        self.write(" first\n", 1)
        with Client(self.node.address, token_file=self.file, patience=0) as client:
            client.add("t", 1)
            self.assertEqual(self.node.take(), ["Bearer first"])
            self.write("other", 2)
            client.add("t", 1)
            self.assertEqual(self.node.take(), ["Bearer other"])
            for time, bad in enumerate(("", "two words", "line\nbreak", "ümlaut"), start=3):
                self.write(bad, time)
                with self.assertRaisesRegex(Refused, "the token is"):
                    client.add("t", 1)
                with self.assertRaisesRegex(ValueError, "the token is"):
                    Client(self.node.address, token_file=str(self.file))
            self.file.unlink()
            with self.assertRaisesRegex(Refused, "is not sent"):
                client.add("t", 1)
        self.assertEqual(self.node.take(), [])
        with self.assertRaises(FileNotFoundError):
            Client(self.node.address, token_file=self.file)
        with self.assertRaisesRegex(ValueError, "not both"):
            Client(self.node.address, token="x", token_file=self.file)

    def test_without_a_token_none_is_sent(self) -> None:
        with Client(self.node.address) as client:
            client.add("t", 1)
        self.assertEqual(self.node.take(), [None])

    def test_a_refusal_is_not_tried_again(self) -> None:
        for status, code, kind in ((401, "unauthorized", Unauthorized), (403, "forbidden", Forbidden)):
            self.node.status, self.node.code = status, code
            with Client(self.node.address, token=SECRET) as client:
                with self.assertRaises(kind) as caught:
                    client.add("t", 1)
                self.assertEqual((caught.exception.code, caught.exception.unknown), (code, False))
                self.assertNotIn(SECRET, repr(caught.exception))
                with self.assertRaises(kind):
                    next(client.stream("t"))
                self.assertNotIn(SECRET, repr(client) + repr(vars(client)))
            self.assertEqual(self.node.take(), ["Bearer " + SECRET] * 2)

    def test_asyncio(self) -> None:
        self.node.status, self.node.code = 403, "forbidden"

        async def calls() -> None:
            client = AsyncClient(self.node.address, token=SECRET)
            with self.assertRaises(Forbidden):
                await client.add("t", 1)
            with self.assertRaises(Forbidden):
                async for _ in client.stream("t"):
                    pass
            client.close()

        asyncio.run(calls())
        self.assertEqual(self.node.take(), ["Bearer " + SECRET] * 2)

    def test_a_token_is_not_printed(self) -> None:
        token = Token(SECRET, None, False)
        self.assertNotIn(SECRET, repr(token))
        with self.assertRaises(TypeError):
            pickle.dumps(token)

    def test_it_is_not_sent_in_plain_text_to_another_machine(self) -> None:
        here = ("127.0.0.1:1", "localhost:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "https://queue.example:1", "127.9.9.9:1")
        away = ("queue.example:1", "http://10.0.0.1:1", "localhost.example:1", "0.0.0.0:1", "[::]:1", "127.1:1")
        for address in here + away:
            with self.subTest(address):
                Client(address)
                Client(address, token=SECRET, token_over_http=True)
                if address in here:
                    Client(address, token=SECRET)
                    continue
                with self.assertRaisesRegex(ValueError, "without TLS") as caught:
                    AsyncClient(["127.0.0.1:1", address], token=SECRET)
                self.assertNotIn(SECRET, str(caught.exception))

    def test_nor_to_one_that_a_reply_names(self) -> None:
        nodes = Nodes(["127.0.0.1:1"], usable=Token(SECRET, None, False).usable)
        nodes.replied("http://127.0.0.1:1", "10.0.0.1:1")
        nodes.meet(["10.0.0.2:1", "127.0.0.1:2"])
        self.assertEqual(nodes.order(), ["http://127.0.0.1:1", "http://127.0.0.1:2"])
