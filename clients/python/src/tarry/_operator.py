"""The calls of operators: what each sends, and how its reply is read."""

from __future__ import annotations

from typing import Optional, Sequence

from ._calls import MEMBERS_PATH, Request, _given, _segment
from .types import JSON, Clocks, NodeClock, NodeDigest, Verification, decode, decode_all, member

OPERATOR_TIME = 120.0
"""How long a call may take that changes the cluster or compares its nodes."""


def clocks() -> Request[Clocks]:
    def read(reply: JSON, earlier: bool) -> Clocks:
        return decode(Clocks, {**reply, "clocks": decode_all(NodeClock, reply, "clocks")})

    return Request("GET", "/v1/cluster/clock", read, repeat=True)


def verify() -> Request[Verification]:
    def read(reply: JSON, earlier: bool) -> Verification:
        return decode(Verification, {**reply, "digests": decode_all(NodeDigest, reply, "digests")})

    return Request("POST", "/v1/cluster/verify", read, repeat=True, reads=True, work=OPERATOR_TIME)


def transfer_leadership(id: Optional[str]) -> Request[bool]:
    def read(reply: JSON, earlier: bool) -> bool:
        return member(reply, "moved", bool)

    return Request("POST", "/v1/cluster/transfer-leadership", read, _given(id=id), work=OPERATOR_TIME)


def _operate(method: str, path: str, sent: Optional[JSON] = None, here: bool = False) -> Request[None]:
    """A call whose reply says only that it succeeded."""
    return Request(method, path, lambda reply, earlier: None, sent, work=OPERATOR_TIME, here=here)


def remove_member(id: str) -> Request[None]:
    return _operate("DELETE", MEMBERS_PATH + "/" + _segment(id))


def join(addresses: Sequence[str]) -> Request[None]:
    return _operate("POST", "/v1/cluster/join", {"addresses": list(addresses)}, here=True)


def leave() -> Request[None]:
    return _operate("POST", "/v1/cluster/leave", here=True)


def reset_clock() -> Request[None]:
    return _operate("POST", "/v1/cluster/clock/reset")
