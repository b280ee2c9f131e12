import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

PROJECT = Path(__file__).parent.parent
BUILD = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


class BuildTest(unittest.TestCase):
    def test_what_pip_builds_has_all_modules(self) -> None:
        if importlib.util.find_spec("setuptools") is None and os.environ.get("CI") != "true":
            self.skipTest("SKIPPED: the build is NOT TESTED: there is no setuptools")
        with tempfile.TemporaryDirectory() as folder:
            copy, made = Path(folder, "copy"), Path(folder, "made")
            shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
            done = subprocess.run([sys.executable, "-c", BUILD, str(made)], cwd=copy, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            (archive,) = made.iterdir()
            with tarfile.open(archive) as tar:
                names = {name.split("/", 1)[-1] for name in tar.getnames()}
        for module in (PROJECT / "src" / "tarry").iterdir():
            if module.suffix == ".py" or module.name == "py.typed":
                self.assertIn(f"src/tarry/{module.name}", names)
