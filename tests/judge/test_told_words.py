"""What a client was told that was given up for it, held against its lease: words made by hand."""

import pytest

from murmur_pubsub.promise import GIVEN_UP, Limits
from spark_analysis.excuses import Case
from spark_analysis.fault_windows import NEVER_US
from spark_analysis.given_up import ToldRow, Words

S = 1_000_000
LACKED = Case("missing", "c0", "c1", published_us=5 * S, event=(7, 4))


@pytest.mark.parametrize(
    ("lease_us", "silence", "is_excused"),
    [
        (2 * S, (5_500_000, 7 * S), True),
        (2 * S, (5_500_001, 7 * S), False),
        (2 * S, (6_500_000, NEVER_US), True),
        (2 * S, (6_500_001, NEVER_US), False),
        (2 * S, (S, 5 * S + 1), True),
        (2 * S, (S, 5 * S), False),
        (600_000, (5_500_000, 5_800_000), True),
        (600_000, (5_500_001, 5_800_000), False),
        (3 * S, (S, NEVER_US), True),
        (3 * S + 1, (S, NEVER_US), False),
    ],
    ids=[
        "half a second short of a lease", "less", "up to the word", "less, up to the word", "into the event's time",
        "before the event", "half of a short lease", "less than half of it", "the event had waited for a lease",
        "the event had not",
    ],
)  # fmt: skip
def test_a_lease_has_run_out_after_a_silence_that_is_hardly_shorter(
    lease_us: int, silence: tuple[int, int], is_excused: bool
) -> None:
    told = ToldRow(8 * S, GIVEN_UP, node=1, source=7, sequence=9, value=3)
    words = Words([told], ["c0", "c1"], Limits(lease_us=lease_us), lossy=False)
    assert (words.explain(LACKED, [silence], LACKED.published_us) is not None) == is_excused
