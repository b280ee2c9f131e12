"""Which attempts a call makes, and when: the same for threads and for asyncio.

``attempts`` is a generator that does no input or output. It yields an ``Attempt`` and is sent its
``Outcome``, or yields a ``Sleep``; it returns what the call returns.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Generator, Mapping, Optional, TypeVar, Union

from . import _calls
from ._calls import Request
from ._nodes import Nodes
from .errors import TarryError, error

T = TypeVar("T")

MEMBERS_TIME = 2.0
MAX_BACKOFF = 1.0


@dataclass(frozen=True)
class Attempt:
    """Send this to the node, and wait for its reply for up to ``limit`` seconds."""

    node: str
    method: str
    path: str
    body: Optional[bytes]
    limit: float


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class HTTPReply:
    """A reply of whatever kind."""

    status: int
    headers: Mapping[str, str]
    """Names are in lower case."""
    data: bytes


Outcome = Union[HTTPReply, TarryError]
Steps = Generator[Union[Attempt, Sleep], Optional[Outcome], T]


def unreachable(node: str, cause: object) -> TarryError:
    """No connection could be made, so nothing was sent."""
    failure = error("not_applied", f"{node} cannot be reached: {cause}")
    failure.unsent = True
    return failure


def lost(node: str, cause: object) -> TarryError:
    """The connection broke after something may have been sent."""
    return error("unknown", f"the connection to {node} was lost before it replied: {cause}")


def reply_error(reply: HTTPReply) -> TarryError:
    """The error in a reply of a failed call."""
    try:
        told = json.loads(reply.data)
        code = told["code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        # Something between the client and the node has replied.
        unknown = reply.status >= 500
        return error("unknown" if unknown else "bad_reply", f"the reply is not Tarry's: status {reply.status}", status=reply.status)
    try:
        retry_after = float(reply.headers.get("retry-after", "0"))
    except (ValueError, RecursionError):
        retry_after = 0.0
    return error(
        code,
        told.get("error", ""),
        status=reply.status,
        field=told.get("field"),
        unknown=told.get("outcome") == "unknown" or code == "internal",
        retry_after=retry_after,
    )


def encode(body: Any) -> bytes:
    """JSON of a request. What JSON has no form for is the caller's mistake."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as e:
        raise error("bad_json", f"the request cannot be encoded as JSON: {e}") from e


def attempts(
    request: Request[T], nodes: Nodes, timeout: float, patience: float, deadline: Optional[float]
) -> Steps[T]:
    """Make the attempts of a call. ``deadline`` is of the monotonic clock: everything ends by then."""
    body = None if request.body is None else encode(request.body)
    if request.path != _calls.MEMBERS_PATH and nodes.wants_members():
        yield from _meet(nodes, min(timeout, MEMBERS_TIME))
    call = _Call(request, nodes, timeout, time.monotonic() + patience + request.wait, deadline)
    tried = 0
    while True:
        for node in nodes.order():
            outcome = yield Attempt(node, request.method, request.path, body, call.limit(tried == 0))
            tried += 1
            reply = call.judge(node, outcome)
            if reply is not None:
                return request.read(reply, call.earlier)
            if call.over():
                if call.gone():
                    return request.read({}, True)
                raise call.failure()
        pause = call.pause()
        if pause is None:
            raise call.failure()
        yield Sleep(pause)


def _meet(nodes: Nodes, limit: float) -> Steps[None]:
    """Ask the cluster for its members. A failure costs little, and is tried again later."""
    node = nodes.order()[0]
    outcome = yield Attempt(node, "GET", _calls.MEMBERS_PATH, None, limit)
    if isinstance(outcome, HTTPReply) and outcome.status == 200:
        try:
            nodes.meet([m.http_address for m in _calls.members().read(json.loads(outcome.data), False)])
        except (ValueError, AttributeError, TypeError):
            pass


class _Call:
    """What is known of a call while it is made."""

    def __init__(
        self, request: Request[Any], nodes: Nodes, timeout: float, end: float, deadline: Optional[float]
    ) -> None:
        self.request = request
        self.nodes = nodes
        self.timeout = timeout
        self.end = end  # no new round begins after it
        self.deadline = deadline
        self.rounds = 0
        self.earlier = False  # an attempt before the last one may have been done
        self.last: Optional[TarryError] = None
        self.answered: Optional[TarryError] = None  # the last failure that a node has told of
        self.unheard = 0

    def limit(self, first: bool) -> float:
        """How long the next attempt may take."""
        limit = self.timeout + self.request.wait
        now = time.monotonic()
        if not first and self.request.wait:  # the node would wait anew
            limit = min(limit, max(self.end - now, 1.0))
        if self.deadline is not None:
            limit = min(limit, max(self.deadline - now, 0.001))
        return limit

    def judge(self, node: str, outcome: Optional[Outcome]) -> Optional[Any]:
        """Take the outcome of an attempt; a reply that is a success is returned."""
        if self.last is not None and self.last.unknown and self.request.method != "GET":
            self.earlier = True
        assert outcome is not None
        if isinstance(outcome, TarryError):
            failure = outcome
            self.nodes.failed(node, not failure.unsent)
        else:
            self.nodes.replied(node, outcome.headers.get("tarry-leader"))
            if outcome.status < 300:
                try:
                    return json.loads(outcome.data)
                except ValueError:
                    failure = error("unknown", f"the reply of {node} is not understood", status=outcome.status)
            else:
                failure = reply_error(outcome)
            self.answered = failure
        if self.request.method == "GET" and failure.code == "unknown":  # a read does nothing
            failure = error("not_applied", failure.message, status=failure.status)
        self.last = failure
        return None

    def over(self) -> bool:
        """Whether the last failure ends the call."""
        assert self.last is not None
        again = self.last.again or (self.last.unknown and self.request.repeat)
        return not again or self.late()

    def late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def gone(self) -> bool:
        """Whether a job is not there because an earlier attempt of this call ended it."""
        return bool(self.request.gone and self.earlier and self.last and self.last.code == "not_found")

    def pause(self) -> Optional[float]:
        """How long to wait before the next round; None: there is none."""
        now = time.monotonic()
        assert self.last is not None
        if now >= self.end:
            return None
        pause = max(self.last.retry_after, min(0.05 * 2.0 ** min(self.rounds, 5), MAX_BACKOFF))
        self.rounds += 1
        pause = min(pause, self.end - now)
        if self.deadline is not None:
            if now + pause >= self.deadline:
                return None
        return pause

    def failure(self) -> TarryError:
        """The error of the call. It must not promise that nothing was done when an attempt may have been."""
        last = self.last
        assert last is not None
        maybe = self.earlier
        # What a node has told says more than that another was not heard.
        if last.status == 0 and self.answered is not None and (last.again or self.request.repeat):
            maybe = maybe or (last.unknown and self.request.method != "GET")
            last = self.answered
        if maybe and last.again:
            made = error("unknown", f"an earlier attempt may have been done; the last one failed: {last.message}")
            made.__cause__ = last
            return made
        return last
