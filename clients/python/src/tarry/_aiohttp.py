"""Connections to nodes, for asyncio."""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Any, Coroutine, Dict, List, Optional, TypeVar
from urllib.parse import urlsplit

from ._http import CONNECT_TIME, IDLE_TIME, MAX_IDLE, PIECE
from ._policy import Attempt, HTTPReply, Outcome, Sleep, Steps, lost, unreachable
from ._token import Token
from ._wire import MAX_REPLY, Response, WireError, encode_request

T = TypeVar("T")

FAILURES = (OSError, WireError, asyncio.TimeoutError, EOFError)


async def limited(work: Coroutine[Any, Any, T], limit: float) -> T:
    """The result of ``work``, or asyncio.TimeoutError. Unlike asyncio.wait_for before Python 3.12, it does not swallow
    a cancellation that comes when the work has just ended."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=limit)
    except asyncio.CancelledError:
        await _ended(task)
        raise
    if not done:
        await _ended(task)
        raise asyncio.TimeoutError("no reply in time")
    return task.result()


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # it is looked at, so that nobody complains


class AsyncConnection:
    """One connection to a node."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.since = time.monotonic()

    def usable(self) -> bool:
        """Whether an idle connection is still open."""
        return (
            time.monotonic() - self.since <= IDLE_TIME and not self.reader.at_eof() and not self.writer.is_closing()
        )

    async def receive(self, response: Response) -> bytes:
        """Wait for the next piece of a reply."""
        data = await self.reader.read(PIECE)
        if not data:
            response.eof()
        return response.feed(data)

    def close(self) -> None:
        self.writer.close()


async def connect(node: str, limit: float, context: Optional[ssl.SSLContext]) -> AsyncConnection:
    url = urlsplit(node)
    made = None
    if url.scheme == "https":
        made = context or ssl.create_default_context()
    reader, writer = await limited(
        asyncio.open_connection(url.hostname, url.port, ssl=made), min(limit, CONNECT_TIME)
    )
    return AsyncConnection(reader, writer)


class AsyncPool:
    """Connections to the nodes, of one event loop."""

    def __init__(self, context: Optional[ssl.SSLContext], token: Token) -> None:
        self._context = context
        self.token = token
        self._idle: Dict[str, List[AsyncConnection]] = {}

    async def run(self, steps: Steps[T]) -> T:
        """Do what the steps of a call say, and return what it returns."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Sleep):
                    await asyncio.sleep(step.seconds)
                    step = steps.send(None)
                else:
                    step = steps.send(await self.attempt(step))
        except StopIteration as done:
            result: T = done.value
            return result

    async def connect(self, node: str, limit: float) -> AsyncConnection:
        return await connect(node, limit, self._context)

    async def take(self, node: str, limit: float) -> AsyncConnection:
        idle = self._idle.get(node, [])
        while idle:
            connection = idle.pop()
            if connection.usable():
                return connection
            connection.close()
        return await self.connect(node, limit)

    def give(self, node: str, connection: AsyncConnection) -> None:
        connection.since = time.monotonic()
        idle = self._idle.setdefault(node, [])
        if len(idle) < MAX_IDLE:
            idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle = {}

    async def attempt(self, a: Attempt) -> Outcome:
        """Make an attempt. Only whether a connection was made tells that nothing was sent."""
        end = time.monotonic() + a.limit
        authorization = self.token.authorization()
        try:
            connection = await self.take(a.node, a.limit)
        except (OSError, asyncio.TimeoutError) as e:
            return unreachable(a.node, e or type(e).__name__)
        response = Response()
        try:
            reply = await limited(self._exchange(connection, a, authorization, response), end - time.monotonic())
        except FAILURES as e:
            connection.close()
            return lost(a.node, str(e) or type(e).__name__)
        except BaseException:  # the task was cancelled
            connection.close()
            raise
        if response.keep and connection.usable():
            self.give(a.node, connection)
        else:
            connection.close()
        return reply

    async def _exchange(
        self, connection: AsyncConnection, a: Attempt, authorization: Optional[str], response: Response
    ) -> HTTPReply:
        connection.writer.write(encode_request(a.node, a.method, a.path, a.body, authorization))
        # It reads while the request is being sent: a node that refuses one replies before it has all
        # of it, and reads no more.
        sent = asyncio.ensure_future(connection.writer.drain())
        try:
            data = bytearray()
            while not response.done:
                data += await connection.receive(response)
                if len(data) > MAX_REPLY:
                    raise WireError("the reply is too long")
            if not sent.done():
                connection.close()
        finally:
            await _ended(sent)
        return HTTPReply(response.status, response.headers, bytes(data))
