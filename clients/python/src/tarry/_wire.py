"""HTTP/1.1 as bytes, without input or output: for threads and asyncio alike."""

from __future__ import annotations

from typing import Dict, Optional
from urllib.parse import urlsplit

MAX_HEAD = 64 << 10
MAX_REPLY = 256 << 20
"""A full reserve with its bodies in the widest form."""


def encode_request(
    node: str, method: str, path: str, body: Optional[bytes], authorization: Optional[str] = None
) -> bytes:
    """The bytes of a request. The path is escaped already."""
    head = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(node).netloc}", "User-Agent: tarry-python"]
    if authorization is not None:
        head.append(f"Authorization: {authorization}")
    if body is not None:
        head.append("Content-Type: application/json")
    if body is not None or method in ("POST", "PUT", "PATCH"):
        head.append(f"Content-Length: {len(body or b'')}")
    return "\r\n".join(head).encode("ascii") + b"\r\n\r\n" + (body or b"")


class WireError(Exception):
    """The bytes are no reply of HTTP/1.1, or its end is missing."""


def _number(text: str, digits: str) -> Optional[int]:
    """A number of digits alone; int() takes signs, underscores and other scripts too."""
    if not text or len(text) > 18 or text.strip(digits):
        return None
    return int(text, 10 if digits == DECIMAL else 16)


DECIMAL = "0123456789"
HEXADECIMAL = DECIMAL + "abcdefABCDEF"


class Response:
    """A reply that comes in pieces: ``feed`` takes them and returns what they hold of the body."""

    def __init__(self) -> None:
        self.status = 0
        """0 until the head is complete."""
        self.headers: Dict[str, str] = {}
        """Names are in lower case."""
        self.done = False
        self._buffer = b""
        self._mode = "head"
        self._left = 0
        self._taken = 0

    @property
    def keep(self) -> bool:
        """Whether the connection can be used again after the reply."""
        return self.done and self._mode != "close" and "close" not in self.headers.get("connection", "").lower()

    def feed(self, data: bytes) -> bytes:
        self._buffer += data
        out = []
        while not self.done:
            piece = self._head() if self._mode == "head" else self._body()
            if piece is None:
                break
            self._taken += len(piece)
            out.append(piece)
        return b"".join(out)

    def eof(self) -> None:
        """The connection was closed; that is the end only of a reply without a length."""
        if self._mode == "close":
            self.done = True
        if not self.done:
            raise WireError("the connection was closed before the end of the reply")

    def _head(self) -> Optional[bytes]:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise WireError("the head of the reply is too long")
            return None
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        self._buffer = self._buffer[end + 4 :]
        parts = lines[0].split(" ", 2)
        status = _number(parts[1], DECIMAL) if len(parts) > 1 else None
        if not parts[0].startswith("HTTP/1.") or not status:
            raise WireError("the reply is not of HTTP/1.1")
        if status < 200:
            return b""  # an interim one: the reply follows
        self.status = status
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self._frame()
        return b""

    def _frame(self) -> None:
        length = self.headers.get("content-length", "")
        if self.status in (204, 304):
            self.done = True
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._mode = "size"
        elif length:
            number = _number(length, DECIMAL)
            if number is None:
                raise WireError("the length of the reply is no number")
            self._mode, self._left = "length", number
            self.done = self._left == 0
        else:
            self._mode = "close"

    def _body(self) -> Optional[bytes]:
        if self._mode == "size":
            return self._size()
        if self._mode == "trailer":
            line = self._line()
            self.done = line == b""
            return None if line is None else b""
        if not self._buffer:
            return None
        if self._mode == "close":
            piece, self._buffer = self._buffer, b""
            return piece
        piece, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
        self._left -= len(piece)
        if self._left == 0:
            self.done = self._mode == "length"
            self._mode = "size" if self._mode == "chunk" else self._mode
        return piece

    def _size(self) -> Optional[bytes]:
        line = self._line()
        if line is None:
            return None
        if line == b"" and self._taken:
            return b""  # the end of the chunk before
        size = _number(line.split(b";")[0].strip().decode("latin-1"), HEXADECIMAL)
        if size is None:
            raise WireError("a chunk of the reply has no size")
        self._left = size
        self._mode = "chunk" if self._left else "trailer"
        return b""

    def _line(self) -> Optional[bytes]:
        line, found, rest = self._buffer.partition(b"\r\n")
        if not found:
            if len(self._buffer) > MAX_HEAD:
                raise WireError("a line of the reply is too long")
            return None
        self._buffer = rest
        return line
