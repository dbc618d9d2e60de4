"""Finds what compiled code believes of attributes that a call may have changed.

mypy narrows the type of an attribute that was assigned or asked about, and keeps that over calls
of anything. mypyc converts what is read to the narrowed type. So, after ``self._timer = None`` and
a call that sets the timer, ``if self._timer is None`` raises a TypeError once it is compiled, while
the source does what it says.

Nothing may be read of which mypy believes that it is ``None``, and nothing asked to which mypy
believes to know the answer. Where no call comes in between, such a question is needless anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from mypy.build import build
from mypy.main import process_options
from mypy.meet import is_overlapping_types
from mypy.nodes import (
    GDEF,
    AssertStmt,
    AssignmentStmt,
    CallExpr,
    ComparisonExpr,
    ConditionalExpr,
    Decorator,
    Expression,
    IfStmt,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    NonlocalDecl,
    OpExpr,
    UnaryExpr,
    Var,
    WhileStmt,
)
from mypy.subtypes import is_proper_subtype
from mypy.types import (
    CallableType,
    FunctionLike,
    Instance,
    NoneType,
    ProperType,
    TupleType,
    Type,
    UnionType,
    get_proper_type,
    get_proper_types,
)

OPTIONS: Final = ("--config-file=", "--ignore-missing-imports", "--cache-dir=/dev/null")
"""As modules are compiled."""

CHILDREN: Final = (
    *("defs", "body", "else_body", "finally_body", "handlers", "bodies", "items", "func"),
    *("lvalues", "rvalue", "lvalue", "index", "subject", "guards", "target", "arguments"),
    *("initializer", "expr", "callee", "args", "base", "left", "right", "operands", "value", "key"),
    *("cond", "if_expr", "else_expr", "begin_index", "end_index", "stride", "generator", "types"),
    *("left_expr", "sequences", "condlists", "indices", "from_expr", "msg"),
)
"""The attributes of nodes that hold the nodes in them, and no references to others."""

Types = Mapping[Expression, Type]


def beliefs(paths: Sequence[str]) -> list[str]:
    """What compiled code would believe in these modules, as ``path:line: what is read``."""
    sources, options = process_options([*OPTIONS, *paths])
    options.export_types = options.preserve_asts = True
    built = build(sources, options)
    assert not built.errors, built.errors
    found = list[str]()
    for source in sources:
        tree = built.files[source.module]
        finder = _Finder(built.types)
        finder.walk(tree)
        found += (f"{tree.path}:{line}: {what}" for line, what in sorted(set(finder.found)))
    return found


class _Finder:
    def __init__(self, types: Types) -> None:
        self._types = types
        self._shared = set[str]()
        self._assigned = set[int]()
        self.found: list[tuple[int, str]] = []

    def walk(self, tree: MypyFile) -> None:
        """Looks at every node; first at what says that variables are those of another function."""
        nodes = list(_nodes(tree))
        for node in sorted(nodes, key=lambda node: not isinstance(node, NonlocalDecl)):
            self.look(node)

    def look(self, node: Node) -> None:
        """Looks at a node; what it assigns to comes later."""
        if isinstance(node, NonlocalDecl):
            self._shared.update(node.names)
        elif isinstance(node, AssignmentStmt):
            self._assigned.update(map(id, node.lvalues))
        elif isinstance(node, MemberExpr | NameExpr) and id(node) not in self._assigned:
            self._check_reading(node)
        for operand, known in self._questions(node):
            if known and self._narrowed(operand):
                self._note(operand)

    def _note(self, read: Expression) -> None:
        self.found.append((read.line, _shown(read)))

    def _check_reading(self, read: Expression) -> None:
        if isinstance(self._type(read), NoneType) and self._narrowed(read):
            self._note(read)

    # --- types ----------------------------------------------------------------------------

    def _type(self, read: Expression) -> ProperType | None:
        return get_proper_type(self._types.get(read))

    def _narrowed(self, read: Expression) -> bool:
        """Whether it may have any type of a union, and mypy believes that some are ruled out."""
        declared = self._declared(read)
        narrowed = self._type(read)
        if narrowed is None or not isinstance(declared, UnionType):
            return False
        return is_proper_subtype(narrowed, declared) and not is_proper_subtype(declared, narrowed)

    def _declared(self, read: Expression) -> ProperType | None:
        """The type of an attribute or of a variable that others may set; else ``None``."""
        if isinstance(read, NameExpr):
            shared = read.kind == GDEF or read.name in self._shared
            node = read.node if shared else None
        elif isinstance(read, MemberExpr):
            owner = self._type(read.expr)
            member = owner.type.get(read.name) if isinstance(owner, Instance) else None
            node = read.node if member is None else member.node
        else:
            return None
        if isinstance(node, Var) and not node.is_final:
            return get_proper_type(node.type)
        if isinstance(node, Decorator) and isinstance(node.type, CallableType):
            return get_proper_type(node.type.ret_type)
        return None

    # --- questions ------------------------------------------------------------------------

    def _questions(self, node: Node) -> Iterator[tuple[Expression, bool]]:
        """What a node asks about, and whether mypy believes to know the answer."""
        if isinstance(node, ComparisonExpr):
            left, right = node.operands[:2]
            if node.operators[0] in ("is", "is not") and _is_none(right):
                yield left, self._none_is_known(left)
        elif isinstance(node, CallExpr) and _shown(node.callee) == "isinstance":
            yield node.args[0], self._class_is_known(*node.args)
        else:
            for operand in _conditions(node):
                yield operand, self._truth_is_known(operand)

    def _none_is_known(self, read: Expression) -> bool:
        items = _items(self._type(read))
        return len({isinstance(item, NoneType) for item in items}) == 1

    def _truth_is_known(self, read: Expression) -> bool:
        found = self._type(read)
        return found is not None and not (found.can_be_true and found.can_be_false)

    def _class_is_known(self, read: Expression, kind: Expression) -> bool:
        found, asked = self._type(read), self._type(kind)
        kinds = get_proper_types(asked.items if isinstance(asked, TupleType) else [asked])  # type: ignore[list-item]
        made = [kind.items[0].ret_type for kind in kinds if isinstance(kind, FunctionLike)]
        if found is None or len(made) < len(kinds):
            return False
        one = UnionType.make_union(made)
        return is_proper_subtype(found, one) or not is_overlapping_types(found, one)


def _nodes(root: Any) -> Iterator[Node]:
    """A node and all that are in it. (No interpreted class may derive mypy's visitors.)"""
    if isinstance(root, list | tuple):
        for each in root:
            yield from _nodes(each)
    elif isinstance(root, Node):
        yield root
        for name in _children(type(root)):  # type: ignore[arg-type]
            yield from _nodes(getattr(root, name, None))


@cache
def _children(kind: type[Node]) -> list[str]:
    """Those of :data:`CHILDREN` that nodes of a kind may have."""
    return [name for name in CHILDREN if hasattr(kind, name)]


def _conditions(node: Node) -> list[Expression]:
    """The expressions whose truth a node asks for."""
    if isinstance(node, IfStmt):
        return node.expr
    if isinstance(node, WhileStmt | AssertStmt):
        return [node.expr]
    if isinstance(node, ConditionalExpr):
        return [node.cond]
    if isinstance(node, UnaryExpr):
        return [node.expr] if node.op == "not" else []
    return [node.left] if isinstance(node, OpExpr) and node.op in ("and", "or") else []


def _items(found: ProperType | None) -> list[ProperType]:
    if isinstance(found, UnionType):
        return [get_proper_type(item) for item in found.items]
    return [] if found is None else [found]


def _is_none(node: Expression) -> bool:
    return isinstance(node, NameExpr) and node.fullname == "builtins.None"


def _shown(node: Expression) -> str:
    """An expression as the source has it."""
    if isinstance(node, MemberExpr):
        return f"{_shown(node.expr)}.{node.name}"
    return node.name if isinstance(node, NameExpr) else "..."
