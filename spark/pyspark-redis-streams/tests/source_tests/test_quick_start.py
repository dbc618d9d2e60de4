"""The quick start of the page works when it is pasted, in an environment that is not activated."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from source_tests.backends import Backend
from tests.support.process import PYTHON_PATH

PAGE = Path(__file__).parents[2] / "docs/spark.md"
LIMIT_S = 240


def test_the_quick_start_shows_its_rows() -> None:
    part = PAGE.read_text(encoding="utf-8").split("## Quick start\n", 1)[1]
    found = re.search(r"```python\n(.*?)```", part, re.DOTALL)
    assert found is not None
    with Backend(None) as backend:
        code = found[1].replace("127.0.0.1:6379", f"127.0.0.1:{backend.port}")
        assert code != found[1]
        done = subprocess.run(
            [sys.executable, "-c", code],
            # Neither the path nor a variable of this test run names the Python.
            env={
                **{name: text for name, text in os.environ.items() if name != "PYSPARK_PYTHON"},
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "PYTHONPATH": PYTHON_PATH,
            },
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"\|(\d+-\d+)\s*\|(\w+)\s*\|(\d+)\s*\|", done.stdout)
    assert [row[1:] for row in rows] == [("ink", "1"), ("ink", "2"), ("ink", "3")]
