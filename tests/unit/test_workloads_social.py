"""Social workloads: users stand where they should, publish from there, and files that are no graphs are refused."""

import pickle
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from workloads.overlay import Sized, Tree, balanced, chain
from workloads.plan import Workload
from workloads.social import SocialOptions, build_social, read_friendships


def homes(workload: Workload) -> dict[int, str]:
    return {user: client.name for client in workload.clients for user in client.publishers}


def test_users_publish_and_subscribe_at_one_client_each() -> None:
    workload = build_social(balanced(Tree(5, 3), 1), SocialOptions(users=103, posts=500, clients_per_broker=2), 4)
    at = homes(workload)
    assert len(workload.clients) == 10
    assert sorted(at) == list(range(103))
    assert sorted(len(client.publishers) for client in workload.clients) == [10] * 7 + [11] * 3
    for client in workload.clients:
        assert {at[user] for user, _ in client.subscriptions} == {client.name}
        assert {at[author] for _, author, _ in client.publications} <= {client.name}
    assert [client.broker for client in workload.clients][:4] == ["b0", "b0", "b1", "b1"]


def test_posts_can_be_walked_again_pickled_and_are_in_order_of_time() -> None:
    workload = build_social(chain(Sized(3), 1), SocialOptions(users=50, posts=300), 4)
    for client in workload.clients:
        posts = list(client.publications)
        assert posts == list(client.publications) == list(pickle.loads(pickle.dumps(client)).publications)
        assert [time_us for time_us, _, _ in posts] == sorted(time_us for time_us, _, _ in posts)
        assert all(event["author"] == author for _, author, event in posts)
        assert {tuple(map(type, event.values())) for _, _, event in posts} == {(int, str, int)}
    assert sum(len(list(client.publications)) for client in workload.clients) == workload.expected_publications == 300


def test_neighbours_share_brokers_more_often_than_chance_would_have_it(tmp_path: Path) -> None:
    path = tmp_path / "ring.txt"
    path.write_text("\n".join(f"{user} {(user + 1) % 200}" for user in range(200)))
    together = {}
    for users_at in ("random", "neighbours"):
        options = SocialOptions(path=str(path), posts=10, users_at=users_at)
        at = homes(build_social(chain(Sized(10), 1), options, 4))
        together[users_at] = sum(at[user] == at[(user + 1) % 200] for user in range(200))
    assert together["random"] < 60
    assert together["neighbours"] > 2 * together["random"]


def test_activity_is_skewed_by_the_exponent() -> None:
    busiest = []
    for exponent in (0.0, 1.5):
        workload = build_social(chain(Sized(2), 1), SocialOptions(users=100, posts=2_000, exponent=exponent), 4)
        authors = [author for client in workload.clients for _, author, _ in client.publications]
        busiest.append(max(map(authors.count, dict.fromkeys(authors))))
    assert busiest[0] < 60
    assert busiest[1] > 600


def test_more_posts_change_neither_subscriptions_nor_earlier_posts() -> None:
    few, many = (build_social(chain(Sized(2), 1), SocialOptions(users=40, posts=count), 4) for count in (50, 90))
    for first, second in zip(few.clients, many.clients, strict=True):
        assert first.subscriptions == second.subscriptions
        posts = list(first.publications)
        assert posts == list(second.publications)[: len(posts)]


def test_a_generated_graph_has_about_the_mean_degree() -> None:
    workload = build_social(chain(Sized(2), 1), SocialOptions(users=500, mean_degree=10, posts=10), 4)
    assert float(workload.description["mean degree"]) == pytest.approx(10, rel=0.05)
    assert workload.description["seed"] == 4


@pytest.mark.parametrize("text", ["0 1\n1 ²\n", "0 1\n1 ٣\n", "0 1\n1 -2\n", "0 1\n1 " + "9" * 19 + "\n"])
def test_what_is_no_user_number_is_named_by_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_friendships(path)
    assert caught.value.place == f"{path}, line 2"


def test_a_missing_graph_and_an_empty_one_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_friendships(tmp_path / "absent.txt")
    (tmp_path / "empty.txt").write_text("# nobody\n")
    with pytest.raises(InputError, match="no friendships"):
        read_friendships(tmp_path / "empty.txt")


@pytest.mark.parametrize(
    ("key", "value"), [("users", 0), ("users", 6), ("posts", 0), ("rate_per_s", 0.0), ("exponent", float("nan"))]
)
def test_an_impossible_option_is_named(key: str, value: float) -> None:
    with pytest.raises(InputError) as caught:
        SocialOptions(**{key: value})  # type: ignore[arg-type]
    assert caught.value.place == f"workload.{key}"


def test_the_real_graph_over_thirty_brokers(data_directory: Path) -> None:
    options = SocialOptions(path=str(data_directory / "facebook_combined.txt"), posts=20_000)
    workload = build_social(balanced(Tree(30, 4), 1), options, 1)
    assert workload.description["subscriptions"] == 176_468
    assert sum(len(client.subscriptions) for client in workload.clients) == 176_468
    assert sum(len(list(client.publications)) for client in workload.clients) == 20_000
    assert len(homes(workload)) == 4_039
