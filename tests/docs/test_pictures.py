"""The pictures of the documentation are those that their source draws, and name what there is."""

from __future__ import annotations

import re

from tests.docs.pictures import BOXES, ROOT, architecture, drawings


def test_the_files_are_what_the_source_draws() -> None:
    for path, text in drawings().items():
        assert path.read_text() == text, "run: make pictures"


def test_the_picture_of_the_architecture_names_what_there_is() -> None:
    texts = [text for box in BOXES for text in (box.title, *box.lines)]
    paths = [path for text in texts for path in re.findall(r"[\w/]+(?:/|\.py)(?=\W|$)", text)]
    assert len(paths) > 12
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_package_is_in_the_picture_of_the_architecture() -> None:
    packages = {path.parent.relative_to(ROOT) for path in ROOT.glob("server/*/__init__.py")}
    inner = {"server/util"}
    drawn = architecture()
    missing = {str(path) for path in packages if f"{path}/" not in drawn}
    assert missing == inner
