"""What workers of threads and of asyncio have in common."""

from __future__ import annotations

import logging
import math
from typing import Optional

from .errors import TarryError
from .types import Backoff, BackoffLike, Reserved, Seconds, encode_backoff, seconds

log = logging.getLogger("tarry")

WAIT = 30.0
"""One wait for jobs, in seconds."""
NEXT_WAIT = 0.05
"""How long a finish waits for the next job, in seconds.

A worker that is nearly always busy so makes one call a job, and its next reserve is committed beside the finish and not
after it. It is short because a place that waits here is not free for who fetches jobs for all places.
"""
PAUSE = 1.0
"""After a wait that failed."""
SOON = 5.0
"""After so many seconds the log says that no node can be reached: longer than a failover."""
TOUCHES_PER_TTR = 3
"""They leave time for a touch that meets a change of leader."""
MAX_REASON = 1000
"""Bytes that the server keeps of a reason."""


def checked(backoff: Optional[BackoffLike]) -> Optional[BackoffLike]:
    """The backoff. It is wrong here or never: nobody would see an error of the worker's threads."""
    if backoff is not None:
        encode_backoff(backoff)
    return backoff


def timeout_of(timeout: Optional[Seconds]) -> float:
    """The timeout of a job, in seconds; without one it never comes."""
    limit = math.inf if timeout is None else seconds(timeout, "timeout")
    if not limit > 0:
        raise ValueError(f"timeout is {limit}; it must be above 0")
    return limit


def timed_out(timeout: float) -> TimeoutError:
    return TimeoutError(f"timed out after {timeout:g} s")


def is_lost(failure: TarryError) -> bool:
    """Whether a touch that failed tells that the reservation is gone."""
    return failure.code in ("stale_token", "not_found", "not_reserved")


def reason(failure: BaseException) -> str:
    text = str(failure) or type(failure).__name__
    if not isinstance(failure, Exception):  # such as that of sys.exit, whose text is a number
        text = f"{type(failure).__name__}: {failure}"
    return text.encode(errors="replace")[:MAX_REASON].decode(errors="ignore")


def delay_after(backoff: Optional[BackoffLike], job: Reserved) -> Optional[float]:
    """How long a failed job waits; None: as its own backoff says."""
    if backoff is None:
        return None
    if isinstance(backoff, Backoff):
        return backoff.after(job.attempts)
    if not backoff:
        return None
    return seconds(backoff[min(max(job.attempts, 1), len(backoff)) - 1])
