"""Runs the notebook of the examples; ``python -m source_tests.notebook`` keeps what its cells show.

That needs nothing but the environment of `make test-spark`: the server is its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final
from unittest import mock

import nbformat
from nbclient import NotebookClient

from source_tests.backends import Backend
from tests.support.process import PYTHON_PATH

NOTEBOOK: Final = Path(__file__).parents[2] / "examples" / "notebook" / "orders.ipynb"
CELL_S: Final = 240


def read(file: Path = NOTEBOOK) -> Any:
    """A notebook."""
    return nbformat.read(file, as_version=4)


def run(notebook: Any, url: str) -> None:
    """Executes all cells, which get their outputs; what Java says on standard error is left out.

    Raises CellExecutionError with the traceback of a cell that fails.
    """
    environment = {"REDIS_URL": url, "PYTHONPATH": PYTHON_PATH}
    with mock.patch.dict(os.environ, environment):
        client = NotebookClient(notebook, timeout=CELL_S, record_timing=False)
        client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]


def texts(notebook: Any) -> list[list[str]]:
    """What each cell shows as text."""
    return [
        [out.text if out.output_type == "stream" else _plain(out) for out in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _plain(output: Any) -> str:
    return str(output.get("data", {}).get("text/plain", output))


def pictures(notebook: Any) -> list[str]:
    """The pictures of all cells, as base64 of PNG."""
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    return [out.data["image/png"] for out in outputs if "image/png" in out.get("data", {})]


def main() -> None:
    """Runs the notebook and writes it with its outputs."""
    notebook = read()
    with Backend(None) as backend:
        run(notebook, backend.url)
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
