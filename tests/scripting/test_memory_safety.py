"""Scripts that make Lua 5.1.5, or what surrounds it, write where it must not: the server goes on.

Each is what a published hole was described with, or what was found beside it; see
docs/scripting.md. A server that dies of one fails the test of it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError, ResponseError

from tests.support.process import PenstockProcess

PARAMETERS = "local p={} for i=1,%d do p[i]='a'..i end p=table.concat(p,',')"
IN_COROUTINES = " for i=1,2000 do coroutine.wrap(f)() end return 'done'"
MANY_PARAMETERS = PARAMETERS + " local f=loadstring('return function('..p..',...) %s end')()"

ATTEMPTS = {
    # CVE-2025-46817, and the overflow that was fixed in 2014 at the other end
    "unpack of nearly all integers": (
        "return {pcall(unpack,{1},-1,2147483646)}",
        [None, b"user_script:1: too many results to unpack"],
    ),
    "unpack from the least integer on": (
        "return {pcall(unpack,{1,2},-2147483648,2147483647)}",
        [None, b"user_script:1: too many results to unpack"],
    ),
    "unpack of more than fits on the stack": (
        "local t={} for i=1,8000 do t[i]=i end return {pcall(unpack,t)}",
        [None, b"user_script:1: too many results to unpack"],
    ),
    "unpack of all that fits": (
        "local t={} for i=1,7999 do t[i]=i end return select('#',unpack(t))",
        7999,
    ),
    # CVE-2014-5461
    "parameters before dots that are used": (
        MANY_PARAMETERS % (198, "local a=1 return a,...") + IN_COROUTINES,
        b"done",
    ),
    "parameters before dots that are returned": (
        MANY_PARAMETERS % (120, "return ...") + IN_COROUTINES,
        b"done",
    ),
    "parameters before dots that are not used": (
        MANY_PARAMETERS % (198, "local a=1 return a") + IN_COROUTINES,
        b"done",
    ),
    "parameters before dots in functions within functions": (
        MANY_PARAMETERS.replace("...)", "...) return (function('..p..',...)")
        % (120, "return ... end)()")
        + IN_COROUTINES,
        b"done",
    ),
    "parameters before dots in what load made": (
        PARAMETERS
        % 120
        + " local n=0 local f=load(function() n=n+1 return ({'return function('..p..',...) ',"
        "'return ... end'})[n] end)()" + IN_COROUTINES,
        b"done",
    ),
    # CVE-2025-49844: garbage is collected while a source is parsed
    "a collection between the pieces of a source": (
        "local n=0 local f=load(function() n=n+1 collectgarbage() if n<2000 then"
        " return 'local a'..n%100 ..'='..n..' ' end end, 'chunk'..tostring({})) return f and 'f'",
        None,
    ),
    "a long source with little memory left": (
        "local t={} for i=1,1000 do t[i]='local function f() return \"'..i..'\" end' end"
        " local ok=0 for i=1,100 do if loadstring('do '..table.concat(t,' end do ')..' end','='..i)"
        " then ok=ok+1 end end return ok",
        100,
    ),
    # CVE-2025-46819
    "long brackets of a million signs": (
        "return {loadstring('return ['..('='):rep(1000000)..'[x]'..('='):rep(1000000)..']')}",
        [],
    ),
    "a long bracket that never ends": (
        "return {loadstring('return ['..('='):rep(1000000))}",
        [],
    ),
    # CVE-2025-46818 and CVE-2022-24735: what scripts of other users find
    "the methods of texts": ("return {pcall(function() getmetatable('').__index=1 end)}", [None]),
    "a metatable for a number": ("return getmetatable(1)", None),
    "what lies behind a library": ("local _,t=pairs(redis) t.call=1", ResponseError),
    "what lies behind the methods of texts": (
        "local _,t=pairs(getmetatable('').__index or {}) t.len=1",
        ResponseError,
    ),
    # CVE-2024-31449
    "hexadecimal digits without end": (
        "return {bit.tohex(65535,-2147483648),bit.tohex(65535,2147483647)}",
        [b"0000FFFF", b"0000ffff"],
    ),
    # CVE-2015-8080, CVE-2020-14147, CVE-2018-11219
    "more values of a structure than fit": (
        "return {pcall(struct.unpack,('b'):rep(1000000),('a'):rep(1000000))}",
        [None, b"user_script:1: stack overflow (too many results)"],
    ),
    "a size of a structure that overflows": (
        "return {pcall(struct.unpack,'i2147483648','x')}",
        [None, b"user_script:1: integral size 214748364 is larger than limit of 32"],
    ),
    "an offset beyond a structure": (
        "return {pcall(struct.unpack,'i',('x'):rep(8),2147483647)}",
        [None, b"user_script:1: bad argument #2 to 'unpack' (data string too short)"],
    ),
    # CVE-2018-11218, CVE-2022-24834
    "an array of MessagePack with nothing in it": (
        "return {pcall(cmsgpack.unpack,'\\221\\255\\255\\255\\255')}",
        [None, b"user_script:1: Missing bytes in input."],
    ),
    "a million arrays in each other": (
        "return (pcall(cmsgpack.unpack,('\\145'):rep(1000000)))",
        None,
    ),
    "a million arrays of JSON in each other": (
        "cjson.decode_max_depth(1000000) return (pcall(cjson.decode,('['):rep(1000000)))",
        None,
    ),
    "JSON that grows by quoting": (
        "return #cjson.encode(('\\1'):rep(1000000))",
        6_000_002,
    ),
    # The stack of the process
    "a pattern of a million optional characters": (
        "return {pcall(string.find,('a'):rep(1000000),('a?'):rep(1000000))}",
        [None, b"user_script:1: pattern too complex"],
    ),
    "the same as a method": (
        "return {pcall(function() return (('a'):rep(1e6)):gsub(('a?'):rep(1e6),'') end)}",
        [None, b"user_script:1: pattern too complex"],
    ),
    "a pattern of ten thousand optional characters": (
        "return {string.find(('a'):rep(10000),('a?'):rep(10000))}",
        [1, 10000],
    ),
    "the same from a callback in a callback": (
        "local p,s=('a?'):rep(10000),('a'):rep(10000) local function f(n) if n==0 then"
        " return s:find(p) end return (('x'):gsub('x',function() f(n-1) return 'y' end)) end"
        " return f(90)",
        b"y",
    ),
    "functions that match in functions that match": (
        "local s=('x'):rep(100) local function f() return (s:gsub('x',f)) end return {pcall(f)}",
        [None],
    ),
    "coroutines in coroutines": (
        "local function f() return coroutine.wrap(f)() end return (pcall(f))",
        None,
    ),
    "handlers of errors in handlers of errors": (
        "local function h() return xpcall(error,h) end return (xpcall(error,h))",
        None,
    ),
    "ten thousand parentheses": (
        "return {loadstring(('('):rep(100000)..'1'..(')'):rep(100000))}",
        [],
    ),
    "functions without end in functions": (
        "return {loadstring(('function f() '):rep(100000))}",
        [],
    ),
    "fifty thousand coroutines": (
        "local t={} for i=1,50000 do t[i]=coroutine.create(function() end) end return #t",
        50000,
    ),
    # Bytecode
    "bytecode": (
        "return {loadstring('\\27Lua'..string.dump(function() end):sub(5))}",
        [],
    ),
    # What would take for ever
    "an insertion far before the beginning": (
        "return {pcall(table.insert,{1},-2147483648,1)}",
        [None, b"user_script:1: bad argument #2 to 'insert' (position out of bounds)"],
    ),
    "nothing, two thousand million times": ("return ('').rep('',2147483647)", b""),
    "a text two thousand million times": ("return (pcall(string.rep,'x',2147483647))", None),
}

LONG = {"a long source with little memory left"}
"""Which of them take seconds."""


OPTIONS = ("--port", "0", "--busy-reply-threshold", "100")


@pytest.fixture(scope="module")
def penstock() -> Iterator[PenstockProcess]:
    with PenstockProcess(*OPTIONS, "--script-memory-limit", "96mb") as process:
        yield process


@pytest.fixture
def client(penstock: PenstockProcess) -> Iterator[Redis]:
    # Who gives up on a script that takes long sends it again, and is told that the first one runs.
    with Redis(*penstock.address, socket_timeout=None) as client:
        yield client


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in ATTEMPTS],
)
def test_the_server_survives(penstock: PenstockProcess, client: Redis, name: str) -> None:
    script, expected = ATTEMPTS[name]
    if expected is ResponseError:
        with pytest.raises(ResponseError, match=r"readonly table|bad argument"):
            client.execute_command("EVAL", script, 0)
    else:
        reply: Any = client.execute_command("EVAL", script, 0)
        assert (
            reply[: len(expected)] == expected if isinstance(expected, list) else reply == expected
        )
    assert penstock.process.poll() is None
    assert client.ping()


def resident(penstock: PenstockProcess) -> int:
    """The memory of the process, in MB."""
    with open(f"/proc/{penstock.process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def peak(penstock: PenstockProcess) -> int:
    """The most that it has ever had, in MB, since it was told to begin anew."""
    status = Path(f"/proc/{penstock.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def forget_peak(penstock: PenstockProcess) -> None:
    """Lets the peak begin anew."""
    Path(f"/proc/{penstock.process.pid}/clear_refs").write_text("5")


COPIES = "local s=('x'):rep(1e7) local t={} for i=1,1e3 do t[i]=s end "
"""One text a thousand times: copies of it would take 10 GB."""

BOMBS = [
    "local t={} while true do t[#t+1]={} end",
    "local s='x' while true do s=s..s end",
    pytest.param("local t={} for i=1,math.huge do t[i]=i..'abc' end", marks=pytest.mark.slow),
    COPIES + "struct.pack(('s'):rep(1e3),unpack(t))",
    COPIES + "redis.call('DEL',unpack(t))",
    COPIES + "redis.acl_check_cmd('DEL',unpack(t))",
    "return struct.pack(('x'):rep(5e7))",
    "local s=('x'):rep(5e7) return struct.unpack('c50000000',s)",
    "return {assert(loadstring(('local a=1 '):rep(1e6)))}",
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_memory_comes_back_after_a_bomb(
    penstock: PenstockProcess, client: Redis, bomb: str
) -> None:
    before = resident(penstock)
    forget_peak(penstock)
    with pytest.raises(ResponseError, match="not enough memory"):
        client.execute_command("EVAL", bomb, 0)
    assert peak(penstock) - before < 500
    assert resident(penstock) - before < 100
    assert client.info("memory")["used_memory_lua"] < 2**26


FILLING = [
    "local t={} while true do t[#t+1]={} end",
    pytest.param(
        "local t={} while true do pcall(function() while true do t[#t+1]={} end end) end",
        marks=pytest.mark.slow,
    ),
    "local t={} while true do t[#t+1]=('x'):rep(1e5)..#t end",
    pytest.param(
        "local t={} while true do pcall(redis.call,'PING') t[#t+1]={} end", marks=pytest.mark.slow
    ),
    "local f=coroutine.wrap(function() local t={} while true do t[#t+1]={} end end) f()",
]


@pytest.mark.parametrize("script", FILLING)
def test_a_script_that_fills_the_memory_is_ended_and_others_are_answered_meanwhile(
    script: str,
) -> None:
    with (
        PenstockProcess("--port", "0", "--script-memory-limit", "96mb") as process,
        Redis(*process.address) as client,
        Redis(*process.address, socket_timeout=None) as author,  # It calls a million times.
    ):
        connection = author.connection_pool.get_connection()
        connection.send_command("EVAL", script, "0")
        wait_until_busy(client)  # Though the threshold is five seconds.
        with pytest.raises(ResponseError, match="not enough memory"):
            connection.read_response()
        connection.disconnect()
        assert client.ping()
        assert author.execute_command("EVAL", "return 1", 0) == 1


def test_a_script_may_make_garbage_without_end(client: Redis) -> None:
    script = "local s=('x'):rep(1000) for i=1,150000 do local t={s..i} end return 'done'"
    assert client.execute_command("EVAL", script, 0) == b"done"


@pytest.mark.parametrize("library", ["cjson.encode", "table.concat"])
def test_texts_that_are_too_long_together_are_refused_before_any_is_worked_on(
    client: Redis, library: str
) -> None:
    script = "local s=('\"'):rep(1e7) local t={} for i=1,100 do t[i]=s end return #%s(t)"
    with pytest.raises(ResponseError, match="not enough memory"):
        client.execute_command("EVAL", script % library, 0)


def test_long_texts_are_quoted_in_parts_as_short_ones_are(client: Redis) -> None:
    script = (
        "local s=ARGV[1]:rep(30000) local whole=cjson.encode({s,'x',s})"
        " local part=cjson.encode(ARGV[1]):sub(2,-2):rep(30000)"
        " return {whole==('[\"'..part..'\",\"x\",\"'..part..'\"]') and 1 or 0,#whole}"
    )
    length = 2 * (30000 * len('a\\"\\n\\u007f') + 2) + len('[,"x",]')
    assert client.execute_command("EVAL", script, 0, 'a"\n\x7f') == [1, length]


# --- scripts that cannot be ended by an error ------------------------------------------------

ENDLESS = [
    "local function f() while true do end end xpcall(f, f)",
    "xpcall(function() while true do end end, function() while true do end end)",
    "while true do xpcall(error, function() while true do end end) end",
    pytest.param("while true do string.rep('x', 1e7) end", marks=pytest.mark.slow),
    "while true do pcall(function() while true do end end) end",
    "while true do pcall(coroutine.wrap(function() while true do end end)) end",
    "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    "local function f() pcall(f) while true do end end f()",
    "while true do pcall(redis.call, 'nosuch') end",
    "while true do load(function() while true do end end) end",
]


@pytest.mark.parametrize("script", ENDLESS)
def test_every_script_can_be_killed(penstock: PenstockProcess, client: Redis, script: str) -> None:
    with Redis(*penstock.address) as author:
        connection = author.connection_pool.get_connection()
        connection.send_command("EVAL", script, "0")
        wait_until_busy(client)
        assert client.script_kill()
        with pytest.raises(ResponseError, match="Script killed by user with SCRIPT KILL"):
            connection.read_response()
        connection.disconnect()
    assert client.ping()


@pytest.mark.parametrize(
    "script",
    [
        ENDLESS[0],
        *(pytest.param(script, marks=pytest.mark.slow) for script in ENDLESS[1:3]),
        ENDLESS[3],
    ],
)
def test_a_server_ends_whatever_a_script_does(script: str) -> None:
    with (
        PenstockProcess(*OPTIONS) as process,
        Redis(*process.address) as client,
        Redis(*process.address) as author,
    ):
        connection = author.connection_pool.get_connection()
        connection.send_command("EVAL", script, "0")
        wait_until_busy(client)
        assert process.stop(signal.SIGTERM) == 0
        with pytest.raises(ConnectionError):
            connection.read_response()
        connection.disconnect()


def wait_until_busy(client: Redis) -> None:
    """Returns when others are answered with BUSY."""
    refusal = ""
    while not refusal:
        try:
            client.ping()
        except ResponseError as error:
            refusal = str(error)
    assert refusal.startswith("BUSY Redis is busy running a script.")
