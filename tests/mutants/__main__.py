"""Tries mutants of the product, and lists those that no fast test notices.

The sources of this checkout are copied below build/mutants, as often as there are processors, each
with an environment of its own. In the first copy the tests of `make test` run once, to know which
of them execute a line. Then each mutant is tried by the tests that do. Survivors are printed as
they come, and written to build/mutants/survivors.diff.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.mutants.reached import CONFIGURATION, VARIABLE, Reached
from tests.mutants.sample import PACKAGES, Mutant, modules, mutated, sample
from tests.mutants.trial import Outcome, try_mutant

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "mutants"
FAST: Final = "not slow and not reference and not spark"
"""What `make test` runs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return 0: whether a survivor is a defect of the tests is for people to
    say, as many behave like the original."""
    options = _parser().parse_args(arguments)
    trees = [_copy(number) for number in range(options.lanes)]
    mutants = sample(ROOT, modules(ROOT, options.only), options.mutants, options.seed)
    reached = _measure(trees[0], options.tests)
    outcomes = _try_all(mutants, reached, trees)
    survivors = [mutant for mutant in mutants if outcomes[mutant] != "noticed"]
    _write(survivors, outcomes)
    counts = Counter(outcomes.values())
    print(f"{counts['noticed']} of {len(mutants)} mutants were noticed (seed {options.seed})")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--mutants", type=int, default=300, help="how many (300)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument(
        "--only", nargs="+", default=PACKAGES, metavar="PATH", help="folders or modules to change"
    )
    parser.add_argument(
        "--tests", nargs="+", default=["tests"], metavar="PATH", help="the tests to try them by"
    )
    parser.add_argument(
        "--lanes", type=int, default=os.cpu_count() or 1, help="how many at a time (processors)"
    )
    return parser


def _copy(number: int) -> Path:
    """Return a copy of the sources as they are, with an environment in which they are installed."""
    tree = FOLDER / str(number)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    if tree.exists():
        for path in tree.iterdir():
            if path.name != ".venv":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    subprocess.run(["make", "--silent", ".venv/installed-dev"], cwd=tree, check=True)
    return tree


def _measure(tree: Path, tests: Sequence[str]) -> Reached:
    """Return which tests execute a line. One that fails already would notice every mutant."""
    (tree / "mutants.rc").write_text(CONFIGURATION)
    coverage = [".venv/bin/coverage"]
    configured = ["--rcfile", str(tree / "mutants.rc")]
    pytest = [
        "-m",
        "pytest",
        "-p",
        "tests.mutants.reached",
        "-q",
        "-m",
        FAST,
        "-n",
        str(os.cpu_count()),
    ]
    environment = {**os.environ, VARIABLE: ""}
    run = subprocess.run(
        [*coverage, "run", *configured, *pytest, *tests], cwd=tree, env=environment, check=False
    )
    if run.returncode:
        sys.exit("the tests have to pass before anything is changed")
    subprocess.run(
        [*coverage, "combine", "--quiet", *configured], cwd=tree, env=environment, check=True
    )
    return Reached(tree / ".coverage", tree)


def _try_all(
    mutants: Sequence[Mutant], reached: Reached, trees: Sequence[Path]
) -> dict[Mutant, Outcome]:
    """Return how each ended; one at a time in each copy."""
    tests = {mutant: reached.tests(mutant.module, mutant.line) for mutant in mutants}
    free: SimpleQueue[Path] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def attempt(mutant: Mutant) -> Outcome:
        tree = free.get()
        try:
            outcome = try_mutant(mutant, tests[mutant], tree)
        finally:
            free.put(tree)
        print(f"{outcome:>9}  {mutant.name}", flush=True)
        return outcome

    with ThreadPoolExecutor(len(trees)) as pool:
        return dict(zip(mutants, pool.map(attempt, mutants), strict=True))


def _write(survivors: Sequence[Mutant], outcomes: dict[Mutant, Outcome]) -> None:
    lines = []
    for mutant in sorted(survivors, key=lambda each: (each.module, each.line)):
        before = (ROOT / mutant.module).read_text()
        after = mutated(mutant, before)
        lines.append(f"# {outcomes[mutant]}: {mutant.name}\n")
        names = f"a/{mutant.module}", f"b/{mutant.module}"
        lines += difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), *names
        )
    path = FOLDER / "survivors.diff"
    path.write_text("".join(lines))
    print(f"the others are in {path.relative_to(ROOT)}" if survivors else "none survived")


if __name__ == "__main__":
    sys.exit(main())
