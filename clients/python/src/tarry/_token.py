"""The token that a client sends with its calls."""

from __future__ import annotations

import os
import threading
from ipaddress import IPv6Address, ip_address
from typing import Optional, Tuple, Union
from urllib.parse import urlsplit

from .errors import error

MAX_FILE = 4 << 10
"""Far more than a token has."""


class Token:
    """A token, perhaps of a file. Nothing that is printed of it has its text. Threads may share it."""

    def __init__(
        self, text: Optional[str], path: Union[str, "os.PathLike[str]", None], over_http: bool
    ) -> None:
        if text is not None and path is not None:
            raise ValueError("give token or token_file, not both")
        self._path = path
        self._over_http = over_http
        self._lock = threading.Lock()
        self._version: Optional[Tuple[int, int, int]] = None  # of the file that was read
        self._text = None if text is None else _checked(text.strip(), "token")
        self._read()

    def __repr__(self) -> str:
        return "<Token>"

    def __reduce__(self) -> str:
        raise TypeError("a token cannot be pickled")

    def usable(self, node: str) -> bool:
        """Whether calls may go to a base URL. Whoever reads the network has a token that is sent without TLS."""
        if self._text is None or self._over_http:
            return True
        url = urlsplit(node)
        return url.scheme == "https" or _is_loopback(url.hostname or "")

    def authorization(self) -> Optional[str]:
        """The header of the next request; None: there is no token."""
        try:
            self._read()
        except (OSError, ValueError) as e:
            raise error("invalid_argument", f"the request is not sent: {e}") from None
        return None if self._text is None else "Bearer " + self._text

    def _read(self) -> None:
        """Read the file if it has changed."""
        if self._path is None:
            return
        with self._lock:
            about = os.stat(self._path)
            version = (about.st_ino, about.st_mtime_ns, about.st_size)
            if version == self._version:
                return
            with open(self._path, "rb") as file:
                data = file.read(MAX_FILE)
            self._text = _checked(data.strip().decode("latin-1"), f"token_file: {os.fspath(self._path)}")
            self._version = version


def _checked(text: str, where: str) -> str:
    """The text, if it can be in a header. A message never repeats it."""
    if not text:
        raise ValueError(f"{where}: the token is empty")
    if any(not "!" <= c <= "~" for c in text):
        raise ValueError(f"{where}: the token is not one word of ASCII")
    return text


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
