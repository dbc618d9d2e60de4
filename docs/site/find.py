"""Searches the finished site for what people look for: ``python -m docs.site.find INDEX``.

Fails, with what was found instead, unless each page is among the first results for its words.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from lunr import lunr

FIRST: Final = 3
"""So many results are seen without scrolling."""

WORDS: Final = {
    "authentication": "acl.html",
    "password": "acl.html",
    "FAQ": "troubleshooting.html",
    "celery": "testing-recipes.html",
    "bullmq": "testing-node.html",
    "helm": "container.html",
    "kubernetes": "container.html",
    "production": "container.html",
    "dead letter": "delivery.html",
    "retry": "delivery.html",
    "power cut": "durability.html",
    "prometheus": "metrics.html",
    "freezegun": "testing.html",
    "toxiproxy": "index.html",
    "XREADGROUP": "commands/streams.html",
    "exactly once": "spark.html",
    "iceberg": "tables.html",
    "standby": "replication.html",
}
"""What people type, and the page that answers it."""


def found(index: Any, words: str) -> list[str]:
    """The pages of the first results."""
    pages = [str(result["ref"]).partition("#")[0] for result in index.search(words)]
    return list(dict.fromkeys(pages))[:FIRST]


def index_of(path: Path) -> Any:
    """The index of a site, in which a word of a title counts more than one of a text, as there."""
    documents = json.loads(path.read_text())["docs"]
    fields = ({"field_name": "title", "boost": 10}, "text")
    return lunr(ref="location", fields=fields, documents=documents)


def main(path: str) -> int:
    """Tells which words do not lead to their page; returns the exit status."""
    index = index_of(Path(path))
    results = {words: found(index, words) for words in WORDS}
    wrong = [words for words, page in WORDS.items() if page not in results[words]]
    for words in wrong:
        print(
            f"{words!r} does not find {WORDS[words]}, but {', '.join(results[words]) or 'nothing'}"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
