"""Streams for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from types import TracebackType
from typing import Deque, Optional, Sequence, Type

from ._aiohttp import FAILURES, AsyncConnection, AsyncPool, limited
from ._nodes import Nodes
from ._policy import HTTPReply, lost, reply_error, unreachable
from ._stream import Plan
from ._wire import Response, WireError
from .errors import TarryError
from .types import Reserved, Seconds


class AsyncStream:
    """Iterate over it with ``async for``; as an ``async with`` it closes the connection. Tasks may not share it."""

    def __init__(self, plan: Plan, pool: AsyncPool) -> None:
        self._plan = plan
        self._pool = pool
        self._node = ""
        self._connection: Optional[AsyncConnection] = None
        self._response = Response()
        self._pieces: Deque[bytes] = deque()
        self._named = False  # the node has named the leader
        self._silent_at = 0.0
        self._not_before = 0.0

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. The stream has no more jobs."""
        self._plan.ended = True
        self._plan.ready.clear()
        self._drop()

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Reserved:
        job = await self.next()
        if job is None:
            raise StopAsyncIteration
        return job

    async def next(self) -> Optional[Reserved]:
        """The next job; None when the stream has ended. It may be cancelled, and called again."""
        plan = self._plan
        # The caller may take its time over a job; only the node's silence counts.
        self._silent_at = time.monotonic() + plan.silence()
        while not plan.ready:
            if plan.ended:
                self._drop()
                return None
            try:
                if self._connection is None:
                    await self._connect()
                else:
                    await self._read(self._connection)
            except TarryError as failure:
                self._drop()
                self._not_before = time.monotonic() + plan.broken(self._node, failure)
        return plan.ready.popleft()

    async def _connect(self) -> None:
        wait = self._not_before - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        plan = self._plan
        self._node = plan.node()
        self._response, self._named = Response(), False
        self._pieces.clear()
        authorization = self._pool.token.authorization()
        try:
            connection = await self._pool.connect(self._node, plan.timeout)
        except (OSError, asyncio.TimeoutError) as e:
            raise unreachable(self._node, e or type(e).__name__) from e
        self._connection = connection
        self._silent_at = time.monotonic() + plan.timeout
        try:
            connection.writer.write(plan.request(self._node, authorization))
            await connection.writer.drain()
        except OSError as e:
            raise lost(self._node, e) from e

    async def _read(self, connection: AsyncConnection) -> None:
        plan, response = self._plan, self._response
        head = not self._named
        try:
            left = max(self._silent_at - time.monotonic(), 0.001)
            if not self._pieces:
                await limited(self._receive(connection, response), left)
        except FAILURES as e:
            raise lost(self._node, e or "it is silent") from e
        data = self._pieces.popleft()
        if head and response.status:
            self._named = True
            plan.nodes.replied(self._node, response.headers.get("tarry-leader"))
        if response.status >= 300:
            await self._refused(connection, data)
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

    async def _receive(self, connection: AsyncConnection, response: Response) -> None:
        """Take a piece. It is kept for the next call when this one is cancelled just then."""
        self._pieces.append(await connection.receive(response))

    async def _refused(self, connection: AsyncConnection, data: bytes) -> None:
        """Read the rest of a refusal and raise it."""
        try:
            while not self._response.done:
                data += await limited(connection.receive(self._response), self._plan.timeout)
        except FAILURES as e:
            raise lost(self._node, e) from e
        raise reply_error(HTTPReply(self._response.status, self._response.headers, data))

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def open_stream(
    nodes: Nodes,
    pool: AsyncPool,
    timeout: float,
    patience: float,
    topics: Sequence[str],
    credit: int,
    max: int,
    ttr: Optional[Seconds],
    heartbeat: float,
    release_on_close: bool,
    consumer: Optional[str],
) -> AsyncStream:
    """Make a stream; it connects with the first job that is asked for."""
    return AsyncStream(
        Plan(nodes, timeout, patience, topics, credit, max, ttr, heartbeat, release_on_close, consumer), pool
    )
