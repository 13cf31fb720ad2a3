"""Run every benchmark, one after the other."""

from benchmarks import engine, journal, live, matching

for benchmark in (matching, engine, journal, live):
    benchmark.main()
