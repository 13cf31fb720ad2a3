"""Every viewer of a run that goes on is shown all of it once, whenever it joins and however slowly it takes it."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from murmur_pubsub.journal import RowKind
from murmuration.live import feed as feeding
from murmuration.live.server import PageServer
from tests.page.asked import Growing, asked, joined, published
from tests.spark.run_folder import RunFolder


def test_a_viewer_gets_a_snapshot_and_then_what_is_new_until_the_run_is_over(tmp_path: Path) -> None:
    growing = Growing(tmp_path)

    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        growing.publish(10)
        socket = await joined(server, session, base, "growing")
        seen = json.loads(await socket.receive_str())
        assert seen["live"]
        assert published(seen["data"]["frames"]) == 10
        total, over = 10, False
        growing.publish(5)
        growing.built.row("b1", 50_000 * growing.number, RowKind.START)
        while total < 15:
            total += published(json.loads(await socket.receive_str()).get("frames", []))
        growing.publish(1)
        growing.say("complete")
        while not over:
            update = json.loads(await socket.receive_str())
            total += published(update.get("frames", []))
            over = update.get("over", False)
        assert total == 16
        again = await joined(server, session, base, "growing")
        message = json.loads(await again.receive_str())
        assert not message["live"]
        assert published(message["data"]["frames"]) == 16

    asked(tmp_path, ask)


def test_a_viewer_that_lags_is_sent_a_snapshot_and_misses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection takes nothing for a while: the feed goes on, and keeps a bounded number of updates for it."""
    monkeypatch.setattr(feeding, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(feeding, "_SEND_S", 3_600.0)  # it is not dropped, however long this machine takes
    growing = Growing(tmp_path)

    async def ask(_: PageServer, __: aiohttp.ClientSession, ___: str) -> None:
        feed = feeding.RunFeed(tmp_path / "growing")
        feed._viewers = 1
        await feed._start()
        gate, sent = asyncio.Event(), []

        class Slow:
            async def send_str(self, text: str) -> None:
                sent.append(json.loads(text))
                if len(sent) == 1:
                    await gate.wait()

        sending = asyncio.create_task(feed._send_to(Slow()))  # type: ignore[arg-type]
        while feed._sent < feeding._BEHIND_MAX * 2:
            growing.publish(1)
            before = feed._sent
            while feed._sent == before:
                await asyncio.sleep(0.005)
        assert len(feed._updates) <= feeding._BEHIND_MAX
        gate.set()
        while len(sent) < 2:
            await asyncio.sleep(0.005)
        growing.publish(1)
        while published(sent[-1].get("frames", [])) != 1 or len(sent) < 3:
            await asyncio.sleep(0.005)
        sending.cancel()
        await feed.close()
        assert [message["kind"] for message in sent[:2]] == ["snapshot", "snapshot"]
        after = published(sent[1]["data"]["frames"]) + sum(published(each["frames"]) for each in sent[2:])
        assert after == growing.number

    asked(tmp_path, ask)


def test_a_viewer_that_joins_while_the_journal_is_read_is_sent_nothing_twice(tmp_path: Path) -> None:
    """It joins when new frames are kept already and not told yet."""
    growing = Growing(tmp_path)

    async def ask(_: PageServer, __: aiohttp.ClientSession, ___: str) -> None:
        feed = feeding.RunFeed(tmp_path / "growing")
        feed._viewers = 1
        await feed._start()
        assert feed._growing is not None
        look, read, gate, sent = feed._growing.look, threading.Event(), threading.Event(), list[dict[str, Any]]()

        def held() -> list[dict[str, Any]]:
            frames = look()
            if frames:
                read.set()
                gate.wait(30)
            return frames

        class Viewer:
            async def send_str(self, text: str) -> None:
                sent.append(json.loads(text))

        feed._growing.look = held  # type: ignore[method-assign]
        growing.publish(3)
        assert await asyncio.to_thread(read.wait, 30)
        sending = asyncio.create_task(feed._send_to(Viewer()))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gate.set()
        while not sent:
            await asyncio.sleep(0.005)
        growing.publish(1)
        while published(sent[-1].get("frames", [])) != 1:
            await asyncio.sleep(0.005)
        sending.cancel()
        await feed.close()
        assert published(sent[0]["data"]["frames"]) + sum(published(each["frames"]) for each in sent[1:]) == 4

    asked(tmp_path, ask)


def test_whoever_comes_back_to_a_run_that_nobody_watched_is_shown_what_happened_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a viewer the journal is left alone, here for an hour: the next viewer has it read at once."""
    monkeypatch.setattr(feeding, "_UNSEEN_EVERY_S", 3_600.0)
    growing = Growing(tmp_path)

    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        growing.publish(1)
        socket = await joined(server, session, base, "growing")
        assert published(json.loads(await socket.receive_str())["data"]["frames"]) == 1
        await socket.close()
        (feed,) = server._feeds.values()
        while feed._viewers or feed._joined.is_set():
            await asyncio.sleep(0.01)
        growing.publish(7)
        again = await joined(server, session, base, "growing")
        seen = 0
        while seen < 8:
            message = json.loads(await again.receive_str(timeout=30))
            seen += published(message["data"]["frames"] if message["kind"] == "snapshot" else message.get("frames", []))
        assert seen == 8

    asked(tmp_path, ask)


def test_two_that_open_a_run_at_once_are_told_each_thing_once(tmp_path: Path) -> None:
    growing = Growing(tmp_path)

    async def ask(_: PageServer, __: aiohttp.ClientSession, ___: str) -> None:
        feed = feeding.RunFeed(tmp_path / "growing")
        feed._viewers = 2
        await asyncio.gather(feed._start(), feed._start())
        growing.publish(3)
        while not feed._sent:
            await asyncio.sleep(0.005)
        growing.publish(4)
        while published(_frames(feed)) < 7:
            await asyncio.sleep(0.005)
        await asyncio.sleep(3 * feeding.LOOK_EVERY_S)  # another reader would have told it by now
        await feed.close()
        assert published(_frames(feed)) == 7

    asked(tmp_path, ask)


def test_a_feed_that_fails_says_so_and_lets_its_viewers_go_and_the_others_go_on(tmp_path: Path) -> None:
    growing, other = Growing(tmp_path), RunFolder(tmp_path / "other")
    other.finish()

    async def ask(server: PageServer, session: aiohttp.ClientSession, base: str) -> None:
        sockets = [await joined(server, session, base, "growing") for _ in range(2)]
        for socket in sockets:
            assert json.loads(await socket.receive_str())["live"]
        (growing.built.folder / "journal").rename(tmp_path / "away")
        for socket in sockets:
            while (message := json.loads(await socket.receive_str()))["kind"] != "error":
                pass
            assert message["text"].startswith(("FileNotFoundError: ", str(growing.built.folder)))
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        again = await joined(server, session, base, "other")
        assert json.loads(await again.receive_str())["kind"] == "snapshot"
        (tmp_path / "away").rename(growing.built.folder / "journal")
        growing.publish(3)
        again = await joined(server, session, base, "growing")
        assert published(json.loads(await again.receive_str())["data"]["frames"]) == 3

    asked(tmp_path, ask)


def test_a_feed_that_has_failed_is_closed_like_any_other(tmp_path: Path) -> None:
    growing = Growing(tmp_path)

    async def ask(_: PageServer, __: aiohttp.ClientSession, ___: str) -> None:
        feed = feeding.RunFeed(growing.built.folder)
        feed._viewers = 1
        await feed._start()
        assert feed._task is not None
        (growing.built.folder / "journal").rename(tmp_path / "away")
        await asyncio.wait([feed._task])
        await feed.close()

    asked(tmp_path, ask)


def _frames(feed: feeding.RunFeed) -> list[dict[str, Any]]:
    return [frame for update in feed._updates for frame in json.loads(update).get("frames", ())]
