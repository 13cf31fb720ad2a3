"""What is said of bad input: `murmur_pubsub.errors.InputError`."""

import pytest

from murmur_pubsub.errors import InputError

PARTS = "gryphon, epidemic or best_effort"


@pytest.mark.parametrize(
    ("place", "found", "allowed", "meant"),
    [
        ("s.yaml, key broker.reliability", "'gryfon'", PARTS, "gryphon"),
        ("s.yaml, key broker.gryfon", "an unknown key", PARTS, "gryphon"),
        ("s.yaml, key gryfon", "no such part", "(gryphon)", "gryphon"),
        ("s.yaml, key broker.gryfon", "a list", PARTS, None),
        ("s.yaml, key broker.gryfon", "'x'", PARTS, None),
        ("s.yaml, key broker.reliability", "'gryphon'", PARTS, None),
        ("s.yaml, key runtime", "'virtal'", "'ray' or 'virtual'", "virtual"),
        ("s.yaml, key broker.reliability", "'gryfon'", "at least one of gryphon and epidemic", None),
    ],
    ids=[
        "a name in quotes", "the end of the place", "after a blank", "what is no name", "what was found comes first",
        "a name that is allowed", "allowed names in quotes", "names that are no list",
    ],
)  # fmt: skip
def test_the_allowed_name_that_is_closest_to_what_was_found_is_proposed(
    place: str, found: str, allowed: str, meant: str | None
) -> None:
    hint = f" (did you mean {meant!r}?)" if meant else ""
    assert str(InputError(place, found, allowed)) == f"{place}: found {found}{hint}; allowed: {allowed}"
