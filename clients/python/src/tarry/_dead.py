"""Dead jobs by their reasons: what the calls send and return."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import List, Optional

from ._calls import SWEEP_TIME, Request, _given, _how_many, _query, _swept, _topic_path
from ._replies import DeadReason as DeadReason, DeadReasons as DeadReasons, DeadTopic as DeadTopic, DeadTopics as DeadTopics
from .types import JSON, Reply, Swept, decode, decode_all


def dead(topic: Optional[str], max: Optional[int]) -> Request[DeadReasons]:
    def read(reply: JSON, earlier: bool) -> DeadReasons:
        return decode(DeadReasons, {**reply, "groups": decode_all(DeadReason, reply, "groups")})

    path = _topic_path(topic, "dead") if topic else "/v1/dead"
    return Request("GET", _query(path, {"max": max}), read, repeat=True)


def dead_topics(reason: str, max: Optional[int]) -> Request[DeadTopics]:
    def read(reply: JSON, earlier: bool) -> DeadTopics:
        return decode(DeadTopics, {**reply, "groups": decode_all(DeadTopic, reply, "groups")})

    path = _query("/v1/dead/topics", {"exact_reason": reason, "max": max})
    return Request("GET", path, read, repeat=True)


def kick_dead(reason: str, max: Optional[int], rate: Optional[float], to_topic: Optional[str]) -> Request[Swept]:
    sent = {"exact_reason": reason, **_how_many(max), **_given(rate=rate, to_topic=to_topic)}
    return Request("POST", "/v1/dead/kick", _swept("kicked"), sent, work=SWEEP_TIME)


def purge_dead(reason: str, max: Optional[int]) -> Request[Swept]:
    sent = {"exact_reason": reason, **_how_many(max)}
    return Request("POST", "/v1/dead/purge", _swept("deleted"), sent, work=SWEEP_TIME)
