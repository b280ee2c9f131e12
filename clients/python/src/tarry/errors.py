"""Errors of calls. Each tells whether the operation happened."""

from __future__ import annotations

from typing import Dict, Optional, Type


class TarryError(Exception):
    """A call that failed.

    ``code`` tells failures apart; docs/http-api.md lists the codes. ``unknown`` is set when
    the operation may have been done; otherwise nothing was done. ``status`` is the HTTP
    status, 0 when no node replied. ``field`` is the invalid field of the request.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 0,
        field: Optional[str] = None,
        unknown: bool = False,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.field = field
        self.unknown = unknown
        self.retry_after = retry_after
        self.unsent = False
        """No connection to the node could be made."""
        self.refuses_node = False
        """The node's certificate is not accepted, which another attempt does not change."""

    @property
    def outcome(self) -> str:
        """``unknown`` when the operation may have been done, else ``not_applied``."""
        return "unknown" if self.unknown else "not_applied"

    @property
    def again(self) -> bool:
        """Certainly nothing was done, and another attempt may have more luck."""
        return self.code in ("not_applied", "overloaded", "rate_limited", "disk_low")


class NotFound(TarryError):
    """There is no such job, schedule or topic."""


class Refused(TarryError):
    """The request is invalid: a field is missing, malformed or out of range."""


class Unauthorized(TarryError):
    """The call has no token that is known: it needs one."""


class Forbidden(TarryError):
    """No rule of the token allows the call."""


class IdConflict(TarryError):
    """The id is taken by a job with different content."""


class StaleToken(TarryError):
    """The reservation has ended: another consumer has the job, or will."""


class ConditionFailed(TarryError):
    """The job is not as ``if_revision`` or ``if_state`` asks for."""


class TopicFull(TarryError):
    """The topic has reached its ``max_pending``."""


class NotApplied(TarryError):
    """No node could do it: nothing was done."""


class UnknownOutcome(TarryError):
    """The operation may or may not have been done."""


_classes: Dict[str, Type[TarryError]] = {
    "not_found": NotFound,
    "invalid_argument": Refused,
    "bad_json": Refused,
    "unauthorized": Unauthorized,
    "forbidden": Forbidden,
    "id_conflict": IdConflict,
    "stale_token": StaleToken,
    "condition_failed": ConditionFailed,
    "topic_full": TopicFull,
    "not_applied": NotApplied,
    "overloaded": NotApplied,
    "rate_limited": NotApplied,
    "disk_low": NotApplied,
    "unknown": UnknownOutcome,
}


def error(
    code: str,
    message: str,
    *,
    status: int = 0,
    field: Optional[str] = None,
    unknown: bool = False,
    retry_after: float = 0.0,
) -> TarryError:
    """Make the error of a code."""
    return _classes.get(code, TarryError)(
        code, message, status=status, field=field, unknown=unknown or code == "unknown", retry_after=retry_after
    )


class Permanent(Exception):
    """Raised by a worker's function: another attempt would fail too, so bury the job."""
