"""Run every benchmark of murmur's own parts, one after the other. `murmur bench` compares publish/subscribe systems."""

from benchmarks import engine, epidemic, journal, live, matching, matching_million, recovery

for benchmark in (matching, matching_million, engine, epidemic, journal, live, recovery):
    benchmark.main()
