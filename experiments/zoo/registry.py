"""All that lives in the zoo."""

from experiments.zoo import contents, copies, excuses, liveness, losing, promises, when, whose
from experiments.zoo.entry import Honest, Saboteur
from experiments.zoo.honest import HONEST

SABOTEURS: tuple[Saboteur, ...] = (
    *whose.SABOTEURS,
    *contents.SABOTEURS,
    *when.SABOTEURS,
    *losing.SABOTEURS,
    *copies.SABOTEURS,
    *excuses.SABOTEURS,
    *promises.SABOTEURS,
    *liveness.SABOTEURS,
)

__all__ = ["HONEST", "SABOTEURS", "Honest", "Saboteur"]
