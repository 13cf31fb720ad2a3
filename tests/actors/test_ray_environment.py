"""What a private Ray leaves of the environment: a user's own cluster is joined after it as before it."""

import os

import pytest

from actors.private_ray import private_ray
from actors.ray_session import ray_session
from murmur_pubsub.errors import RunError


def test_what_was_set_for_a_run_is_unset_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray._private import ray_constants

    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/the/users/own")
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    before = dict(os.environ)
    with private_ray():
        assert os.environ["RAY_AUTH_MODE"] == "token"
        assert "RAY_AUTH_TOKEN_PATH" not in os.environ
        first = os.environ["RAY_AUTH_TOKEN"]
        assert not ray_constants.ENABLE_RAY_CLUSTER
    assert dict(os.environ) == before
    assert ray_constants.ENABLE_RAY_CLUSTER
    with private_ray():
        assert os.environ["RAY_AUTH_TOKEN"] != first


def test_it_is_unset_after_a_run_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "the user's own")
    before = dict(os.environ)
    with pytest.raises(RuntimeError, match="a run"), private_ray():
        raise RuntimeError("a run")
    assert dict(os.environ) == before


def test_a_ray_that_does_not_start_is_told_and_leaves_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a computer that has too much else to do."""

    def times_out(**options: object) -> None:
        raise Exception("The current node timed out")  # Ray has no class for it

    before = dict(os.environ)
    monkeypatch.setattr("ray.init", times_out)
    with pytest.raises(RunError, match=r"^Ray did not start: Exception: The current node timed out$"), ray_session(1):
        pass
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):
        before.setdefault(name, os.environ[name])
    assert dict(os.environ) == before
