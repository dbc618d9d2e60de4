"""Record the transcripts from a real server.

    python -m tests.conformance.record --server redis-server --out FOLDER [TOPIC ...]

Starts the given server on a free port, plays every script in both protocols and writes a file for
each. Topics to record may be named; the default is all of them. Scripts about newer features
are not recorded: their replies are written in the scripts themselves.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import transcripts
from .player import ConversationError, Observation, Player, Server
from .reference import RealServer
from .script import Topic, all_topics


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Record conformance transcripts.")
    parser.add_argument("--server", default="redis-server", help="the server program")
    parser.add_argument("--out", type=Path, default=transcripts.TRANSCRIPTS, help="a folder")
    parser.add_argument("topics", nargs="*", help="only these topics")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    real = RealServer(options.server)
    server = Server(real.address)
    try:
        for topic in all_topics():
            if topic.since is None and (not options.topics or topic.name in options.topics):
                record(server, topic, options.out)
    finally:
        server.close()
        real.stop()


def record(server: Server, topic: Topic, folder: Path) -> None:
    """Write a topic's transcript."""
    played = [
        (case.name, [play(Player(server, each, case)) for each in transcripts.PROTOCOLS])
        for case in topic.cases
    ]
    transcripts.write(transcripts.path_of(folder, topic.name), played)
    print(f"{topic.name}: {len(topic.cases)} cases")


def play(player: Player) -> list[Observation]:
    """The observations of a case; a conversation that fails is reported with the case's name."""
    try:
        return player.play()
    except ConversationError as error:
        raise SystemExit(f"{player.case.name} (RESP{player.protocol}): {error}") from error


if __name__ == "__main__":
    main()
