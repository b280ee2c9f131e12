"""Streams: jobs over one open connection. ``Plan`` decides, the classes below it read."""

from __future__ import annotations

import json
import socket
import time
from collections import deque
from types import TracebackType
from typing import Deque, List, Optional, Sequence, Type

from ._http import FAILURES, Connection, Pool
from ._nodes import Nodes
from ._policy import HTTPReply, encode, lost, reply_error, unreachable
from ._wire import Response, WireError, encode_request
from .errors import TarryError, error
from .types import JSON, NotUnderstood, Reserved, Seconds, decode, member, seconds

PATH = "/v1/stream"
SILENT_BEATS = 3
"""How many heartbeats may be missing before the stream goes on with another node."""
MAX_LINE = 32 << 20
"""One line of a stream: the largest body in its widest form."""


class Plan:
    """Which node a stream reads from, what its lines mean, and when it ends."""

    def __init__(
        self,
        nodes: Nodes,
        timeout: float,
        patience: float,
        topics: Sequence[str],
        credit: int,
        max: int,
        ttr: Optional[Seconds],
        heartbeat: float,
        release_on_close: bool,
        consumer: Optional[str],
    ) -> None:
        self.nodes = nodes
        self.timeout = timeout
        self.patience = patience
        self.heartbeat = heartbeat
        self.want: JSON = {"topics": list(topics), "credit": credit, "heartbeat": heartbeat}
        if max:
            self.want["max"] = max
        if ttr is not None:
            self.want["ttr"] = seconds(ttr, "ttr")
        if release_on_close:
            self.want["on_close"] = "release"
        if consumer is not None:
            self.want["consumer"] = consumer
        self.ready: Deque[Reserved] = deque()
        self.ended = False
        self.failure: Optional[TarryError] = None  # why the present connection ended
        self._left = max
        self._round: List[str] = []
        self._rounds = 0
        self._opened = False
        self._partial = b""
        self._end = time.monotonic() + patience
        self._refuses_all = True  # all failures of this round are of certificates

    def node(self) -> str:
        """The node to connect to next."""
        if not self._round:
            self._round, self._refuses_all = self.nodes.order(), True
        self._partial, self._opened, self.failure = b"", False, None
        return self._round.pop(0)

    def request(self, node: str, authorization: Optional[str]) -> bytes:
        return encode_request(node, "POST", PATH, encode(self.want), authorization)

    def silence(self) -> float:
        """How long the node may say nothing."""
        return SILENT_BEATS * self.heartbeat if self._opened else self.timeout

    def lines(self, data: bytes) -> None:
        """Take a piece of the reply."""
        *whole, self._partial = (self._partial + data).split(b"\n")
        for line in whole:
            if line and not self.ended and self.failure is None:
                self._event(line)
        if len(self._partial) > MAX_LINE:
            raise WireError("a line of the stream is too long")

    def _event(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            kind = member(event, "event", str)
            job = decode(Reserved, event) if kind == "job" else None
        except (ValueError, RecursionError, NotUnderstood) as e:
            raise WireError(f"a line of the stream is not understood: {e}") from e
        if kind == "open":
            self._opened, self._rounds, self._end = True, 0, time.monotonic() + self.patience
        elif job is not None:
            self.ready.append(job)
            if self._left:
                self._left -= 1
                self.want["max"] = self._left
                self.ended = self._left == 0
        elif kind == "bye":
            self.failure = error("not_applied", "the node has ended the stream")
        elif kind == "error":
            self.failure = error(event.get("code", "unknown"), event.get("error", ""), status=200)

    def broken(self, node: str, failure: TarryError) -> float:
        """A connection has ended with a failure. It returns how long to wait before the next one, or
        raises the failure if there is no more hope."""
        if failure.status == 0 and failure.unsent or failure.code == "unknown":
            self.nodes.failed(node, not failure.unsent)
        if not failure.again and not failure.unknown:
            raise failure
        self._refuses_all = self._refuses_all and failure.refuses_node
        if self._opened:
            self._round = []
        elif self._round:
            return 0.0
        elif self._refuses_all or time.monotonic() >= self._end:
            raise failure
        pause = min(0.05 * 2.0 ** min(self._rounds, 5), 1.0)
        self._rounds += 1
        return max(pause, min(failure.retry_after, self._end - time.monotonic()))


class Stream:
    """Iterate over it for jobs; it is a context manager that closes the connection. Threads may not share it."""

    def __init__(self, plan: Plan, pool: Pool) -> None:
        self._plan = plan
        self._pool = pool
        self._node = ""
        self._connection: Optional[Connection] = None
        self._response = Response()
        self._silent_at = 0.0
        self._not_before = 0.0

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. The stream has no more jobs."""
        self._plan.ended = True
        self._plan.ready.clear()
        self._drop()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Reserved:
        job = self.next()
        if job is None:
            raise StopIteration
        return job

    def next(self, timeout: Optional[Seconds] = None) -> Optional[Reserved]:
        """The next job; None when the stream has ended. With a ``timeout`` it raises TimeoutError when
        no job came in time; the stream goes on."""
        until = None if timeout is None else time.monotonic() + seconds(timeout, "timeout")
        plan = self._plan
        # The caller may take its time over a job; only the node's silence counts.
        self._silent_at = time.monotonic() + plan.silence()
        while not plan.ready:
            if plan.ended:
                self._drop()
                return None
            if until is not None and time.monotonic() >= until:
                raise TimeoutError("no job came in time")
            self._step(until)
        return plan.ready.popleft()

    def _step(self, until: Optional[float]) -> None:
        """Connect, or read a piece."""
        try:
            if self._connection is None:
                self._connect(until)
            else:
                self._read(self._connection, until)
        except TarryError as failure:
            self._drop()
            self._not_before = time.monotonic() + self._plan.broken(self._node, failure)

    def _connect(self, until: Optional[float]) -> None:
        wait = self._not_before - time.monotonic()
        if wait > 0:
            time.sleep(wait if until is None else max(min(wait, until - time.monotonic()), 0))
            return
        plan = self._plan
        self._node = plan.node()
        self._response = Response()
        authorization = self._pool.token.authorization()
        try:
            self._connection = self._pool.connect(self._node, plan.timeout)
        except OSError as e:
            raise unreachable(self._node, e) from e
        self._silent_at = time.monotonic() + plan.timeout
        try:
            self._connection.send(plan.request(self._node, authorization), plan.timeout)
        except OSError as e:
            raise lost(self._node, e) from e

    def _read(self, connection: Connection, until: Optional[float]) -> None:
        plan, response = self._plan, self._response
        end = self._silent_at if until is None else min(self._silent_at, until)
        head = response.status == 0
        try:
            data = connection.receive(response, end)
        except socket.timeout as e:  # TimeoutError since Python 3.10
            if time.monotonic() < self._silent_at:
                return  # the caller's time is over, not the node's
            raise lost(self._node, "it is silent") from e
        except FAILURES as e:
            raise lost(self._node, e) from e
        if head and response.status:
            plan.nodes.replied(self._node, response.headers.get("tarry-leader"))
        if response.status >= 300:
            self._refused(connection, data)
        if response.status:
            try:
                plan.lines(data)
            except WireError as e:
                raise lost(self._node, e) from e
            self._silent_at = time.monotonic() + plan.silence()
        if plan.failure is not None:
            raise plan.failure
        if response.done and not plan.ended:
            raise lost(self._node, "the stream has ended")

    def _refused(self, connection: Connection, data: bytes) -> None:
        """Read the rest of a refusal and raise it."""
        try:
            while not self._response.done:
                data += connection.receive(self._response, self._silent_at)
        except FAILURES as e:
            raise lost(self._node, e) from e
        raise reply_error(HTTPReply(self._response.status, self._response.headers, data))

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def open_stream(
    nodes: Nodes,
    pool: Pool,
    timeout: float,
    patience: float,
    topics: Sequence[str],
    credit: int,
    max: int,
    ttr: Optional[Seconds],
    heartbeat: float,
    release_on_close: bool,
    consumer: Optional[str],
) -> Stream:
    """Make a stream; it connects with the first job that is asked for."""
    return Stream(
        Plan(nodes, timeout, patience, topics, credit, max, ttr, heartbeat, release_on_close, consumer), pool
    )
