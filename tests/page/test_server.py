"""The server shows runs to whoever has its token and asks by one of its own names, and to nobody else."""

import asyncio
import json
import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from typer.testing import CliRunner

from murmur_page.recorded import recorded
from murmur_pubsub.errors import InputError
from murmur_pubsub.run_manifest import read_manifest, write_manifest
from murmuration.commands.main import application
from murmuration.live.running_verdict import RunningVerdictProgram
from murmuration.live.server import PageServer
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from tests.page.asked import Growing, asked, joined
from tests.spark.run_folder import RunFolder

SMALL = {
    "name": "small", "runtime": "virtual", "overlay": {"kind": "chain", "brokers": 2},
    "workload": {"kind": "zipf", "clients": 2, "publications": 20, "rate_per_s": 100},
}  # fmt: skip


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    built = RunFolder(tmp_path / "runs" / "first")
    built.publish("c0", 1_000, 0, 0, {"a": 1})
    built.deliver("c1", 3_000, 0, 0, subscriber=1)
    built.finish()
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "manifest.json").write_text('{"format": "murmur-run", "schema_version": 1}')
    return tmp_path / "runs"


def test_without_the_token_everything_is_refused(runs: Path) -> None:
    async def ask(_: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        for path in ("/", "/run/first/", "/run/first/feed", "/live.js", "/live.css", "/?token=", "/?token=wrong"):
            async with session.get(f"{base}{path}", allow_redirects=False) as answer:
                assert answer.status == 403, path
                assert "first" not in await answer.text()
        assert not session.cookie_jar

    asked(runs, ask)


def test_the_link_lets_in_and_leaves_no_token_in_the_address(runs: Path) -> None:
    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        async with session.get(server.link(runs / "first"), allow_redirects=False) as answer:
            assert answer.status == 303
            assert answer.headers["Location"] == "/run/first/"
            cookie = answer.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
        async with session.get(f"{base}/run/first/") as answer:
            assert answer.status == 200
            assert server.guard.token not in await answer.text()
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'; script-src 'self'" in policy
            assert "unsafe" not in policy

    asked(runs, ask)


def test_what_a_node_was_at_a_moment_is_answered_or_why_not(runs: Path) -> None:
    execute(check_scenario(SMALL | {"keep_inputs": True}, "test"), runs / "kept", lambda *_: None)
    execute(check_scenario(SMALL, "test"), runs / "none", lambda *_: None)

    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        await session.get(server.link())
        async with session.get(f"{base}/run/kept/state/b0/100000") as answer:
            found = await answer.json()
        assert (found["node"], found["incarnation"]) == ("b0", 0)
        assert found["tables"][0][0] == "Broker"
        assert found["last_us"] <= 100_000
        for path, words in (
            ("none/state/b0/100000", "murmur run --keep-inputs"), ("kept/state/b9/1", "a node of the run"),
            ("first/state/b0/1", "scenario.yaml, key overlay"), ("kept/state/b0/-1", "Not Found"),
        ):  # fmt: skip
            async with session.get(f"{base}/run/{path}") as answer:
                assert answer.status == 404
                assert words in await answer.text()

    asked(runs, ask)


def test_the_running_verdict_says_that_it_needs_java_and_a_run_that_goes_on(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(check_scenario(SMALL, "test"), runs / "goes-on", lambda *_: None)
    write_manifest(runs / "goes-on", replace(read_manifest(runs / "goes-on"), status="running"))
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        await session.get(server.link())
        own = {"Origin": base}
        for run, words in (
            ("goes-on", "needs Java, which Spark runs on: Java (JAVA_HOME)"),
            ("first", "murmur analyze"),
        ):
            async with session.post(f"{base}/run/{run}/judge", headers=own) as answer:
                assert answer.status == 409
                assert words in await answer.text()
        async with session.post(f"{base}/run/goes-on/judge") as answer:
            assert answer.status == 403

    asked(runs, ask)


@pytest.mark.parametrize("early", [True, False], ids=["it is found first", "it is not"])
def test_a_server_that_is_stopped_while_java_is_looked_for_leaves_no_program(
    runs: Path, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    """Looking for Java may take longer than the server waits for those whom it is answering."""
    execute(check_scenario(SMALL, "test"), runs / "goes-on", lambda *_: None)
    write_manifest(runs / "goes-on", replace(read_manifest(runs / "goes-on"), status="running"))
    looking, found = threading.Event(), threading.Event()
    begun: list[asyncio.Task[Any] | None] = []

    def look() -> None:
        looking.set()
        assert found.wait(60)

    async def read(_: RunningVerdictProgram) -> None:
        begun.append(asyncio.current_task())
        await asyncio.Event().wait()

    monkeypatch.setattr("spark_analysis.session.check_java", look)
    monkeypatch.setattr(RunningVerdictProgram, "_read", read)

    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        await session.get(server.link())
        asking = asyncio.create_task(session.post(f"{base}/run/goes-on/judge", headers={"Origin": base}))
        assert await asyncio.to_thread(looking.wait, 60)
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0)  # it has begun to stop
        if early:
            found.set()
        await stopping
        found.set()
        await asyncio.get_running_loop().shutdown_default_executor()  # the look is over
        for _ in range(10):
            await asyncio.sleep(0)
        await asyncio.wait([asking])
        assert all(task is not None and task.done() for task in begun), "a program that nobody ends"

    asked(runs, ask)


@pytest.mark.slow
@pytest.mark.spark
def test_the_verdict_so_far_is_told_to_whoever_looks_on(runs: Path) -> None:
    execute(check_scenario(SMALL, "test"), runs / "goes-on", lambda *_: None)
    manifest = read_manifest(runs / "goes-on")
    write_manifest(runs / "goes-on", replace(manifest, status="running"))

    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        await session.get(server.link())
        async with session.ws_connect(f"{base}/run/goes-on/feed", headers={"Origin": base}) as socket:
            async with session.post(f"{base}/run/goes-on/judge", headers={"Origin": base}) as answer:
                assert answer.status == 200
            said: list[Any] = []
            while not said or "owed" not in said[-1]:
                told = (await socket.receive_json(timeout=120)).get("told", {})
                said += [told["running"]] if "running" in told else []
            assert said[0] == {"waiting": "Spark is started …"}
            assert said[-1]["missing"] == 0
            write_manifest(runs / "goes-on", manifest)

    asked(runs, ask)


@pytest.mark.parametrize(
    "to", ["//evil.example/", "/\\evil.example", "https://evil.example/", "/run/../x", "/run/a%0d%0ab/"]
)
def test_the_link_leads_to_no_other_place(runs: Path, to: str) -> None:
    async def ask(server: PageServer, session: aiohttp.ClientSession, _: str) -> None:
        async with session.get(f"{server.link()}&to={to}", allow_redirects=False) as answer:
            assert answer.headers["Location"] == "/"

    asked(runs, ask)


def test_a_foreign_name_and_a_foreign_page_are_refused(runs: Path) -> None:
    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        await session.get(server.link())
        async with session.get(f"{base}/", headers={"Host": "evil.example"}) as answer:
            assert answer.status == 403
            assert "not evil.example" in await answer.text()
        for origin in ("http://evil.example", "null", None):
            headers = {"Origin": origin} if origin else {}
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(f"{base}/run/first/feed", headers=headers)
            assert refused.value.status == 403

    asked(runs, ask)


def test_the_list_has_every_run_and_says_why_one_cannot_be_opened(runs: Path) -> None:
    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        async with session.get(server.link()) as answer:
            text = await answer.text()
        assert '<a href="/run/first/">first</a>' in text
        assert "key schema_version: found 1; allowed: 3" in text.replace("&#x27;", "").replace("'", "")
        assert 'href="/run/broken/"' not in text
        for name in ("third", "%252e%252e", "..%2Ffirst"):
            async with session.get(f"{base}/run/{name}/") as answer:
                assert answer.status == 404

    asked(runs, ask)


def test_a_folder_without_runs_says_so(tmp_path: Path) -> None:
    async def ask(server: PageServer, session: aiohttp.ClientSession, _: str) -> None:
        async with session.get(server.link()) as answer:
            assert "There is no run in" in await answer.text()

    asked(tmp_path, ask)


def test_the_feed_of_a_finished_run_is_what_a_frozen_page_holds(runs: Path) -> None:
    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        socket = await joined(server, session, base, "first")
        message = json.loads(await socket.receive_str())
        assert (message["kind"], message["live"]) == ("snapshot", False)
        assert message["data"] == json.loads(json.dumps(recorded(runs / "first", in_file=False)))
        await socket.close()

    asked(runs, ask)


def test_a_damaged_journal_is_said_on_the_page(runs: Path) -> None:
    for path in (runs / "first" / "journal").glob("*.seg"):
        data = bytearray(path.read_bytes())
        data[8] += 1
        path.write_bytes(data)

    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        socket = await joined(server, session, base, "first")
        message = json.loads(await socket.receive_str())
        assert message["kind"] == "error"
        assert "schema version" in message["text"]

    asked(runs, ask)


def test_a_port_in_use_and_a_folder_that_is_none_are_said_in_a_sentence(runs: Path) -> None:
    async def ask(_: PageServer, __: aiohttp.ClientSession, base: str) -> None:
        port = int(base.rsplit(":", 1)[1])
        with pytest.raises(InputError, match=r"--port \d+: found a port that is in use; allowed: a free one"):
            await PageServer(runs).start(port=port)

    asked(runs, ask)
    done = CliRunner().invoke(application, ["serve", str(runs / "nowhere")])
    assert "no such folder" in str(done.exception)


def test_a_report_is_shown_as_a_page_of_no_origin(runs: Path) -> None:
    (runs / "first" / "report.html").write_text("<script>fetch('/')</script>")

    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        await session.get(server.link())
        async with session.get(f"{base}/run/first/report") as answer:
            assert answer.headers["Content-Security-Policy"] == "sandbox allow-scripts"

    asked(runs, ask)


class NoHands:
    """Stands for the hands on a run: it keeps what it is asked."""

    def __init__(self) -> None:
        self.orders: list[Any] = []

    def told(self) -> dict[str, Any]:
        return {}

    def order(self, entry: Any) -> Future[str]:
        self.orders.append(entry)
        answer: Future[str] = Future()
        answer.set_result("done")
        return answer

    def finish(self) -> None:
        self.orders.append("finish")


def test_an_order_needs_the_token_and_a_page_of_the_server(runs: Path) -> None:
    hands = NoHands()

    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        server.let_steer(runs / "first", hands)  # type: ignore[arg-type]
        order = {"order": {"kill": "b1"}}
        async with session.post(f"{base}/run/first/do", json=order, headers={"Origin": base}) as answer:
            assert answer.status == 403, "without the token"
        await session.get(server.link())
        for origin in ("http://evil.example", "null", base.replace("127.0.0.1", "localhost"), None):
            headers = {"Origin": origin} if origin else {}
            async with session.post(f"{base}/run/first/do", json=order, headers=headers) as answer:
                assert answer.status == 403, origin
        assert hands.orders == []
        async with session.post(f"{base}/run/first/do", json=order, headers={"Origin": base}) as answer:
            assert (answer.status, await answer.text()) == (200, "done")
        assert hands.orders == [{"kill": "b1"}]

    asked(runs, ask)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("{", 400), ("[]", 409), ("7", 409), ('{"order": 3}', 409), ('{"finish": false}', 409), ('{"paused": 1}', 409),
        ('{"order": {}, "finish": true}', 409), ('{"burn": true}', 409), ('{"finish": true}', 200),
    ],
)  # fmt: skip
def test_what_is_no_order_is_refused_in_a_sentence(runs: Path, body: str, status: int) -> None:
    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        server.let_steer(runs / "first", NoHands())  # type: ignore[arg-type]
        await session.get(server.link())
        async with session.post(f"{base}/run/first/do", data=body, headers={"Origin": base}) as answer:
            assert answer.status == status
            text = await answer.text()
            assert "Traceback" not in text
            assert status == 200 or "order" in text

    asked(runs, ask)


def test_a_run_without_hands_says_how_to_have_them(runs: Path) -> None:
    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        await session.get(server.link())
        async with session.post(f"{base}/run/first/do", json={"finish": True}, headers={"Origin": base}) as answer:
            assert answer.status == 409
            assert "murmur run --watch" in await answer.text()

    asked(runs, ask)


def test_the_way_of_any_event_is_told_and_of_none_that_was_not_published(tmp_path: Path) -> None:
    """Of a run that goes on, too: its files are open, and hold rows that are not written yet."""
    growing = Growing(tmp_path)

    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        growing.publish(2)
        growing.built.hop("c0", "b0", 100_010, 100_400, 0, 2)
        async with session.get(f"{base}/run/growing/way/0:2") as answer:
            assert answer.status == 403, "without the token"
        await session.get(server.link())
        async with session.get(f"{base}/run/growing/way/0:2") as answer:
            way = await answer.json()
        assert (way["t"], way["hops"]) == (100_000, [{"from": "c0", "to": "b0"}])
        assert any("publishes it" in line for line in way["lines"])
        async with session.get(f"{base}/run/growing/way/0:99") as answer:
            assert answer.status == 404
            assert "no such publication" in await answer.text()
        for odd in ("0", "x:y", "0:2:3", "-1:2"):
            async with session.get(f"{base}/run/growing/way/{odd}") as answer:
                assert answer.status == 404

    asked(tmp_path, ask)
