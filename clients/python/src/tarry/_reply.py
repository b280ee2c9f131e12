"""How a reply becomes the types of _replies.py."""

from __future__ import annotations

import base64
import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Dict, List, Mapping, Sequence, Type, TypeVar

JSON = Dict[str, Any]

T = TypeVar("T")


@dataclass(frozen=True)
class Reply:
    """A part of a reply. ``raw`` is all of it, also what this release of the client does not know."""

    _always: ClassVar[Sequence[str]] = ()
    """Members that are never absent."""

    raw: JSON = field(default_factory=dict, repr=False, compare=False)


class NotUnderstood(Exception):
    """A reply is not what the call returns: then nothing is known of the call."""


def member(reply: Any, name: str, kind: Type[T]) -> T:
    """A member that a reply always has."""
    value = reply.get(name) if isinstance(reply, dict) else None
    if not isinstance(value, kind):
        raise NotUnderstood(f"{name} is not of the type {kind.__name__}" if value is not None else f"{name} is missing")
    return value


def instant(text: str) -> datetime:
    """Parse an instant of the server."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def decode_body(reply: Mapping[str, Any]) -> Any:
    """The body in a reply: str, bytes that are not UTF-8, or a JSON value."""
    if "body_base64" in reply:
        try:
            return base64.b64decode(reply["body_base64"])
        except (ValueError, TypeError):
            raise NotUnderstood("body_base64 is not base64") from None
    return reply.get("body")


def decode_all(cls: Type[T], reply: Any, name: str) -> List[T]:
    """The objects of a list that a reply always has."""
    return [decode(cls, item) for item in member(reply, name, list)]


def decode(cls: Type[T], reply: Any) -> T:
    """Make a reply's object; what is absent keeps its default."""
    if not isinstance(reply, dict):
        raise NotUnderstood("it is not an object")
    values: JSON = {}
    made: Any = cls
    for name in made._always:
        if reply.get(name) is None:
            raise NotUnderstood(f"{name} is missing")
    for f in dataclasses.fields(made):
        if f.name == "raw":
            values["raw"] = reply
        elif f.name == "body":
            values["body"] = decode_body(reply)
        elif reply.get(f.name) is not None:
            values[f.name] = _value(f, reply[f.name])
    return cls(**values)


def _value(f: dataclasses.Field[Any], value: Any) -> Any:
    """The value of a field: of the type of its default, or an instant."""
    if str(f.type) == "Optional[datetime]":
        try:
            return instant(value)
        except (ValueError, TypeError, AttributeError):
            raise NotUnderstood(f"{f.name} is not an instant") from None
    default = f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
    kind: Any = (int, float) if isinstance(default, float) else type(default)
    if default is not None and not isinstance(value, kind):
        raise NotUnderstood(f"{f.name} is not of the type {type(default).__name__}")
    return value
