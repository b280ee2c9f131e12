"""The addresses that a client knows."""

from __future__ import annotations

import random
import threading
import time
from typing import Callable, Dict, Iterable, List, Optional, Tuple
from urllib.parse import urlsplit

AVOID_FAILED = 2.0
"""For how long a leader that did not reply is not preferred; by then another one leads."""
AVOID_UNREACHABLE = 60.0
"""For how long a learned address to which no connection can be made is forgotten, at first."""
MAX_AVOID = 3600.0
MAX_NODES = 64
MEMBERS_EVERY = 10.0


def base_url(addr: str) -> str:
    """``http://host:port`` of an address."""
    url = addr if "://" in addr else "http://" + addr
    parts = urlsplit(url.rstrip("/"))
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"address {addr!r} has the scheme {parts.scheme!r}; it takes http or https")
    if not parts.hostname or not parts.port or parts.path or parts.query or parts.username:
        raise ValueError(f"address {addr!r} is not of the form host:port")
    return f"{parts.scheme}://{parts.netloc}"


class Nodes:
    """The nodes that were given, and those learned from replies. Threads may share it."""

    def __init__(
        self,
        addresses: Iterable[str],
        clock: Callable[[], float] = time.monotonic,
        usable: Callable[[str], bool] = lambda node: True,
    ) -> None:
        self.given = [base_url(a) for a in addresses]
        self._usable = usable
        if not self.given:
            raise ValueError("no address of a node is given")
        for node in self.given:
            if not usable(node):
                raise ValueError(
                    f"address {node!r}: a token is not sent to another machine without TLS; use https://"
                    " (docs/tls.md), or token_over_http if the network can be trusted"
                )
        self._clock = clock
        self._lock = threading.Lock()
        self._learned: List[str] = []
        self._first = random.choice(self.given)
        self._avoided: Dict[str, Tuple[float, float]] = {}  # until when, and the last pause
        self._members: Optional[float] = None  # from when on they may be asked for; None: no leader was named yet
        self._complete = False

    def order(self) -> List[str]:
        """The nodes for one round of attempts."""
        with self._lock:
            known = self.given + self._learned
            i = known.index(self._first) if self._first in known else 0
            return known[i:] + known[:i]

    def replied(self, node: str, leader: Optional[str]) -> None:
        """A node has replied and named the leader, or nobody."""
        with self._lock:
            self._avoided.pop(node, None)
            self._first = node
            if not leader:
                return
            if self._members is None:
                self._members = self._clock()
            url = self._sibling(leader)
            if url and self._learn(url):
                self._first = url

    def failed(self, node: str, connected: bool) -> None:
        """A node did not reply, or fell silent: the one after it is asked first. A learned one to which no
        connection was made is forgotten."""
        with self._lock:
            known = self.given + self._learned
            if node == self._first and node in known:
                self._first = known[(known.index(node) + 1) % len(known)]
            pause = AVOID_FAILED
            if node in self._learned and not connected:
                last = self._avoided.get(node, (0.0, 0.0))[1]
                pause = min(max(AVOID_UNREACHABLE, 2 * last), MAX_AVOID)
                self._learned.remove(node)
                self._complete = False
                self._members = self._clock() + pause
            self._avoided[node] = (self._clock() + pause, pause)

    def wants_members(self) -> bool:
        """Whether the caller is to ask for the members now."""
        with self._lock:
            now = self._clock()
            if self._complete or self._members is None or now < self._members:
                return False
            self._members = now + MEMBERS_EVERY
            return True

    def meet(self, addresses: Iterable[str]) -> None:
        """Learn the members of the cluster."""
        with self._lock:
            self._complete = True
            for addr in addresses:
                url = self._sibling(addr)
                if url:
                    self._learn(url)

    def _sibling(self, addr: str) -> Optional[str]:
        try:
            url = base_url(self.given[0].split("://")[0] + "://" + addr)
        except ValueError:
            return None
        return url if self._usable(url) else None

    def _learn(self, url: str) -> bool:
        if self._clock() < self._avoided.get(url, (0.0, 0.0))[0]:
            return False
        if url in self.given or url in self._learned:
            return True
        if len(self.given) + len(self._learned) >= MAX_NODES:
            return False
        self._learned.append(url)
        return True
