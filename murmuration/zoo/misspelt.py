"""Declarations whose promise there is no word for.

They are made when they are asked for: a promise that is none raises an error, which would end the import of this
module.
"""

import dataclasses
from typing import Any

from murmur_pubsub.promise import Promise
from reliability.best_effort import BEST_EFFORT

_WORDS = {"DELIVERY": ("exactly-once", "publisher"), "ORDER": ("best_effort", "causal")}


def __getattr__(name: str) -> Any:
    if name not in _WORDS:
        raise AttributeError(name)
    return dataclasses.replace(BEST_EFFORT, name=name, guarantee=Promise(*_WORDS[name]))
