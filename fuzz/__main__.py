"""Runs random inputs, or one that was kept, and says which invariant is broken if one is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fuzz.runner import TARGETS, Campaign, replay
from tests.support import log_check


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit status is 1 if an invariant was broken."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--runs", type=int, default=0, help="end after so many inputs")
    parser.add_argument("--seconds", type=float, default=0, help="end after so many seconds")
    parser.add_argument("--seed", type=int, default=None, help="begin with this one")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one input only")
    options = parser.parse_args(arguments)
    if options.replay is not None:
        return replay(options.target, options.replay)
    campaign = Campaign(options.target, options.seed)
    failure = campaign.run(options.runs or (0 if options.seconds else 1000), options.seconds)
    print(campaign.summary())
    if failure is not None:
        print(failure, file=sys.stderr)
    return 0 if failure is None else 1


if __name__ == "__main__":
    log_check.listen()
    sys.exit(main())
