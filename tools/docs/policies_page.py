"""Writes the tables of docs/delivery-policies.md from the table of policies: ``python -m
tools.docs.policies_page``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from server.config.policies import GROUP, STREAM, Table

PAGE: Final = Path(__file__).parents[2] / "docs" / "delivery-policies.md"

HEAD: Final = "| policy | value | meaning |\n|---|---|---|\n"


def table(policies: Table) -> str:
    """A row for each policy, in its order."""
    return HEAD + "".join(
        f"| `{name.decode()}` | {policy.values} | {policy.help} |\n"
        for name, policy in policies.items()
    )


def page() -> str:
    """The page as it is, with these tables of policies of groups and of streams."""
    before, of_groups, of_streams = PAGE.read_text().split(HEAD)
    between, after = (text.partition("\n\n")[2] for text in (of_groups, of_streams))
    return f"{before}{table(GROUP)}\n{between}{table(STREAM)}\n{after}"


if __name__ == "__main__":
    PAGE.write_text(page())
