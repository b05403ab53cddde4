"""A relay before an RTSP server that fails at random: each of its ports is a source with faults of its own."""

import asyncio
import collections
import random
import socket
import struct

# Faults and their weights. Seconds between two faults of one source are exponential.
FAULTS = {"reset": 3, "close": 2, "refuse": 2, "stall": 2, "garbage": 1}


class Relay:
    """Ports that lead to one server. `run` is a task of an event loop."""

    def __init__(self, upstream: int, ports: list, mean_seconds: float, seed: int = 1):
        self.upstream, self.ports, self.mean = upstream, ports, mean_seconds
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        self.open = {port: set() for port in ports}
        self.flowing = {port: asyncio.Event() for port in ports}
        self.garbage = set()
        # Sources whose connections are reset in the middle of what they send next.
        self.torn = set()

    async def run(self):
        await asyncio.gather(*(self.source(port) for port in self.ports))

    async def source(self, port: int):
        """One source, from fault to fault."""
        self.flowing[port].set()
        server = await self.listen(port)
        try:
            while True:
                await asyncio.sleep(self.random.expovariate(1 / self.mean))
                fault = self.random.choices(list(FAULTS), FAULTS.values())[0]
                self.counts[fault] += 1
                if fault in ("reset", "close", "refuse"):
                    if fault == "refuse":
                        server.close()
                    self.cut(port, fault == "reset")
                    if fault == "refuse":
                        await asyncio.sleep(self.random.uniform(1, 20))
                        server = await self.listen(port)
                elif fault == "stall":
                    self.flowing[port].clear()
                    await asyncio.sleep(self.random.uniform(1, 12))
                    self.flowing[port].set()
                else:
                    self.garbage.add(port)
        finally:
            server.close()
            self.cut(port, True)

    async def listen(self, port: int):
        return await asyncio.start_server(lambda reader, writer: self.client(port, reader, writer), "127.0.0.1", port)

    def cut(self, port: int, resets: bool):
        """Ends all connections of a source, wherever in a packet they are."""
        for writer in list(self.open[port]):
            if resets:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort() if resets else writer.close()

    async def client(self, port: int, reader, writer):
        self.open[port].add(writer)
        other = None
        try:
            source, other = await asyncio.open_connection("127.0.0.1", self.upstream)
            pumps = [asyncio.ensure_future(self.pump(port, reader, other)), asyncio.ensure_future(self.pump(port, source, writer, True))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self.open[port].discard(writer)
            writer.close()
            if other:
                other.close()

    async def pump(self, port: int, reader, writer, is_media: bool = False):
        while data := await reader.read(65536):
            await self.flowing[port].wait()
            if is_media and port in self.garbage:
                self.garbage.discard(port)
                data = self.random.randbytes(len(data))
            is_torn = is_media and port in self.torn
            writer.write(data[:len(data) // 2] if is_torn else data)
            await writer.drain()
            if is_torn:
                self.torn.discard(port)
                # What was written leaves before the reset.
                await asyncio.sleep(0.05)
                self.cut(port, True)
                return
