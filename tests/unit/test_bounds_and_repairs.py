"""Bounds of a probe, and which faults are repairs; the numbers of journals are in tests/golden/formats.txt."""

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import REPAIRS
from murmur_pubsub.places import RingPlace


@pytest.mark.parametrize("timeout_us", [0, 2_000_000])
def test_a_probe_is_given_some_time_and_less_than_up_to_the_next(timeout_us: int) -> None:
    with pytest.raises(InputError, match="above zero and below the time between probes"):
        RingPlace(0, probe_timeout_us=timeout_us)
    RingPlace(0, probe_timeout_us=1)


def test_what_ends_a_fault_and_breaks_nothing_is_a_repair() -> None:
    assert [each.name for each in REPAIRS] == ["RESTART", "RESUME", "HEAL", "UNITE", "RETURN_HOST", "RESTART_ACTOR"]
