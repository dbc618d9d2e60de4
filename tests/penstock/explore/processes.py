"""Programs of workers that are processes, right ones and wrong ones."""

from __future__ import annotations

CLIENT = """
import os, socket, sys
from urllib.parse import urlsplit

url = urlsplit(os.environ["REDIS_URL"])
connection = socket.create_connection((url.hostname, url.port))
replies = connection.makefile("rb")

def ask(*words):
    parts = [f"${len(word)}\\r\\n{word}\\r\\n" for word in words]
    connection.sendall(f"*{len(words)}\\r\\n{''.join(parts)}".encode())
    return answer()

def answer():
    line = replies.readline()[:-2]
    if not line:
        sys.exit("the connection is lost")
    kind, rest = line[:1], line[1:]
    if kind == b"$":
        return None if rest == b"-1" else replies.read(int(rest) + 2)[:-2].decode()
    if kind == b"*":
        return None if rest == b"-1" else [answer() for _ in range(int(rest))]
    return rest.decode()
"""
"""As little of a client as there can be: a process starts in some ten milliseconds."""

ONCE = """
if ask("GET", "done") is None:
    ask("INCRBY", "total", "5")
    ask("SET", "done", "1")
"""

MENDED = """
ask("MSETNX", "total", "5", "done", "1")
"""

QUEUED = """
if ask("GET", "done") is None:
    ask("MULTI")
    ask("INCRBY", "total", "5")
    ask("SET", "done", "1")
    ask("EXEC")
"""

READING = """
import time

def read(start):
    found = ask("XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", start)
    return [entry[0] for entry in found[0][1]] if found else []
"""

POLLING = f"""{READING}
while True:
    for entry in read("0") or read(">"):
        ask("SET", "total", "5")
        ask("XACK", "s", "g", entry)
    time.sleep(0.01)
"""

REPAIRING = f"""{READING}
for entry in read("0") or read(">"):
    ask("XACK", "s", "g", entry)
time.sleep(0.05)
if ask("GET", "total") is None:
    ask("SET", "total", "5")
"""
"""Acknowledges first, and makes up for it later."""

WAITING = """
while True:
    found = ask("XREADGROUP", "GROUP", "g", "a", "BLOCK", "60000", "STREAMS", "s", ">")
    for entry in found[0][1] if found else []:
        ask("INCRBY", "total", "5")
        ask("XACK", "s", "g", entry[0])
"""
