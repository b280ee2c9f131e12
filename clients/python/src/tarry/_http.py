"""Connections to nodes, for threads."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from typing import Dict, List, Optional, Tuple, TypeVar
from urllib.parse import urlsplit

from ._policy import Attempt, HTTPReply, Outcome, Sleep, Steps, lost, unreachable
from ._wire import MAX_REPLY, Response, WireError, encode_request
from ._token import Token
from .errors import TarryError, error

T = TypeVar("T")

CONNECT_TIME = 3.0
IDLE_TIME = 60.0
"""A connection that was idle for longer is not used again. The server closes it after five minutes."""
MAX_IDLE = 64
"""Idle connections that are kept for each node."""
PIECE = 64 << 10
REFUSAL_TIME = 1.0
"""For the rest of a reply that came while its request was being sent."""


class Cancel:
    """Ends a call from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sock: Optional[socket.socket] = None
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        with self._lock:
            self.cancelled.set()
            if self._sock is not None:
                try:
                    self._sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it is closed already

    def watch(self, sock: Optional[socket.socket]) -> bool:
        """Take the connection of the call, or None after it. False: the call was cancelled."""
        with self._lock:
            self._sock = sock
            return not self.cancelled.is_set()


class Connection:
    """One connection to a node."""

    def __init__(self, node: str, limit: float, context: Optional[ssl.SSLContext]) -> None:
        url = urlsplit(node)
        assert url.hostname is not None and url.port is not None
        self.sock = socket.create_connection((url.hostname, url.port), timeout=min(limit, CONNECT_TIME))
        try:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if url.scheme == "https":
                made = context or ssl.create_default_context()
                self.sock = made.wrap_socket(self.sock, server_hostname=url.hostname)
        except BaseException:
            self.sock.close()
            raise
        self.since = time.monotonic()

    def usable(self) -> bool:
        """Whether an idle connection is still open: a node that has closed it has sent the end."""
        if time.monotonic() - self.since > IDLE_TIME:
            return False
        try:
            return not select.select([self.sock], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    def send(self, data: bytes, limit: float) -> None:
        self.sock.settimeout(limit)
        self.sock.sendall(data)

    def receive(self, response: Response, end: float) -> bytes:
        """Wait for the next piece of a reply, until ``end`` of the monotonic clock."""
        self.sock.settimeout(max(end - time.monotonic(), 0.001))
        data = self.sock.recv(PIECE)
        if not data:
            response.eof()
        return response.feed(data)

    def close(self) -> None:
        self.sock.close()


FAILURES = (OSError, WireError)


class Pool:
    """Connections to the nodes. Threads may share it."""

    def __init__(self, context: Optional[ssl.SSLContext], token: Token) -> None:
        self._context = context
        self.token = token
        self._lock = threading.Lock()
        self._idle: Dict[str, List[Connection]] = {}

    def connect(self, node: str, limit: float) -> Connection:
        return Connection(node, limit, self._context)

    def take(self, node: str, limit: float) -> Connection:
        while True:
            with self._lock:
                idle = self._idle.get(node)
                connection = idle.pop() if idle else None
            if connection is None:
                return self.connect(node, limit)
            if connection.usable():
                return connection
            connection.close()

    def give(self, node: str, connection: Connection) -> None:
        connection.since = time.monotonic()
        with self._lock:
            idle = self._idle.setdefault(node, [])
            if len(idle) < MAX_IDLE:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def run(self, steps: Steps[T], cancel: Optional[Cancel]) -> T:
        """Do what the steps of a call say, and return what it returns."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Sleep):
                    self._sleep(step.seconds, cancel)
                    step = steps.send(None)
                    continue
                outcome = self.attempt(step, cancel)
                if isinstance(outcome, TarryError) and cancel is not None and cancel.cancelled.is_set():
                    raise error("not_applied", "the call was cancelled")
                step = steps.send(outcome)
        except StopIteration as done:
            result: T = done.value
            return result

    @staticmethod
    def _sleep(length: float, cancel: Optional[Cancel]) -> None:
        if cancel is None:
            time.sleep(length)
        elif cancel.cancelled.wait(length):
            raise error("not_applied", "the call was cancelled")

    def attempt(self, a: Attempt, cancel: Optional[Cancel]) -> Outcome:
        """Make an attempt. Only whether a connection was made tells that nothing was sent."""
        end = time.monotonic() + a.limit
        authorization = self.token.authorization()
        try:
            connection = self.take(a.node, a.limit)
        except OSError as e:
            return unreachable(a.node, e)
        try:
            if cancel is not None and not cancel.watch(connection.sock):
                connection.close()
                return unreachable(a.node, "the call was cancelled")
            reply, keep = self._exchange(connection, a, authorization, end)
        except FAILURES as e:
            connection.close()
            return lost(a.node, e or type(e).__name__)
        except BaseException:
            connection.close()
            raise
        finally:
            if cancel is not None:
                cancel.watch(None)
        if keep:
            self.give(a.node, connection)
        else:
            connection.close()
        return reply

    def _exchange(
        self, connection: Connection, a: Attempt, authorization: Optional[str], end: float
    ) -> Tuple[HTTPReply, bool]:
        request = encode_request(a.node, a.method, a.path, a.body, authorization)
        try:
            connection.send(request, max(end - time.monotonic(), 0.001))
        except OSError as e:
            # A node that refuses a request replies before it has all of it, and reads no more.
            try:
                reply = self._reply(connection, Response(), min(end, time.monotonic() + REFUSAL_TIME))
            except FAILURES:
                raise e
            if reply.status < 400:
                raise
            return reply, False
        response = Response()
        return self._reply(connection, response, end), response.keep

    def _reply(self, connection: Connection, response: Response, end: float) -> HTTPReply:
        data = bytearray()
        while not response.done:
            data += connection.receive(response, end)
            if len(data) > MAX_REPLY:
                raise WireError("the reply is too long")
        return HTTPReply(response.status, response.headers, bytes(data))
