"""Two people with their hands on one run: each is answered in a sentence, and the run is one that either could have."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from murmur_pubsub.run_manifest import read_manifest
from murmuration.live.background import page_server
from murmuration.runs.hands import SAVED
from murmuration.scenario.load import load_scenario
from tests.page.played import Played


@pytest.mark.slow
def test_of_two_that_order_the_same_one_is_refused_and_both_are_told_what_was_done(tmp_path: Path) -> None:
    """Six orders each, at once: every kill and restart of the same broker, a node that is gone, and one that is not."""
    played = Played(tmp_path / "runs" / "hands")
    orders: list[dict[str, Any]] = [{"kill": "b1"}, {"restart": "b1"}] * 2 + [{"stall": "b9"}, {"heal": ["b2", "b3"]}]
    with page_server(tmp_path / "runs") as server:
        played.steered_from(server)
        answers, stories = asyncio.run(_both(server.link(played.folder), orders))
        played.join(60)
        assert not played.is_alive()
    done = [words for status, words in answers if status == 200]
    refused = [words for status, words in answers if status != 200]
    assert len(answers) == 12
    assert all(words.startswith("Not done: ") for words in refused)
    assert sum("'b9'" in words and "a node of the run" in words for words in refused) == 2
    assert sum("which was not cut" in words for words in refused) == 2
    manifest = read_manifest(played.folder)
    assert manifest.status == "complete"
    texts = [fault.text for fault in manifest.faults]
    assert texts == ["kill b1", "restart b1"] * (len(done) // 2) + ["kill b1"] * (len(done) % 2)
    assert sorted(f"{text} took effect" for text in texts) == sorted(done)
    assert stories[0] == stories[1] == texts, "each page tells all that was done, whoever did it"
    assert len(load_scenario(played.folder / SAVED).scenario.faults) == len(done)


async def _both(link: str, orders: list[dict[str, Any]]) -> tuple[list[tuple[int, str]], list[list[str]]]:
    """The answers to both, and the faults that took effect as each one's page was told."""

    async def one() -> tuple[list[tuple[int, str]], list[str]]:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            async with session.get(link) as answer:
                page = answer.url
            headers = {"Origin": str(page.origin())}
            feed = await session.ws_connect(page / "feed", headers=headers, max_msg_size=0)
            said = []
            for order in orders:
                async with session.post(page / "do", json={"order": order}, headers=headers) as answer:
                    said.append((answer.status, await answer.text()))
            ready.append(None)
            while len(ready) < 2:
                await asyncio.sleep(0.01)
            async with session.post(page / "do", json={"finish": True}, headers=headers):
                pass
            async with session.post(page / "do", json={"speed": 1000}, headers=headers):
                pass
            told: list[str] = []
            async for message in feed:
                update = message.json()
                frames = update["data"]["frames"] if update["kind"] == "snapshot" else update.get("frames", [])
                told = [] if update["kind"] == "snapshot" else told
                for frame in frames:
                    told += [each["text"] for each in frame.get("s", ()) if each.get("stage") == "done"]
                if update.get("over"):
                    break
            return said, told

    ready: list[None] = []
    (first, told_first), (second, told_second) = await asyncio.gather(one(), one())
    return [*first, *second], [told_first, told_second]
