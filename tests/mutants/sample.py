"""Which changes of the product are tried: a sample by a seed, spread over its folders.

The changes themselves are those of cosmic-ray. Of its operators these are the ones that people's
mistakes look like: a bound that is off by one, a condition the wrong way round, a sum for a
difference, a loop that does nothing.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PACKAGES: Final = ("protocol", "storage", "server", "penstock", "spark")

OPERATORS: Final = (
    *(
        f"core/ReplaceComparisonOperator_{pair}"
        for pair in (
            "Lt_LtE",
            "LtE_Lt",
            "Gt_GtE",
            "GtE_Gt",
            "Eq_NotEq",
            "NotEq_Eq",
            "Is_IsNot",
            "IsNot_Is",
        )
    ),
    *(
        f"core/ReplaceBinaryOperator_{pair}"
        for pair in ("Add_Sub", "Sub_Add", "Mul_Add", "FloorDiv_Mul", "Mod_FloorDiv")
    ),
    "core/AddNot",
    "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceFalseWithTrue",
    "core/ReplaceBreakWithContinue",
    "core/ReplaceContinueWithBreak",
    "core/NumberReplacer",
    "core/ZeroIterationForLoop",
)


@dataclass(frozen=True)
class Mutant:
    """One change, at the ``occurrence``-th place of ``module`` where ``operator`` can be
    applied, which is on ``line``.
    """

    module: str
    operator: str
    occurrence: int
    line: int

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.module}:{self.line} {self.operator.removeprefix('core/')}"


def modules(root: Path, packages: Iterable[str] = PACKAGES) -> list[str]:
    """Return the modules below these folders (or these modules), as paths from ``root``."""
    found = []
    for package in packages:
        path = root / package
        files = [path] if path.is_file() else _product(path)
        found += [str(file.relative_to(root)) for file in files]
    return sorted(found)


def _product(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.py") if not {"tests", "examples"} & {*path.parts}]


def sample(root: Path, names: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Return ``count`` mutants of these modules, no two of them in one line, or as many as there
    are. Folders have a share by their lines, and each at least one."""
    chance = random.Random(seed)
    chosen = []
    for folder, share in _shares(root, names, count).items():
        places = _one_a_line(chance, _mutants(root, folder, names))
        chosen += chance.sample(places, min(share, len(places)))
    chance.shuffle(chosen)
    return chosen[:count]


def _shares(root: Path, names: Sequence[str], count: int) -> dict[str, int]:
    lines: dict[str, int] = {}
    for name in names:
        folder = str(Path(name).parent)
        lines[folder] = lines.get(folder, 0) + (root / name).read_text().count("\n")
    total = sum(lines.values())
    return {folder: max(1, round(count * size / total)) for folder, size in lines.items()}


def _mutants(root: Path, folder: str, names: Iterable[str]) -> Iterator[Mutant]:
    for name in names:
        if str(Path(name).parent) == folder:
            yield from mutants_of(name, (root / name).read_text())


def _one_a_line(chance: random.Random, mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return a mutant by chance for each line, so that a line with many places is not preferred."""
    lines: dict[tuple[str, int], list[Mutant]] = {}
    for mutant in mutants:
        lines.setdefault((mutant.module, mutant.line), []).append(mutant)
    return [chance.choice(each) for each in lines.values()]


def mutants_of(module: str, source: str) -> Iterator[Mutant]:
    """Yield all that can be changed in a module, except what is never executed when it runs:
    annotations, and what is imported for them."""
    from cosmic_ray.ast import ast_nodes, get_ast

    nodes = list(ast_nodes(get_ast(source)))
    idle = _idle(source)
    for name in OPERATORS:
        operator = operator_of(name)
        occurrence = 0
        for node in nodes:
            for (line, column), _ in operator.mutation_positions(node):
                if not any(begin <= (line, column) < end for begin, end in idle):
                    yield Mutant(module, name, occurrence, line)
                occurrence += 1


def mutated(mutant: Mutant, source: str) -> str:
    """Return the module's source with the change in it."""
    from cosmic_ray.mutating import mutate_code

    return str(mutate_code(source, operator_of(mutant.operator), mutant.occurrence))


def operator_of(name: str) -> Any:
    """Return the operator of cosmic-ray that has this name."""
    from cosmic_ray.plugins import get_operator

    return get_operator(name)()


Place = tuple[int, int]
"""Line and column."""


def _idle(source: str) -> list[tuple[Place, Place]]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            found.append(_extent(node.annotation))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            found.append(_extent(node.returns))
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found.append(_extent(node))
    return found


def _extent(node: Any) -> tuple[Place, Place]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
