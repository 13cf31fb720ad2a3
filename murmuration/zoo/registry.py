"""All that lives in the zoo."""

from murmuration.zoo import contents, copies, excuses, liveness, losing, promises, when, whose
from murmuration.zoo.damages import DAMAGES
from murmuration.zoo.entry import Damaged, Saboteur
from murmuration.zoo.honest import HONEST, TEN_CLIENTS

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
DAMAGED = tuple(Damaged(name, damage.what, damage.do, TEN_CLIENTS) for name, damage in DAMAGES.items())

__all__ = ["DAMAGED", "HONEST", "SABOTEURS"]
