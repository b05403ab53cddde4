#!/usr/bin/env python3
"""Live sources that fail at random, with viewers that come and go, and whether anything stays behind.

Each source is a port of a relay before one RTSP server. The relay resets, closes and refuses connections, holds back data and sends
garbage. Viewers of RTSP (`millpond load`), of stream.mp4 and of HLS stay for a random time and leave without a farewell. Every few seconds
the server's memory, descriptors, streams and modules are printed. After the load all of them must be back where they
were before it. Exits 1 where not, and where viewers got nothing.
"""

import argparse
import asyncio
import collections
import json
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import flaky
import rtsp_capacity
import servers
from compare import TARGET

CLIP = "V100"
# Megabytes that the allocator may keep.
MEMORY = 32
LINGER = 2


class Viewers:
    """Viewers by HTTP, in one event loop."""

    def __init__(self, port: int, sources: int, mean_seconds: float):
        self.port, self.sources, self.mean = port, sources, mean_seconds
        self.random = random.Random(2)
        self.counts = collections.Counter()

    async def seat(self, watch):
        """One viewer after the other."""
        while True:
            path = f"/cam{self.random.randint(1, self.sources)}/{CLIP}.mp4"
            try:
                async with asyncio.timeout(self.random.expovariate(1 / self.mean)):
                    await watch(path)
            except TimeoutError:
                self.counts["left"] += 1
            except (OSError, ValueError, asyncio.IncompleteReadError):
                self.counts["broken"] += 1
            await asyncio.sleep(self.random.uniform(0, 1))

    async def ask(self, reader, writer, path: str) -> tuple:
        """Status and length of a reply; the length is `None` where the body is chunked."""
        writer.write(f"GET {path} HTTP/1.1\r\nHost: edge\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"(?im)^content-length: *(\d+)", head)
        status = int(head.split()[1])
        self.counts[f"status {status}"] += 1
        return status, int(length[1]) if length else None

    async def body(self, reader, length) -> bytes:
        if length is not None:
            return await reader.readexactly(length)
        parts = []
        while size := int(await reader.readline(), 16):
            parts.append((await reader.readexactly(size + 2))[:-2])
        await reader.readline()
        return b"".join(parts)

    async def stream(self, path: str):
        """One long response."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            status, length = await self.ask(reader, writer, f"{path}/stream.mp4")
            if status != 200:
                await self.body(reader, length)
                return
            while data := await reader.read(65536):
                self.counts["stream bytes"] += len(data)
        finally:
            writer.transport.abort()

    async def hls(self, path: str):
        """Playlists with blocking reload, and each part."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        last, query = "", ""
        try:
            while True:
                status, length = await self.ask(reader, writer, f"{path}/v1/index.m3u8{query}")
                text = (await self.body(reader, length)).decode()
                if status != 200:
                    query = ""
                    await asyncio.sleep(1)
                    continue
                segments = re.findall(r"(?m)^\.\./(.+\.m4s)$", text)
                number = int(re.search(r"MEDIA-SEQUENCE:(\d+)", text)[1]) + len(segments)
                opened = text.rsplit(".m4s\n", 1)[-1] if segments else text
                query = f"?_HLS_msn={number}&_HLS_part={opened.count('#EXT-X-PART:')}"
                parts = re.findall(r'EXT-X-PART:.*URI="\.\./([^"]+)"', text)
                if parts and parts[-1] != last:
                    last = parts[-1]
                    status, length = await self.ask(reader, writer, f"{path}/{last}")
                    self.counts["hls bytes"] += len(await self.body(reader, length))
        finally:
            writer.transport.abort()


def sample(server) -> dict:
    pid = server.process.pid
    status = Path(f"/proc/{pid}/status").read_text()
    graph, streams = (json.loads(server.told(f"/api/v1/{path}")) for path in ("graph", "streams?limit=1000"))
    streams = streams["items"]
    states = collections.Counter(stream["state"] for stream in streams)
    return {
        "resident MB": int(status.split("VmRSS:")[1].split()[0]) / 1024, "threads": int(status.split("Threads:")[1].split()[0]),
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "modules": len(graph["modules"]), "pipes": len(graph["pipes"]), "running": states["running"], "lost": states["lost"],
        "stream bytes": sum(stream["memory-bytes"] for stream in streams),
    }


def show(when: str, figures: dict):
    print(f"{when:>7} " + "".join(f"{value:13.1f}" for value in figures.values()), flush=True)


async def load(server, relay, options, work: Path) -> collections.Counter:
    viewers = Viewers(server.port, options.sources, options.watch)
    rtsp = options.viewers * 2 // 5
    seats = [viewers.seat(viewers.stream if n % 2 else viewers.hls) for n in range(options.viewers - rtsp)]
    command = [options.bin, "load", f"rtsp://127.0.0.1:{server.rtsp}/cam{{1..{options.sources}}}/{CLIP}.mp4", "--clients", rtsp]
    command += ["--watch", f"{options.watch:g}s", "--watch-distribution", "exponential", "--ramp-up", "5s", "--transport", "tcp"]
    command += ["--duration", f"{round(options.minutes * 60)}s", "--json", work / "rtsp.json"]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tasks = [asyncio.ensure_future(each) for each in [relay.run(), *seats]]
    began = time.monotonic()
    try:
        while (elapsed := time.monotonic() - began) < options.minutes * 60:
            await asyncio.sleep(min(15, options.minutes * 12))
            show(f"{elapsed:.0f} s", await asyncio.to_thread(sample, server))
            failed = [task for task in tasks if task.done()]
            if failed:
                failed[0].result()
        await asyncio.to_thread(process.wait)
    finally:
        process.kill()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return viewers.counts


def judge(before: dict, after: dict, counts, log: str) -> list:
    wrong = [name for name in ("modules", "pipes", "running", "lost", "stream bytes") if after[name] != before[name]]
    wrong += ["descriptors"] if after["descriptors"] > before["descriptors"] + 5 else []
    wrong += ["threads"] if after["threads"] > before["threads"] + 4 else []
    wrong += ["resident MB"] if after["resident MB"] > before["resident MB"] + MEMORY else []
    wrong += [f"no {name}" for name in ("stream bytes", "hls bytes") if not counts[name]]
    return wrong + (["panic"] if "panic" in log else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--minutes", type=float, default=30, help="of load (%(default)s)")
    parser.add_argument("--sources", type=int, default=50, help="(%(default)s)")
    parser.add_argument("--viewers", type=int, default=500, help="at once (%(default)s)")
    parser.add_argument("--watch", type=float, default=20, help="mean seconds that a viewer stays (%(default)s)")
    parser.add_argument("--faults", type=float, default=30, help="mean seconds between two faults of a source (%(default)s)")
    options = parser.parse_args()
    work = TARGET / "bench/live-soak"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    media = TARGET / "bench/rtsp-media"
    rtsp_capacity.make(CLIP, media)
    ports = [servers.free_port() for _ in range(options.sources)]
    places = [f"cam{n}=rtsp://127.0.0.1:{port}/" for n, port in enumerate(ports, 1)]
    more = ["--source-transport", "tcp", "--linger", f"{LINGER}s", "--source-timeout", "5s"]
    with servers.Edge(options.bin, str(media), work / "origin", "--rtsp-channels", f"{CLIP}.mp4", name="origin") as origin:
        with servers.Edge(options.bin, places[0], work / "edge", *places[1:], *more) as server:
            relay = flaky.Relay(origin.rtsp, ports, options.faults)
            before = sample(server)
            print("        " + "".join(f"{name:>13}" for name in before))
            show("before", before)
            counts = asyncio.run(load(server, relay, options, work))
            deadline = time.monotonic() + 90
            while (after := sample(server))["modules"] and time.monotonic() < deadline:
                time.sleep(1)
            # The server looks every five seconds for memory to return.
            time.sleep(15)
            after = sample(server)
            show("after", after)
            log = server.log.read_text(errors="replace")
    report = json.loads((work / "rtsp.json").read_text())
    print("faults", dict(relay.counts))
    print("HTTP viewers", dict(sorted(counts.items())))
    print("RTSP viewers", report["sessions"])
    wrong = judge(before, after, counts, log)
    print("stayed behind: " + (", ".join(wrong) if wrong else "nothing"))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
