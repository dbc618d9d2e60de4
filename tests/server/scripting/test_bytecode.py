from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.scripting.bytecode import TooComplex, hardened


def new_lua() -> Any:
    return import_module("lupa.lua51").LuaRuntime(encoding=None)


@pytest.fixture
def lua() -> Any:
    return new_lua()


def rewritten(lua: Any, source: bytes) -> Any:
    """The function of a source whose bytecode was changed."""
    dump = lua.eval(b"string.dump")(lua.eval(b"loadstring")(source))
    return lua.eval(b"loadstring")(hardened(dump))


def test_a_program_does_the_same_without_tail_calls(lua: Any) -> None:
    source = b"""
        local up, flag, none = 3, true, nil
        local function sum(n, ...) if n == 0 then return select('#', ...) end
            return sum(n - 1, n, ...) end
        local function many() return unpack({1, 'two', flag, up}) end
        return sum(20), function() return many() end
    """
    count, many = rewritten(lua, source)()
    assert count == 20
    assert many() == (1, b"two", True, 3)


def test_the_frame_of_a_caller_stays(lua: Any) -> None:
    source = b"local function where() return debug.traceback() end return where()"
    assert b"(tail call)" in lua.eval(b"loadstring")(source)()
    assert b"(tail call)" not in rewritten(lua, source)()


BODIES = [
    "return ...",
    "local x, y = ... return x, y, ...",
    "return (...), select('#', ...), ({...})[1]",
    "local n = 0 for i = 1, select('#', ...) do if i % 2 == 0 then n = n + select(i, ...) end end"
    " return n",
    "local t = {a1, ...} local n = 0 for k, v in pairs(t) do n = n + v end return #t, n",
    "local function f(...) return a1, ... end return f(...), f(1, ...)",
    "local a, b = a1, a2 local function f(x, ...) a = x return a, b, ... end return f(...)",
    "while (...) do return 'some', ... end return 'none'",
    "if a1 and (...) then return 1, ... elseif a1 then return 2 else return 3 end",
    "return tostring(a1) .. tostring((...)), (a1 or ...)",
    "local ok, e = pcall(function(x, ...) return x.y.z, ... end, ...) return e:match('attempt.*')",
    "arg = 1 return arg, ...",
]


LARGE_STACK = b"local t = {} for i = 1, 4000 do t[i] = i end t = select('#', unpack(t)) "
"""Without it Lua itself writes beyond its stack where the functions have not been changed."""


@given(
    body=st.sampled_from(BODIES),
    parameters=st.integers(1, 60),
    arguments=st.integers(0, 70),
)
def test_functions_with_parameters_before_dots_do_the_same(
    body: str, parameters: int, arguments: int
) -> None:
    names = ", ".join(f"a{place}" for place in range(1, parameters + 1))
    values = ", ".join(map(str, range(1, arguments + 1)))
    source = f"local a2 local f = function({names}, ...) {body} end return f({values})"
    lua = new_lua()
    assert rewritten(lua, source.encode())() == lua.execute(LARGE_STACK + source.encode())


def test_parameters_before_dots_keep_their_names(lua: Any) -> None:
    source = b"""
        local f = function(first, second, ...) local third = ... return third.x, second.y end
        local g = function(first, ...) local rest = ... return first.x end
        return function(which) return select(2, pcall(which == 1 and f or g)) end
    """
    fail = rewritten(lua, source)()
    assert b"attempt to index local 'third' (a nil value)" in fail(1)
    assert b"attempt to index local 'first' (a nil value)" in fail(2)


def test_a_long_list_behind_dots_is_kept(lua: Any) -> None:
    items = ",".join(map(str, range(1, 30_000)))
    body = f"local t = {{{items}, ...}} return #t, t[29999], t[#t]"
    source = f"local function f(a, ...) {body} end return f(1, 7, 8)"
    assert rewritten(lua, source.encode())() == (30_001, 29_999, 8)


def test_a_function_whose_frame_would_be_too_large_is_refused(lua: Any) -> None:
    names = ", ".join(f"a{place}" for place in range(1, 199))
    deep = "g(" * 49 + "..." + ")" * 49
    source = f"\nreturn function({names}, ...) return {deep} end"
    with pytest.raises(TooComplex) as caught:
        rewritten(lua, source.encode())
    assert caught.value.line == 2
