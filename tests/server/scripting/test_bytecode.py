from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from server.scripting.bytecode import without_tail_calls

pytest.importorskip("lupa")


@pytest.fixture
def lua() -> Any:
    return import_module("lupa.lua51").LuaRuntime(encoding=None)


def test_a_program_does_the_same_without_tail_calls(lua: Any) -> None:
    source = b"""
        local up, flag, none = 3, true, nil
        local function sum(n, ...) if n == 0 then return select('#', ...) end
            return sum(n - 1, n, ...) end
        local function many() return unpack({1, 'two', flag, up}) end
        return sum(20), function() return many() end
    """
    rewritten = without_tail_calls(lua.eval(b"string.dump")(lua.compile(source)))
    count, many = lua.eval(b"loadstring")(rewritten)()
    assert count == 20
    assert many() == (1, b"two", True, 3)


def test_the_frame_of_a_caller_stays(lua: Any) -> None:
    source = b"local function where() return debug.traceback() end return where()"
    dump = lua.eval(b"string.dump")(lua.compile(source))
    assert b"(tail call)" in lua.eval(b"loadstring")(dump)()
    assert b"(tail call)" not in lua.eval(b"loadstring")(without_tail_calls(dump))()
