"""A server that is watched: Prometheus, Grafana, alerts, and some work to look at."""
