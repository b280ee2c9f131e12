"""Makes src/tarry/aio.py, the client for asyncio, from src/tarry/client.py: the same calls with ``await``.

Run it after a change of client.py; a test fails when the result is stale.
"""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "tarry"

REPLACEMENTS = [
    (r'^""".*?"""', '"""The client for asyncio, made from client.py by tools/make_aio.py: do not edit."""'),
    (r"from \._http import Cancel, Pool\n", "from ._aiohttp import AsyncPool\n"),
    (r"from \._stream import Stream, open_stream\n", "from ._aiostream import AsyncStream, open_stream\n"),
    (r"import ssl\n", "import asyncio\nimport ssl\n"),
    (r", cancel: Optional\[Cancel\] = None", ""),
    (r"\n        cancel: Optional\[Cancel\],", ""),
    (r", cancel\)", ")"),
    (r", consumer, None\)", ", consumer)"),
    (r"\bPool\(", "AsyncPool("),
    (r"-> Stream:", "-> AsyncStream:"),
    (r"\bClient\b", "AsyncClient"),
    (r"Threads may share a client\.", "Tasks of one event loop may share a client."),
    (r"def __enter__", "async def __aenter__"),
    (r"def __exit__", "async def __aexit__"),
    (r"\bIterator\b", "AsyncIterator"),
    (r"    def (?!__init__|within|stream|close)([a-z_]+\()", r"    async def \1"),
    (r"self\._pool\.run\(", "await self._pool.run("),
    (r"(return|=) self\.(_call|_batch|_reserve|topics_page)\(", r"\1 await self.\2("),
    (r"time\.sleep\(", "await asyncio.sleep("),
    (r"async async", "async"),
]


def make(text: str) -> str:
    for pattern, new in REPLACEMENTS:
        text, count = re.subn(pattern, new, text, flags=re.MULTILINE | re.DOTALL if pattern.startswith("^") else 0)
        if not count and not pattern.startswith("async"):
            raise ValueError(f"{pattern} is not in client.py")
    return text


if __name__ == "__main__":
    (SOURCE / "aio.py").write_text(make((SOURCE / "client.py").read_text()))
