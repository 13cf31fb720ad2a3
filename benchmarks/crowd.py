"""A crowd of strangers at one port of this host: `python -m benchmarks.crowd PORT SECONDS STRANGERS HELLO PROOF`.

HELLO and PROOF are frames of a handshake that once succeeded there, in hexadecimal. Each stranger connects again when
it is thrown out, until the time is over; what they did is printed as JSON: connections by kind.
"""

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable

from actors.handshake import Dialler, Party, Purpose
from murmur_pubsub.codec import FRAME_HEADER, frame

CONNECTIONS_MAX = 50_000
_PATIENCE_S = 20.0
_BOMB = b"\x80" * (256 * 1024)
_MEGABYTE = b"\xff" * (1024 * 1024)

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


class Crowd:
    """The strangers and what they have done."""

    def __init__(self, port: int, hello: bytes, proof: bytes) -> None:
        self.connections: Counter[str] = Counter()
        self._port = port
        self._hello, self._proof = hello, proof
        self._own_hello = Dialler(Party("b0", 0), "a guess", "b1", Purpose.LINK, ("127.0.0.1", port)).hello()
        self._kinds: tuple[Callable[[Reader, Writer], Awaitable[None]], ...] = (
            self._half_a_frame, self._bomb, self._silence, self._slow_bytes, self._garbage, self._replay,
            self._empty_frames,
        )  # fmt: skip

    async def gather(self, strangers: int, seconds: float) -> None:
        """Let so many strangers at it for so long, and see every connection closed by the other side."""
        ends = asyncio.get_running_loop().time() + seconds
        await asyncio.gather(*(self._stranger(number, ends) for number in range(strangers)))

    async def _stranger(self, number: int, ends: float) -> None:
        rng = random.Random(f"stranger/{number}")
        kind = self._kinds[number % len(self._kinds)]
        await asyncio.sleep(rng.random())
        while asyncio.get_running_loop().time() < ends and self.connections.total() < CONNECTIONS_MAX:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            self.connections[kind.__name__.strip("_").replace("_", " ")] += 1
            try:
                await asyncio.wait_for(kind(reader, writer), _PATIENCE_S)
                await asyncio.wait_for(reader.read(), _PATIENCE_S)
            except (OSError, asyncio.IncompleteReadError):
                pass  # thrown out
            writer.close()
            await asyncio.sleep(rng.uniform(1, 3))

    async def _half_a_frame(self, reader: Reader, writer: Writer) -> None:
        writer.write(FRAME_HEADER.pack(60 << 20) + _MEGABYTE)

    async def _bomb(self, reader: Reader, writer: Writer) -> None:
        writer.write(FRAME_HEADER.pack(24 << 20) + b"\xdd" + (24 << 20).to_bytes(4, "big"))
        for _ in range((24 << 20) // len(_BOMB)):
            await self._go_on(writer, _BOMB)

    async def _silence(self, reader: Reader, writer: Writer) -> None:
        pass

    async def _slow_bytes(self, reader: Reader, writer: Writer) -> None:
        for byte in self._own_hello:
            await self._go_on(writer, bytes((byte,)))
            await asyncio.sleep(0.3)

    async def _garbage(self, reader: Reader, writer: Writer) -> None:
        writer.write(self._own_hello)
        await reader.readexactly(FRAME_HEADER.size)
        writer.write(_MEGABYTE[:5_000])

    async def _replay(self, reader: Reader, writer: Writer) -> None:
        writer.write(self._hello)
        await reader.readexactly(FRAME_HEADER.size)
        writer.write(self._proof)

    async def _empty_frames(self, reader: Reader, writer: Writer) -> None:
        for _ in range(1_000):
            await self._go_on(writer, frame([]))

    async def _go_on(self, writer: Writer, data: bytes) -> None:
        if writer.is_closing():
            raise ConnectionResetError
        writer.write(data)
        await writer.drain()


def main() -> None:
    """Run it and print what was done."""
    port, seconds, strangers, hello, proof = sys.argv[1:]
    crowd = Crowd(int(port), bytes.fromhex(hello), bytes.fromhex(proof))
    asyncio.run(crowd.gather(int(strangers), float(seconds)))
    print(json.dumps(crowd.connections))


if __name__ == "__main__":
    main()
