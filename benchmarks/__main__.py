"""Run every benchmark, one after the other."""

from benchmarks import engine, journal, live, matching, recovery

for benchmark in (matching, engine, journal, live, recovery):
    benchmark.main()
