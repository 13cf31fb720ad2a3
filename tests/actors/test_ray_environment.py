"""What a private Ray leaves of the environment: a user's own cluster is joined after it as before it."""

import os

import pytest

from actors.private_ray import private_ray


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
