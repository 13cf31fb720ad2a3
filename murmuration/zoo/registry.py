"""All that lives in the zoo."""

from murmuration.zoo import blaming, contents, copies, durables, excuses, liveness, losing, promises, when, whose
from murmuration.zoo.damages import DAMAGES
from murmuration.zoo.entry import Damaged, Saboteur
from murmuration.zoo.honest import HONEST, TEN_CLIENTS

SABOTEURS: tuple[Saboteur, ...] = (
    *whose.ADDRESS_SABOTEURS,
    *contents.CONTENT_SABOTEURS,
    *when.TIME_SABOTEURS,
    *losing.LOSS_SABOTEURS,
    *copies.COPY_SABOTEURS,
    *excuses.EXCUSE_SABOTEURS,
    *blaming.BLAMING_SABOTEURS,
    *promises.PROMISE_SABOTEURS,
    *liveness.LIVENESS_SABOTEURS,
    *durables.DURABLE_SABOTEURS,
)
DAMAGED = tuple(Damaged(name, damage.what, damage.do, TEN_CLIENTS) for name, damage in DAMAGES.items())

__all__ = ["DAMAGED", "HONEST", "SABOTEURS"]
