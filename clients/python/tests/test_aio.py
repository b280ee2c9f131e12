"""aio.py is client.py with awaits."""

import importlib.util
import unittest
from pathlib import Path

ROOT = Path(__file__).parent.parent


class AioTest(unittest.TestCase):
    def test_aio_is_made_from_client(self) -> None:
        spec = importlib.util.spec_from_file_location("make_aio", ROOT / "tools" / "make_aio.py")
        assert spec is not None and spec.loader is not None
        tool = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tool)
        made = tool.make((ROOT / "src/tarry/client.py").read_text())
        self.assertEqual(
            made, (ROOT / "src/tarry/aio.py").read_text(), "client.py has changed: run tools/make_aio.py"
        )
