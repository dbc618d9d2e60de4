"""The flights of 2013 from New York: streams by carrier, a table of delays by carrier and hour.

``python -m flights.demo`` shows everything; docs/pipeline.md tells what it does.
"""
