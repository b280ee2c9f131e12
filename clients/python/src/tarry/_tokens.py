"""The tokens of a cluster: what the calls send and return. The token that a client itself sends is _token.py's."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Callable, List, Optional, Sequence, Type, TypeVar

from ._calls import Page, Request, _at, _given, _of, _query, _secs, _segment
from ._replies import Rule as Rule, Token as Token, TokenPut as TokenPut, Identity as Identity
from .types import JSON, Reply, Seconds, decode, decode_all, member

T = TypeVar("T")


def _with_rules(cls: Type[T]) -> Callable[[JSON, bool], T]:
    def read(reply: JSON, earlier: bool) -> T:
        return decode(cls, {**reply, "rules": decode_all(Rule, reply, "rules")})

    return read


def _path(id: str, verb: str = "") -> str:
    return "/v1/tokens/" + _segment(id) + verb


def whoami() -> Request[Identity]:
    return Request("GET", "/v1/whoami", _with_rules(Identity), repeat=True)


def token(id: str) -> Request[Token]:
    return Request("GET", _path(id), _with_rules(Token), repeat=True)


def tokens_page(after: str, page: Optional[int]) -> Request[Page[Token]]:
    def read(reply: JSON, earlier: bool) -> Page[Token]:
        of_one = _with_rules(Token)
        return Page([of_one(t, earlier) for t in member(reply, "tokens", list)], reply.get("next") or "")

    path = _query("/v1/tokens", {"cursor": after or None, "max": page})
    return Request("GET", path, read, repeat=True)


def put_token(
    id: str,
    rules: Sequence[Rule],
    description: Optional[str],
    id_prefix: Optional[str],
    expires_at: Optional[datetime],
    if_revision: Optional[int],
) -> Request[TokenPut]:
    sent: List[Any] = [{"topics": list(r.topics), "verbs": list(r.verbs)} for r in rules]
    given = _given(description=description, id_prefix=id_prefix, expires_at=_at("expires_at", expires_at))
    return Request("PUT", _query(_path(id), {"if_revision": if_revision}), _of(TokenPut), {"rules": sent, **given})


def rotate_token(id: str, overlap: Optional[Seconds]) -> Request[TokenPut]:
    return Request("POST", _path(id, "/rotate"), _of(TokenPut), _given(overlap=_secs("overlap", overlap)))


def delete_token(id: str) -> Request[None]:
    return Request("DELETE", _path(id), lambda reply, earlier: None, repeat=True, gone=True)
