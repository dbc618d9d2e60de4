"""How often a login to the page may fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from server.runtime.token_bucket import TokenBucket

PERIOD_MS: Final = 60_000
OF_ADDRESS: Final = 10
OF_ALL: Final = 100
"""How many logins may fail in a minute: from one address, and from all together."""
ADDRESSES_KEPT: Final = 1000
"""Of how many addresses that is known; that is forgotten which failed the longest time ago."""


class Attempts:
    """Counts logins that failed; ``clock`` gives milliseconds."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._all = TokenBucket(OF_ALL, PERIOD_MS, clock())
        self._of_address: dict[str, TokenBucket] = {}

    def __len__(self) -> int:
        return len(self._of_address)

    def wait_s(self, address: str) -> int:
        """Seconds until the next login may be tried from this address, rounded up; 0 for now."""
        now = self._clock()
        buckets = [self._all]
        if address in self._of_address:
            buckets.append(self._of_address[address])
        return -(-max(bucket.next_room(now, now) - now for bucket in buckets) // 1000)

    def failed(self, address: str) -> None:
        """Notes that a login failed which might be tried."""
        bucket = self._of_address.pop(address, None)
        if bucket is None:
            bucket = TokenBucket(OF_ADDRESS, PERIOD_MS, self._clock())
        while len(self._of_address) >= ADDRESSES_KEPT:
            del self._of_address[next(iter(self._of_address))]
        self._of_address[address] = bucket
        bucket.spend(1)
        self._all.spend(1)
