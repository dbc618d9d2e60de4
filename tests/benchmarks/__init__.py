"""Tests of the benchmarks' harness; what it measures is never judged here."""
