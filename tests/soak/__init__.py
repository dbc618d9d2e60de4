"""Many clients for a long time, in small for CI and at full size by ``make soak``.

``PENSTOCK_SOAK`` is the size: 1 is a thousand producers and a thousand consumers for ten minutes,
ten thousand connections at once, and a million in a row.
"""
