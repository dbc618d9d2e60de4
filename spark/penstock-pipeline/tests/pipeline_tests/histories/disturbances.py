"""What is done to the streams and their groups while a pipeline reads them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import redis

from pipeline_tests.histories.model import Id, Model, id_of
from pipeline_tests.histories.plan import STREAMS

GROUP = "g"


def text_of(id: Id) -> str:
    """An ID as commands take it."""
    return f"{id[0]}-{id[1]}"


class Disturbances:
    """Commands of others on the source's server, and the marks that they leave in the model."""

    def __init__(self, model: Model, choice: random.Random, mode: str) -> None:
        self.model = model
        self.choice = choice
        self.mode = mode

    def publish(self, client: redis.Redis) -> None:
        """More entries; a key comes a few times and then not again."""
        for stream in STREAMS:
            numbers = range(len(self.model.entries), len(self.model.entries) + self._some(40, 200))
            made = []
            with client.pipeline(transaction=False) as pipeline:
                for n in numbers:
                    key = f"{stream}-{n // 60}-{n % 12}"
                    op, is_bad = self.choice.choice("uuuud"), self.choice.random() < 0.04
                    made.append((key, op, is_bad))
                    value = f"no {n}" if is_bad else n
                    pipeline.xadd(stream, {"n": value, "key": key, "op": op})
                ids = pipeline.execute()
            for id, (key, op, is_bad) in zip(ids, made, strict=True):
                self.model.add(stream, id_of(id), key, op, is_bad)

    def _some(self, least: int, most: int) -> int:
        return self.choice.randint(least, most)

    def _stream(self) -> str:
        return self.choice.choice(STREAMS)

    def trim_what_was_read(self, client: redis.Redis) -> bool:
        """XTRIM up to where every group has acknowledged everything: that loses nothing."""
        stream = self._stream()
        places = []
        for group in self._groups(client, stream):
            pending: Any = client.xpending(stream, group["name"])
            places.append(id_of(pending["min"] or group["last-delivered-id"]))
        if not places:
            return False
        client.xtrim(stream, minid=text_of(min(places)), approximate=False)
        return True

    def _groups(self, client: redis.Redis, stream: str) -> list[dict[str, Any]]:
        found: Any = client.xinfo_groups(stream)
        return list(found)

    def trim(self, client: redis.Redis) -> bool:
        """XTRIM of what may not have been read."""
        stream = self._stream()
        with client.pipeline() as transaction:
            transaction.xrange(stream)
            transaction.xtrim(stream, maxlen=self._some(20, 250), approximate=False)
            transaction.xrange(stream, count=1)
            before, _, first = transaction.execute()
        left = id_of(first[0][0]) if first else (1 << 63, 0)
        gone = [id for id, _ in before if id_of(id) < left]
        self.model.mark("trimmed", stream, map(id_of, gone))
        return bool(gone)

    def delete(self, client: redis.Redis) -> bool:
        """XDEL of a few of the last entries."""
        stream = self._stream()
        ids = _last(client, stream, "+", 200)
        chosen = self.choice.sample(ids, min(len(ids), self._some(1, 5)))
        self.model.mark("deleted", stream, map(id_of, chosen))
        if chosen:
            client.xdel(stream, *chosen)
        return bool(chosen)

    def rival(self, client: redis.Redis) -> bool:
        """Another consumer of the group takes entries, and keeps them or leaves them pending."""
        stream, leaves = self._stream(), self.choice.random() < 0.5
        try:
            reply: Any = client.xreadgroup(
                GROUP, "rival", {stream: ">"}, count=self._some(1, 30), noack=not leaves
            )
        except redis.ResponseError:
            return False
        ids = [id_of(id) for _, entries in reply or [] for id, _ in entries]
        return bool(self.model.mark("left" if leaves else "rival", stream, ids))

    def forget(self, stream: str, mark: str = "forgotten") -> None:
        """What a rival has left may not be pending any more, or for the rival again."""
        for entry in self.model.entries:
            if entry.stream == stream and "left" in entry.marks:
                entry.marks.add(mark)

    def disturb_group(self, client: redis.Redis) -> str | None:
        """One of the commands XGROUP on a group; its name, None if there is no group."""
        stream = self._stream()
        groups = self._groups(client, stream)
        if not groups:
            return None
        group = self.choice.choice(groups)
        commands: list[Callable[..., str | None]] = [self._destroy, self._set_back]
        if self.mode == "group":
            commands.append(self._remove_consumer)
        return self.choice.choice(commands)(client, stream, group)

    def _destroy(self, client: redis.Redis, stream: str, group: dict[str, Any]) -> str:
        client.xgroup_destroy(stream, group["name"])
        self.forget(stream)
        return "XGROUP DESTROY"

    def _set_back(self, client: redis.Redis, stream: str, group: dict[str, Any]) -> str | None:
        place = group["last-delivered-id"]
        before = _last(client, stream, place, 60)
        if len(before) < 2:
            return None
        to = self.choice.choice(before[1:])
        above: Any = client.xrange(stream, min=f"({to.decode()}")
        read = client.xinfo_stream(stream)["entries-added"] - len(above)
        # Without the number the server does not know what was trimmed unread.
        number = read if self.mode == "offsets" or self.choice.random() < 0.5 else None
        client.xgroup_setid(stream, group["name"], to, entries_read=number)
        return "XGROUP SETID" if number is not None else "XGROUP SETID without a number"

    def _remove_consumer(
        self, client: redis.Redis, stream: str, group: dict[str, Any]
    ) -> str | None:
        consumers: Any = client.xinfo_consumers(stream, group["name"])
        own = [each["name"] for each in consumers if each["name"] != b"rival" and each["pending"]]
        if not own:
            return None
        consumer = self.choice.choice(own)
        with client.pipeline() as transaction:
            transaction.xpending_range(stream, group["name"], "-", "+", 10_000, consumer)
            transaction.xgroup_delconsumer(stream, group["name"], consumer)
            pending, _ = transaction.execute()
        ids = [id_of(each["message_id"]) for each in pending]
        self.model.mark(f"dropped {stream} {consumer.decode()}", stream, ids)
        return "XGROUP DELCONSUMER"


def _last(client: redis.Redis, stream: str, highest: str | bytes, count: int) -> list[bytes]:
    found: Any = client.xrevrange(stream, max=highest, count=count)
    return [id for id, _ in found]
