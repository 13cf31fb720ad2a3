"""Run every benchmark, one after the other."""

from benchmarks import engine, epidemic, journal, live, matching, matching_million, recovery

for benchmark in (matching, matching_million, engine, epidemic, journal, live, recovery):
    benchmark.main()
