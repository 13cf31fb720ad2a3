"""The last mile, between a broker and its clients: sessions, windows, what is handed over and handed back."""

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Deliver, LinkDown, LinkUp, Publish, Received, Send, SetTimer, TimerFired
from murmuration.hunt.memory import kept_by
from reliability.gryphon.client import GryphonClient
from reliability.gryphon.messages import Accepted, Handed, HandedBack, Submission
from reliability.gryphon.parameters import GryphonParameters
from reliability.gryphon.sessions import Sessions


def event(sequence: int, source: int = 3) -> Event:
    return Event(source, sequence, 0, {"x": 1})


# ----------------------------------------------------------------------------------------------- sessions
def test_a_window_is_full_only_for_the_client_that_hands_nothing_back() -> None:
    sessions = Sessions(0, 2)
    assert not sessions
    sessions.begin("c")
    sessions.begin("d")
    assert sessions
    effects: list[object] = []
    for sequence in range(2):
        assert sessions.hand_over(event(sequence), 1, {"c": [1]}, effects)  # type: ignore[arg-type]
    assert not sessions.hand_over(event(2), 1, {"d": [2], "c": [1]}, effects)  # type: ignore[arg-type]
    assert len(effects) == 2, "nothing is done"
    assert (sessions.outstanding("c"), sessions.outstanding("d"), sessions.outstanding("e")) == (2, 0, 0)
    sessions.handed_back("c", HandedBack(1, 0))
    sessions.handed_back("e", HandedBack(1, 0))
    assert sessions.hand_over(event(2), 1, {"d": [2], "c": [1], "gone": [3], None: [4]}, effects)  # type: ignore[arg-type]
    assert effects[2:] == [
        Send("d", Handed(2, 0, event(2), 1, [2])), Send("c", Handed(1, 2, event(2), 1, [1])), Deliver(event(2), 1, [4]),
    ]  # fmt: skip
    assert sessions.any_outstanding
    sessions.end("c")
    sessions.handed_back("d", HandedBack(1, 0))  # of another session
    assert sessions.outstanding("d") == 1
    sessions.handed_back("d", HandedBack(2, 0))
    assert not sessions.any_outstanding


def test_sessions_of_a_later_incarnation_are_told_from_those_before() -> None:
    effects: list[object] = []
    for incarnation in (0, 1):
        sessions = Sessions(incarnation, 2)
        sessions.begin("c")
        sessions.hand_over(event(0), 1, {"c": [1]}, effects)  # type: ignore[arg-type]
    first, second = (each.message.session for each in effects)  # type: ignore[attr-defined]
    assert second > first


def test_what_a_client_lacks_is_repeated_though_more_is_handed_over_all_the_while() -> None:
    """Or one lost message holds the client up for as long as events keep coming."""
    sessions = Sessions(0, 1_000)
    sessions.begin("c")
    effects: list[object] = []
    for sequence in range(3):
        sessions.hand_over(event(sequence), 1, {"c": [1]}, effects)  # type: ignore[arg-type]
        again = [each.message.number for each in sessions.repeat()]  # type: ignore[union-attr]
        assert again == ([] if sequence == 0 else list(range(sequence + 1)))
    sessions.handed_back("c", HandedBack(1, 2))
    sessions.hand_over(event(3), 1, {"c": [1]}, effects)  # type: ignore[arg-type]
    assert sessions.repeat() == [], "it was handed over since the last time"


def test_an_idle_session_is_repeated_from_its_oldest_message_on() -> None:
    sessions = Sessions(0, 1_000)
    sessions.begin("c")
    effects: list[object] = []
    for sequence in range(70):
        sessions.hand_over(event(sequence), 1, {"c": [1]}, effects)  # type: ignore[arg-type]
    assert sessions.repeat() == [], "it was handed something since the last time"
    assert [each.message.number for each in sessions.repeat()] == list(range(50))  # type: ignore[union-attr]
    sessions.handed_back("c", HandedBack(1, 9))
    assert sessions.repeat() == []
    assert [each.message.number for each in sessions.repeat()] == list(range(10, 60))  # type: ignore[union-attr]


# ----------------------------------------------------------------------------------------- last mile, client
class Client:
    """A client's machine on its own."""

    def __init__(self, window: int = 1_000) -> None:
        self.machine = GryphonClient("s", GryphonParameters(window=window))
        self.give(LinkUp("s", True))

    def give(self, input: object) -> list[object]:
        return list(self.machine.handle(input, 0))  # type: ignore[arg-type]

    def hand(self, number: int, session: int = 1) -> list[object]:
        return self.give(Received("s", Handed(session, number, event(number), 2, [1])))


def test_a_client_that_hands_nothing_back_is_repeated_to_ever_more_seldom_until_it_does() -> None:
    """On a narrow link what it hands back would come later than the next repetition, for ever."""
    sessions = Sessions(0, 10)
    sessions.begin("c0")
    for number in range(2):
        sessions.hand_over(event(number), 0, {"c0": [1]}, [])
    assert [at for at in range(40) if sessions.repeat()] == [1, 2, 4, 8, 16, 24, 32]
    sessions.handed_back("c0", HandedBack(1, 0))
    assert [at for at in range(5) if sessions.repeat()] == [1, 2, 4]


def test_a_client_delivers_by_number_and_each_once() -> None:
    client = Client()
    hand_back = SetTimer(("client", "hand back"), 100_000)
    assert client.hand(1) == []
    assert client.hand(0) == [Deliver(event(0), 2, [1]), Deliver(event(1), 2, [1]), hand_back]
    assert client.hand(2) == [Deliver(event(2), 2, [1])]
    assert client.give(TimerFired(("client", "hand back"))) == [Send("s", HandedBack(1, 2))]
    assert client.give(TimerFired(("client", "hand back"))) == [], "nothing new"
    assert client.hand(0) == [Send("s", HandedBack(1, 2))], "the broker does not know that it has come"


def test_a_client_hands_back_every_fifty_messages() -> None:
    client = Client()
    told = [each for number in range(120) for each in client.hand(number) if type(each) is Send]
    assert told == [Send("s", HandedBack(1, 49)), Send("s", HandedBack(1, 99))]


def test_a_client_forgets_an_older_session() -> None:
    client = Client()
    client.hand(0)
    client.hand(5)
    assert client.hand(0, session=2)[0] == Deliver(event(0), 2, [1])
    assert client.hand(1, session=1) == []
    assert client.hand(1, session=2) == [Deliver(event(1), 2, [1])]
    for number in (2, 3, 4):
        client.hand(number, session=2)
    assert client.hand(5, session=2) == [Deliver(event(5), 2, [1])], "the one of the older session is gone"


def test_a_client_keeps_no_more_ahead_than_its_window() -> None:
    client = Client(window=2)
    for number in (1, 2, 3):
        client.hand(number)
    delivered = [each.event.sequence for each in client.hand(0) if type(each) is Deliver]
    assert delivered == [0, 1, 2]


def test_a_client_that_is_cut_off_keeps_nothing_ahead() -> None:
    """The schedule cells/gryphon 2703866: 49 messages stayed, though their session was over."""
    client = Client()
    client.hand(1)
    client.give(LinkDown("s", "test"))
    assert not kept_by(client.machine)["GryphonClient", "_ahead"]


def test_a_client_that_is_cut_off_hands_nothing_back() -> None:
    client = Client()
    client.hand(0)
    client.give(LinkDown("s", "test"))
    assert client.give(TimerFired(("client", "hand back"))) == []


def test_a_client_resends_on_one_timer_while_something_is_not_accepted() -> None:
    client = Client()
    resend = SetTimer(("client", "resend"), 500_000)
    assert client.give(Publish(event(0))) == [Send("s", Submission(event(0), 0)), resend]
    assert client.give(Publish(event(1))) == [Send("s", Submission(event(1), 0))]
    assert client.give(Received("s", Accepted(3, 0))) == []
    assert client.give(TimerFired(("client", "resend"))) == [resend]
    assert client.give(TimerFired(("client", "resend"))) == [Send("s", Submission(event(1), 1)), resend]
    client.give(Received("s", Accepted(3, 1)))
    assert client.give(TimerFired(("client", "resend"))) == []
    client.give(LinkDown("s", "test"))
    client.give(Publish(event(2)))
    assert client.give(TimerFired(("client", "resend"))) == []
