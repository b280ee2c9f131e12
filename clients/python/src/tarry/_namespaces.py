"""The namespaces of a cluster: what the calls send and return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Optional

from ._calls import Request, _given, _of, _query, _segment
from .types import JSON, Reply, decode, member


@dataclass(frozen=True)
class Quotas(Reply):
    """What a namespace may hold; ``None`` is without a bound."""

    jobs: Optional[int] = None
    """In all states."""
    bytes: Optional[int] = None
    """Of the bodies of these jobs."""
    topics: Optional[int] = None
    rate: Optional[float] = None
    """Jobs added a second, through each node."""


@dataclass(frozen=True)
class NamespaceUse(Reply):
    """What a namespace holds."""

    _always = ("jobs", "bytes", "topics")
    jobs: int = 0
    bytes: int = 0
    topics: int = 0


@dataclass(frozen=True)
class Namespace(Reply):
    """A tenant: the topics whose names begin with a prefix, and what they may hold (docs/namespaces.md)."""

    _always = ("name", "revision", "topic_prefix")
    name: str = ""
    revision: int = 0
    topic_prefix: str = ""
    id_prefix: str = ""
    """Of the ids that producers give to jobs; empty is any."""
    description: str = ""
    quotas: Quotas = field(default_factory=Quotas)
    use: NamespaceUse = field(default_factory=NamespaceUse)


@dataclass(frozen=True)
class NamespacePut(Reply):
    """What became of a namespace; ``existing``: it was the same before."""

    _always = ("name", "revision")
    name: str = ""
    revision: int = 0
    existing: bool = False


def _read(reply: JSON, earlier: bool = False) -> Namespace:
    quotas, use = decode(Quotas, member(reply, "quotas", dict)), decode(NamespaceUse, member(reply, "use", dict))
    return decode(Namespace, {**reply, "quotas": quotas, "use": use})


def _path(name: str) -> str:
    return "/v1/namespaces/" + _segment(name)


def namespace(name: str) -> Request[Namespace]:
    return Request("GET", _path(name), _read, repeat=True)


def namespaces() -> Request[List[Namespace]]:
    def read(reply: JSON, earlier: bool) -> List[Namespace]:
        return [_read(n) for n in member(reply, "namespaces", list)]

    return Request("GET", "/v1/namespaces", read, repeat=True)


def put_namespace(
    name: str,
    topic_prefix: str,
    id_prefix: Optional[str],
    description: Optional[str],
    quotas: Optional[Quotas],
    if_revision: Optional[int],
) -> Request[NamespacePut]:
    q = quotas or Quotas()
    bounds = _given(jobs=q.jobs, bytes=q.bytes, topics=q.topics, rate=q.rate)
    sent = {"topic_prefix": topic_prefix, "quotas": bounds, **_given(id_prefix=id_prefix, description=description)}
    # One that was put already is no other, whatever its revision.
    return Request("PUT", _query(_path(name), {"if_revision": if_revision}), _of(NamespacePut), sent, repeat=True)


def delete_namespace(name: str) -> Request[None]:
    return Request("DELETE", _path(name), lambda reply, earlier: None, repeat=True, gone=True)
