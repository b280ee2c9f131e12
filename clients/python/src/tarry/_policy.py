"""Which attempts a call makes, and when: the same for threads and for asyncio.

``attempts`` is a generator that does no input or output. It yields an ``Attempt`` and is sent its
``Outcome``, or yields a ``Sleep``; it returns what the call returns.
"""

from __future__ import annotations

import json
import ssl
import time
from dataclasses import dataclass
from typing import Any, Generator, Generic, Mapping, Optional, TypeVar, Union, cast

from . import _calls
from ._calls import Request
from ._nodes import Nodes
from .errors import TarryError, error
from .types import NotUnderstood, member

T = TypeVar("T")

MEMBERS_TIME = 2.0
MAX_BACKOFF = 1.0
MAX_MARGIN = 0.5
BY_DEADLINE = "the deadline ended the call"


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
    failure.refuses_node = isinstance(cause, ssl.SSLCertVerificationError)
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


def wait_end(wait: float, deadline: Optional[float]) -> float:
    """When a wait that begins now ends: early enough for its reply to come before the deadline."""
    now = time.monotonic()
    if deadline is not None:
        left = deadline - now
        wait = min(wait, left - min(left / 4, MAX_MARGIN))
    return now + wait


def attempts(
    request: Request[T], nodes: Nodes, timeout: float, patience: float, deadline: Optional[float]
) -> Steps[T]:
    """Make the attempts of a call. ``deadline`` is of the monotonic clock: everything ends by then."""
    call = _Call(request, nodes, timeout, patience, deadline)
    body = call.body()
    if call.late():
        raise error("not_applied", f"{BY_DEADLINE} before it was sent")
    if request.path != _calls.MEMBERS_PATH and not request.here and nodes.wants_members():
        yield from _meet(nodes, call.limit(min(timeout, MEMBERS_TIME)))
    while True:
        for node in nodes.given if request.here else nodes.order():
            if request.wait:
                body = call.body()
            outcome = yield Attempt(node, request.method, request.path, body, call.limit(timeout + call.wait() + request.work))
            if call.judge(node, outcome):
                return call.result
            if call.over():
                if call.gone():
                    return cast(T, None)
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
            nodes.meet([m.http_address for m in _read(_calls.members(), outcome.data, False)])
        except NotUnderstood:
            pass


def _read(request: Request[T], data: bytes, earlier: bool) -> T:
    """What a successful reply tells. A batch of which an item failed is one too."""
    try:
        reply = json.loads(data)
    except (ValueError, RecursionError):
        raise NotUnderstood("it is not JSON") from None
    if not member(reply, "success", bool) and "results" not in reply and "finished" not in reply:
        raise NotUnderstood("success is false")
    return request.read(reply, earlier)


class _Call(Generic[T]):
    """What is known of a call while it is made."""

    def __init__(
        self, request: Request[T], nodes: Nodes, timeout: float, patience: float, deadline: Optional[float]
    ) -> None:
        self.request = request
        self.nodes = nodes
        self.timeout = timeout
        self.wait_end = time.monotonic() + request.wait
        self.end = self.wait_end + patience  # no new round begins after it
        self.deadline = deadline
        self.rounds = 0
        self.earlier = False  # an attempt before the last one may have been done
        self.last: Optional[TarryError] = None
        self.answered: Optional[TarryError] = None  # the last failure that a node has told of
        self.refuses_all = True  # all failures of this round are of certificates
        self.cut_off = False  # it is the deadline that ends the call
        self.result: T  # once an attempt has succeeded

    def wait(self) -> float:
        """What is left of the wait that the caller asked for."""
        return max(self.wait_end - time.monotonic(), 0.0)

    def body(self) -> Optional[bytes]:
        """The body of the next attempt."""
        sent = self.request.body
        if sent is not None and self.request.wait:
            sent = {**sent, "wait": round(self.wait(), 3)}
        return None if sent is None else encode(sent)

    def limit(self, limit: float) -> float:
        """How long something that should end by ``limit`` may take."""
        if self.deadline is not None:
            limit = min(limit, max(self.deadline - time.monotonic(), 0.001))
        return limit

    def judge(self, node: str, outcome: Optional[Outcome]) -> bool:
        """Take the outcome of an attempt, and report whether it is a success."""
        if self.last is not None and self.last.unknown and self.request.changes:
            self.earlier = True
        assert outcome is not None
        if isinstance(outcome, TarryError):
            failure = outcome
            if self.late():
                failure = error(failure.code, f"{BY_DEADLINE} before {node} replied")
                failure.__cause__ = outcome
            else:
                self.nodes.failed(node, not failure.unsent)
        else:
            self.nodes.replied(node, outcome.headers.get("tarry-leader"))
            if outcome.status < 300:
                try:
                    self.result = _read(self.request, outcome.data, self.earlier)
                    return True
                except NotUnderstood as e:
                    what = f"no node of Tarry sent it or one of another release: {e}"
                    failure = error("unknown", f"the reply of {node} is not understood, {what}", status=outcome.status)
            else:
                failure = reply_error(outcome)
            self.answered = failure
        if not self.request.changes and failure.code == "unknown":  # a read does nothing
            failure = error("not_applied", failure.message, status=failure.status)
        self.last = failure
        self.refuses_all = self.refuses_all and failure.refuses_node
        return False

    def over(self) -> bool:
        """Whether the last failure ends the call."""
        assert self.last is not None
        again = self.last.again or (self.last.unknown and self.request.repeat)
        self.cut_off = again and self.late()
        return not again or self.cut_off

    def late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def gone(self) -> bool:
        """Whether a job is not there because an earlier attempt of this call ended it."""
        return bool(self.request.gone and self.earlier and self.last and self.last.code == "not_found")

    def pause(self) -> Optional[float]:
        """How long to wait before the next round; None: there is none."""
        now = time.monotonic()
        assert self.last is not None
        if self.rounds == 0:
            self.end = min(self.end, now + self.request.soon)
        if self.refuses_all or now >= self.end:
            return None
        self.refuses_all = True
        pause = max(self.last.retry_after, min(0.05 * 2.0 ** min(self.rounds, 5), MAX_BACKOFF))
        self.rounds += 1
        pause = min(pause, self.end - now)
        if self.deadline is not None:
            if now + pause >= self.deadline:
                self.cut_off = True
                return None
        return pause

    def failure(self) -> TarryError:
        """The error of the call. It must not promise that nothing was done when an attempt may have been."""
        last = self.last
        assert last is not None
        maybe = self.earlier
        # What a node has told says more than that another was not heard.
        if last.status == 0 and self.answered is not None and (last.again or self.request.repeat):
            maybe = maybe or (last.unknown and self.request.changes)
            last = self.answered
        if maybe and last.again:
            last = _again(last, "unknown", f"an earlier attempt may have been done; the last one failed: {last.message}")
        if self.cut_off and not last.message.startswith(BY_DEADLINE):
            last = _again(last, last.code, f"{BY_DEADLINE}: {last.message}")
        return last


def _again(failure: TarryError, code: str, message: str) -> TarryError:
    """The same failure, with more said of it."""
    made = error(
        code, message, status=failure.status, field=failure.field, unknown=failure.unknown, retry_after=failure.retry_after
    )
    made.__cause__ = failure
    return made
