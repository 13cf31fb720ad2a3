"""The handshake alone: a process without the token cannot make a proof, whatever it has heard."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.handshake import GREETING_BYTES_MAX, WELCOME, Acceptor, Dialler, Party, Purpose, Refused
from murmur_pubsub.codec import FRAME_HEADER
from murmur_pubsub.journal import Refusal

TOKEN = "5f" * 16
AT, ELSEWHERE = ("127.0.0.1", 4711), ("127.0.0.1", 4712)
B0, B1 = Party("b0", 2), Party("b1", 7)


def dialler(token: str = TOKEN, own: Party = B0, wanted: str = "b1", at: tuple[str, int] = AT) -> Dialler:
    return Dialler(own, token, wanted, Purpose.LINK, at)


def acceptor(token: str = TOKEN, own: Party = B1, at: tuple[str, int] = AT) -> Acceptor:
    return Acceptor(own, token, at)


def body(frame: bytes | None) -> bytes:
    """What `take` is given of a frame."""
    assert frame is not None
    assert len(frame) <= GREETING_BYTES_MAX
    assert FRAME_HEADER.unpack_from(frame)[0] == len(frame) - FRAME_HEADER.size
    return frame[FRAME_HEADER.size :]


def shake(first: Dialler, second: Acceptor) -> list[bytes]:
    """Everything that went over the wire."""
    said = [body(first.hello())]
    said.append(body(second.take(said[-1])))
    said.append(body(first.take(said[-1])))
    assert second.take(said[-1]) is None
    said.append(body(WELCOME))
    assert first.take(said[-1]) is None
    return said


def refused(end: Dialler | Acceptor, said: bytes) -> Refusal:
    with pytest.raises(Refused) as caught:
        end.take(said)
    assert end.peer is None
    return caught.value.reason


def test_both_ends_learn_the_name_of_the_other() -> None:
    first, second = dialler(), acceptor()
    shake(first, second)
    assert (first.peer, second.peer) == (B1, B0)


def test_the_purpose_is_that_of_the_dialler() -> None:
    first, second = Dialler(B0, TOKEN, "b1", Purpose.DATAGRAMS, AT), acceptor()
    shake(first, second)
    assert second.purpose is Purpose.DATAGRAMS


def test_the_token_is_in_nothing_that_is_said() -> None:
    said = b"".join(shake(dialler(), acceptor()))
    assert TOKEN.encode() not in said
    assert bytes.fromhex(TOKEN) not in said


def test_an_acceptor_without_the_token_is_refused_by_the_dialler() -> None:
    first = dialler()
    assert refused(first, body(acceptor(token="a guess").take(body(first.hello())))) is Refusal.NO_PROOF


def test_a_dialler_without_the_token_is_refused_by_the_acceptor() -> None:
    stranger, second = dialler(token="a guess"), acceptor()
    second.take(body(stranger.hello()))
    for proof in (b"", bytes(32), "text", None):
        fresh = acceptor()
        fresh.take(body(stranger.hello()))
        assert refused(fresh, msgpack.packb((2, proof))) is Refusal.NO_PROOF


def test_what_was_heard_before_proves_nothing() -> None:
    heard = shake(dialler(), acceptor())
    again = acceptor()
    again.take(heard[0])
    assert refused(again, heard[2]) is Refusal.NO_PROOF
    assert refused(dialler(), heard[1]) is Refusal.NO_PROOF


def test_an_end_that_is_sent_its_own_proof_is_not_convinced() -> None:
    first, second = dialler(), acceptor()
    answer = body(second.take(body(first.hello())))
    assert refused(second, msgpack.packb((2, msgpack.unpackb(answer)[-1]))) is Refusal.NO_PROOF


def test_what_another_node_answers_is_no_use_at_a_dead_ones_port() -> None:
    """A stranger there passes on every frame between the dialler and the broker's new incarnation."""
    first, second = dialler(at=AT), acceptor(at=ELSEWHERE)
    assert refused(first, body(second.take(body(first.hello())))) is Refusal.NO_PROOF


def test_what_a_dialler_proves_at_one_address_is_no_use_at_another() -> None:
    first, met, other = dialler(at=AT), acceptor(at=AT), acceptor(at=ELSEWHERE)
    proof = body(first.take(body(met.take(body(first.hello())))))
    other.take(body(first.hello()))
    assert refused(other, proof) is Refusal.NO_PROOF


@pytest.mark.parametrize("other", [Party("b2", 7), Party("b1", 8)])
def test_an_answer_under_another_name_or_incarnation_is_no_proof(other: Party) -> None:
    first = dialler()
    answer = msgpack.unpackb(body(acceptor().take(body(first.hello()))))
    answer[2:4] = other
    assert refused(first, msgpack.packb(answer)) is Refusal.NO_PROOF


def test_another_node_of_the_run_at_that_port_is_not_the_one_that_was_dialled() -> None:
    first = dialler()
    assert refused(first, body(acceptor(own=Party("b7", 0)).take(body(first.hello())))) is Refusal.NO_LINK


def test_another_version_is_refused() -> None:
    hello = msgpack.unpackb(body(dialler().hello()))
    hello[1] += 1
    assert refused(acceptor(), msgpack.packb(hello)) is Refusal.NO_GREETING


fields = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=4)
    | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
)


@given(
    st.binary(max_size=80) | fields.map(msgpack.packb) | st.tuples(st.integers(0, 3), fields, fields).map(msgpack.packb)
)
def test_anything_else_is_refused_and_nothing_worse(said: bytes) -> None:
    met, answered = acceptor(), dialler()
    met.take(body(answered.hello()))
    answered.take(body(acceptor().take(body(answered.hello()))))
    for end in (acceptor(), dialler(), met):
        assert refused(end, said) in (Refusal.NO_GREETING, Refusal.NO_PROOF)
    if said != body(WELCOME):
        assert refused(answered, said) is Refusal.NO_GREETING
