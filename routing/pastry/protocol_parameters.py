"""What a scenario may say of a routing over Pastry, under `broker.parameters` and its name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from murmur_pubsub.errors import InputError

ReversePath = Literal["direct", "routed"]


@dataclass(frozen=True, slots=True)
class ProtocolParameters:
    """resets: take a peer whose process has closed its connections for failed at once (decision 0010), and not only
    when it leaves a probe unanswered. reverse_paths: how events go back over an edge, for routings that have them go
    that way (`routing.pastry.reverse_paths`)."""

    resets: bool
    reverse_paths: ReversePath = "direct"

    @classmethod
    def of(cls, parameters: Mapping[str, Any], routing: str, defaults: Mapping[str, Any]) -> "ProtocolParameters":
        """`parameters`: the node's; `defaults`: the routing's, of all that may be said of it. Raises `InputError`."""
        given, place = parameters.get(routing, {}), f"broker.parameters.{routing}"
        for name, value in given.items():
            if name not in defaults:
                raise InputError(f"{place}.{name}", "an unknown key", ", ".join(defaults))
            if name == "resets" and type(value) is not bool:
                raise InputError(f"{place}.resets", repr(value), "true or false")
            if name == "reverse_paths" and value not in get_args(ReversePath):
                raise InputError(f"{place}.reverse_paths", repr(value), ", ".join(get_args(ReversePath)))
        return cls(**{**defaults, **given})
