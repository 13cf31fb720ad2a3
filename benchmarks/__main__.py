"""Run every benchmark, one after the other."""

from benchmarks import engine, epidemic, journal, live, matching, recovery

for benchmark in (matching, engine, epidemic, journal, live, recovery):
    benchmark.main()
