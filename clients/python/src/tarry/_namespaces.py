"""The namespaces of a cluster: what the calls send and return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Optional

from ._calls import Request, _given, _of, _query, _segment
from ._replies import Quotas as Quotas, NamespaceUse as NamespaceUse, Namespace as Namespace, NamespacePut as NamespacePut
from .types import JSON, Reply, decode, member


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
