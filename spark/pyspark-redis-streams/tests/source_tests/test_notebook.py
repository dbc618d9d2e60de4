"""The notebook of the examples runs from beginning to end, and shows what is kept in it."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy
from matplotlib.image import imread

from source_tests.backends import Backend
from source_tests.notebook import pictures, read, run, texts


def test_the_notebook_shows_its_tables_and_draws_its_plots() -> None:
    kept, notebook = read(), read()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    with Backend(None) as backend:
        run(notebook, backend.url)
        with backend.client() as client:
            (_, fields), *_ = client.xrange("notebook-orders")  # type: ignore[misc]
            assert client.xlen("notebook-orders") == 2001
    shown = texts(notebook)
    assert shown == texts(kept)
    assert fields[b"item"].decode() in shown[2][0].splitlines()[3]
    assert "|  23|paper|" in shown[6][0]
    assert shown[6][1] == "{'notebook-orders': 0}"
    first, second = (imread(io.BytesIO(base64.b64decode(text))) for text in pictures(notebook))
    for picture in (first, second):
        assert colours(picture) >= {(0x26, 0x46, 0x53), (0x2A, 0x9D, 0x8F), (0xE9, 0xC4, 0x6A)}
    assert not numpy.array_equal(first, second)


def colours(picture: Any) -> set[tuple[int, ...]]:
    """The colours in a picture."""
    pixels = (picture[..., :3] * 255).round().astype(int).reshape(-1, 3)
    return set(map(tuple, numpy.unique(pixels, axis=0).tolist()))
