"""Scripts without sockets: what they change, what they can reach, how much they may take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lupa
import pytest

from tests.support.direct import Direct, DirectClient, reply_of
from tests.support.missing import check_packages
from tests.support.process import ROOT

NO_MEMORY = b"not enough memory"


def evaluate(client: DirectClient, script: str, *arguments: str) -> bytes:
    reply = client.send("EVAL", script, 0, *arguments)
    assert reply is not None
    return reply


# --- what scripts change ---------------------------------------------------------------------


async def test_an_array_of_many_numbers_is_decoded_without_copies_of_what_follows_each() -> None:
    # Copies of the text behind each number would take minutes.
    script = "return #cjson.decode('[' .. string.rep('-1.5e0,', 300000) .. '+1]')"
    client = Direct().client()
    reply = client.send("EVAL", script, 0)
    if reply is None:  # A busy machine takes so long that others have their turn meanwhile.
        assert client.session.parked is not None
        reply = await reply_of(client.session.parked)
    assert reply == b":300001\r\n"


def test_a_script_runs_at_one_time(direct: Direct, client: DirectClient) -> None:
    ticks = iter(range(direct.now_ms, direct.now_ms + 100))
    direct.server.state.timekeeper.read = lambda: next(ticks)
    reply = evaluate(
        client, "local a,b=redis.call('time'),redis.call('time') return {a[1]==b[1],a[2]==b[2]}"
    )
    assert reply == b"*2\r\n:1\r\n:1\r\n"


def test_an_error_is_counted_once(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "x")
    evaluate(client, "return redis.call('incr','k')")
    evaluate(client, "redis.pcall('xlen','k') return 1")
    evaluate(client, "return {err='FOO bar'}")
    evaluate(client, "return redis.call('get')")
    assert direct.server.state.stats.errors == {"ERR": 2, "WRONGTYPE": 1, "FOO": 1}
    commands = direct.server.state.table
    assert (commands[b"eval"].calls, commands[b"eval"].failed) == (4, 3)
    assert (commands[b"incr"].calls, commands[b"incr"].failed) == (1, 1)
    assert (commands[b"get"].calls, commands[b"get"].rejected) == (0, 1)


def test_scripts_that_write_fail_while_the_disk_does(direct: Direct, client: DirectClient) -> None:
    evaluate(client, "return 1")
    direct.server.state.set_disk_error("No space left on device")
    reply = evaluate(client, "return redis.call('set','k','v')")
    text = b"-MISCONF Errors writing to the AOF file: No space left on device script: "
    assert reply.startswith(text)
    assert evaluate(client, "return redis.call('get','k')") == b"$-1\r\n"


# --- the cache -------------------------------------------------------------------------------


def test_the_oldest_script_that_eval_brought_leaves_a_full_cache(
    direct: Direct, client: DirectClient
) -> None:
    loaded = client.send("SCRIPT", "LOAD", "return 'loaded'")
    assert loaded is not None
    for number in range(501):
        evaluate(client, f"return {number}")
        evaluate(client, "return 0")
    sha1 = "1e4a8a71b1d4ee8bf9a6b5a62ea0c0a2b6ed2c7b"
    assert direct.server.services.scripting.count == 501
    assert direct.server.services.scripting.evicted == 1
    assert client.send("SCRIPT", "EXISTS", loaded[5:-2], sha1) == b"*2\r\n:1\r\n:0\r\n"
    assert client.send("EVALSHA", loaded[5:-2], 0) == b"$6\r\nloaded\r\n"


def test_info_tells_what_scripts_take(client: DirectClient) -> None:
    def fields() -> dict[str, str]:
        reply = client.send("INFO", "memory")
        assert reply is not None
        lines = reply.decode().split("\r\n")[2:-2]
        return dict(line.split(":", 1) for line in lines if ":" in line)

    before = fields()
    assert (before["used_memory_lua"], before["number_of_cached_scripts"]) == ("0", "0")
    evaluate(client, "return 1")
    after = fields()
    assert int(after["used_memory_lua"]) > 10_000
    assert after["number_of_cached_scripts"] == "1"
    assert after["used_memory_scripts"] == str(200 + len("return 1"))


# --- what scripts can reach ------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["io", "debug", "package", "require", "python", "dofile", "loadfile", "getfenv", "print"],
)
def test_what_could_reach_outside_is_not_there(client: DirectClient, name: str) -> None:
    reply = evaluate(client, f"return {name}")
    text = f"-ERR user_script:1: Script attempted to access nonexistent global variable '{name}'"
    assert reply.startswith(text.encode())


@pytest.mark.parametrize(
    "script",
    [
        "return type(redis.call)",
        "local ok,e=pcall(redis.acl_check_cmd,{}) return type(e)=='string' and 'function'",
        "local ok,e=pcall(redis.call,{}) return type(e)=='string' and 'function'",
        "local ok,e=pcall(struct.pack,'i',{}) return type(e)=='string' and 'function'",
        "local ok,e=pcall(bit.tohex,1,0/0) return type(e)=='string' and 'function'",
        "for k,v in pairs(redis) do if type(v)=='userdata' then return k end end return 'function'",
    ],
)
def test_no_object_of_python_gets_into_a_script(client: DirectClient, script: str) -> None:
    assert evaluate(client, script) == b"$8\r\nfunction\r\n"


def test_bytecode_is_not_run(client: DirectClient) -> None:
    reply = evaluate(client, "return loadstring(string.dump(function() return 1 end))")
    assert reply == b"$-1\r\n"


def test_arguments_are_bytes_of_any_kind_and_number(client: DirectClient) -> None:
    every = bytes(range(256))
    assert client.send("EVAL", "return ARGV[1]", 0, every) == b"$256\r\n" + every + b"\r\n"
    many = [str(number) for number in range(20_000)]
    assert client.send("EVAL", "return {KEYS[1],ARGV[9999],#ARGV}", 10_000, *many) == (
        b"*3\r\n$1\r\n0\r\n$5\r\n19998\r\n:10000\r\n"
    )


def test_a_command_that_fails_unexpectedly_ends_the_request(
    direct: Direct, client: DirectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(direct.server.state.table[b"get"], "handler", fail)
    with pytest.raises(RuntimeError, match="broken"):
        evaluate(client, "redis.pcall('get','k') return 1")
    assert evaluate(client, "return 1") == b":1\r\n"


# --- memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        "local t={} for i=1,1e9 do t[i]=tostring(i)..'xxxxxxxxxxxx' end",
        "local s='x' while true do s=s..s end",
        "local t={} for i=1,1e9 do t[i]=redis.call('ping') end",
        "local t={} while true do pcall(function() while true do t[#t+1]={} end end) end",
        "redis.call('set','k',string.rep('x',3e6)) local t={} for i=1,99 do"
        " t[i]=redis.call('get','k')..i end",
    ],
)
def test_a_script_that_takes_too_much_memory_is_ended(script: str) -> None:
    # On a busy machine a script might take so long that it is put aside.
    client = Direct(script_memory_limit="8mb", busy_reply_threshold=0).client()
    reply = evaluate(client, script)
    assert reply.startswith(b"-ERR not enough memory")
    assert evaluate(client, "return 1") == b":1\r\n"


def test_arguments_that_do_not_fit_into_the_memory_are_refused() -> None:
    direct = Direct(script_memory_limit="8mb")
    client = direct.client()
    refused = b"-ERR not enough memory for the script (script-memory-limit)\r\n"
    assert evaluate(client, "return #ARGV[1]", "x" * 9_000_000) == refused
    assert evaluate(client, "--" + "x" * 9_000_000) == refused
    client.send("CONFIG", "SET", "script-memory-limit", "64mb")
    assert evaluate(client, "return #ARGV[1]", "x" * 9_000_000) == b":9000000\r\n"


# --- without Lua -----------------------------------------------------------------------------


def test_without_lua_scripts_say_what_is_missing(
    client: DirectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lupa.lua51", None)
    missing = client.send("EVAL", "return 1", 0) or b""
    assert missing.startswith(b"-ERR ")
    check_packages(missing[5:].decode(), "a script", "lupa", "greenlet")
    for name in ("EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO"):
        assert client.send(name, "return 1", 0) == missing
    assert client.send("SCRIPT", "LOAD", "return 1") == missing
    assert client.send("SCRIPT", "EXISTS", "x") == b"*1\r\n:0\r\n"
    assert client.send("SCRIPT", "FLUSH") == b"+OK\r\n"
    assert client.send("SCRIPT", "KILL") == b"-NOTBUSY No scripts in execution right now.\r\n"
    client.send("MULTI")
    client.send("SET", "k", "v")
    client.send("EVAL", "return 1", 0)
    assert client.send("EXEC") == b"*2\r\n+OK\r\n" + missing


LATER = """
import os, sys
from pathlib import Path
from tests.support.direct import Direct

packages, folder = map(Path, sys.argv[1:])
client = Direct().client()
print(client.send("EVAL", "return 1", 0).decode()[:28])
before = os.stat(folder)
for name in ("lupa", "greenlet"):
    (folder / name).symlink_to(packages / name)
# As if that had happened within the time in which changes of a folder look like one.
os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
print(client.send("EVAL", "return 1", 0).decode())
"""


def test_lua_is_found_that_is_installed_while_the_server_runs(tmp_path: Path) -> None:
    packages = Path(lupa.__file__).parents[1]
    for path in packages.iterdir():
        if not path.name.startswith(("lupa", "greenlet")):
            (tmp_path / path.name).symlink_to(path)
    places = [path for path in sys.path if path != str(packages)]
    done = subprocess.run(
        [sys.executable, "-S", "-c", LATER, packages, tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*places, str(tmp_path)])},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[:2] == ["-ERR a script needs the pack", ":1"]


def test_there_is_no_debugger(client: DirectClient) -> None:
    reply = b"-ERR There is no debugger for scripts; only SCRIPT DEBUG NO is allowed\r\n"
    assert client.send("SCRIPT", "DEBUG", "YES") == reply
    assert client.send("SCRIPT", "DEBUG", "sync") == reply
