"""Serves a page with sessions of flask-session: ``python flask_program.py URL``."""

from __future__ import annotations

import sys

from flask import Flask, session
from flask_session import Session
from redis import Redis

client = Redis.from_url(sys.argv[1])
app = Flask(__name__)
app.config.update(SESSION_TYPE="redis", SESSION_REDIS=client, PERMANENT_SESSION_LIFETIME=100)
Session(app)


def visit() -> str:
    """Counts the visits of a session."""
    session["visits"] = session.get("visits", 0) + 1
    return str(session["visits"])


def leave() -> str:
    """Ends a session."""
    session.clear()
    return "bye"


app.add_url_rule("/visit", view_func=visit)
app.add_url_rule("/leave", view_func=leave)

ann, bob = app.test_client(), app.test_client()
print([each.get("/visit").text for each in (ann, ann, bob, ann)])
[of_ann, of_bob] = client.keys("session:*")
print([0 < client.ttl(key) <= 100 for key in (of_ann, of_bob)])
print(ann.get("/leave").text, client.dbsize(), ann.get("/visit").text, bob.get("/visit").text)
client.flushall()
print(bob.get("/visit").text)
