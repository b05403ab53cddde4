#!/usr/bin/env python3
"""How many streams a node of a cluster admits, of titles with a variable bit rate.

    bench/admission.py [rtsp] [http] [manager]

rtsp      a node has the bandwidth of 14 titles, whose first 15 s have 1.6 times their mean rate. Viewers come one a second by RTSP.
          How many are admitted, and are any packets late?
http      viewers with addresses of their own come by HTTP and play segments; another client sends nine manifest requests a second
          for one title.
manager   a node that only sends viewers, before two nodes with the bandwidth of 7 titles each: are 14 of 14 viewers sent where
          they fit?

The origin is a Millpond, over HTTP. It exits with 1 where fewer than 14 are admitted, more than 14, or a packet is late or lost.
Needs etcd and ffmpeg.
"""

import argparse
import http.client
import json
import math
import shutil
import socket
import sys
import time
from pathlib import Path

import cluster_nodes
import media
from cluster_nodes import Etcd, Node, cluster, wait_for
from compare import TARGET

WORK = TARGET / "bench/admission"
FIT = 14
SECONDS = 90
BUSY = 15


def vbr_title(path: Path) -> Path:
    """A title whose first seconds have 1.6 times its mean rate."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        mean = 2000
        rest = round(mean * (SECONDS - 1.6 * BUSY) / (SECONDS - BUSY))
        parts = []
        for name, seconds, kbits in (("busy", BUSY, round(1.6 * mean)), ("quiet", SECONDS - BUSY, rest)):
            part = path.with_suffix(f".{name}.mp4")
            media.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=640x360:r=25,noise=alls=40:allf=t", "-t", seconds, "-an", "-c:v", "libx264",
                         "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", f"{kbits}k", "-maxrate", f"{kbits}k", "-bufsize",
                         f"{kbits}k", "-g", 50, "-bf", 0, "-sc_threshold", 0, part)
            parts.append(part)
        listed = path.with_suffix(".txt")
        listed.write_text("".join(f"file {part.name}\n" for part in parts))
        media.ffmpeg("-f", "concat", "-i", listed, "-c", "copy", "-movflags", "+faststart", path)
        for part in [*parts, listed]:
            part.unlink()
    return path


class Viewer:
    """A viewer by RTSP, over TCP. Its packets are read by `read`."""

    def __init__(self, url: str):
        self.url, self.number, self.session, self.buffer = url, 0, "", b""
        self.connect(url)
        self.first, self.late, self.packets, self.lost, self.sequence = None, 0, 0, 0, None

    def connect(self, url: str):
        host, port = url.removeprefix("rtsp://").split("/")[0].split(":")
        self.socket, self.url, self.buffer = socket.create_connection((host, int(port)), timeout=30), url, b""

    def ask(self, method: str, url: str, fields: str = "") -> tuple:
        self.number += 1
        session = f"Session: {self.session}\r\n" if self.session else ""
        self.socket.sendall(f"{method} {url} RTSP/1.0\r\nCSeq: {self.number}\r\n{session}{fields}\r\n".encode())
        while b"\r\n\r\n" not in self.buffer:
            self.fill()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        while len(self.buffer) < int(fields.get("content-length", 0)):
            self.fill()
        self.buffer = self.buffer[int(fields.get("content-length", 0)):]
        return int(lines[0].split()[1]), fields

    def fill(self):
        more = self.socket.recv(1 << 16)
        if not more:
            raise RuntimeError(f"{self.url}: the connection ended")
        self.buffer += more

    def play(self) -> int:
        """Plays the pictures from the beginning, at the node that it is sent to; returns the status."""
        status, fields = self.ask("DESCRIBE", self.url)
        if status == 302:
            self.socket.close()
            self.connect(fields["location"])
            status, fields = self.ask("DESCRIBE", self.url)
        if status != 200:
            return status
        path, _, query = self.url.partition("?")
        status, fields = self.ask("SETUP", f"{path}/v1" + (f"?{query}" if query else ""), "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n")
        if status != 200:
            return status
        self.session = fields["session"].split(";")[0]
        status, _ = self.ask("PLAY", path)
        self.socket.setblocking(False)
        return status

    def read(self):
        """Reads the packets that came. A packet is late that comes more than 100 ms after its time."""
        try:
            while more := self.socket.recv(1 << 18):
                self.buffer += more
        except BlockingIOError:
            pass
        now, at = time.monotonic(), 0
        while len(self.buffer) >= at + 4 and len(self.buffer) >= at + 4 + (length := int.from_bytes(self.buffer[at + 2:at + 4])):
            packet = self.buffer[at + 4:at + 4 + length]
            if self.buffer[at] == 0x24 and self.buffer[at + 1] == 0:
                self.packet(packet, now)
            at += 4 + length
        self.buffer = self.buffer[at:]

    def packet(self, packet: bytes, now: float):
        sequence, stamp = int.from_bytes(packet[2:4]), int.from_bytes(packet[4:8])
        if self.first is None:
            self.first, self.sequence = (now, stamp), sequence
        due = self.first[0] + ((stamp - self.first[1]) % 2**32) / 90_000
        self.packets += 1
        self.late += now - due > 0.1
        self.lost += (sequence - self.sequence) % 2**16
        self.sequence = (sequence + 1) % 2**16


def assigned(node: Node, path: str) -> dict:
    return json.loads(node.told(f"/api/v1/cluster/assign?path={path}"))


def contradicts(node: Node, path: str) -> bool:
    """Whether `assign` says of a node that it is full and that the stream fits, or the opposite."""
    told = assigned(node, path)
    fits = {room["resource"]: room["fits"] for room in told["book"]}
    return any((candidate["standing"] == "full") == fits[f"node:{candidate['name']}"] for candidate in told["candidates"])


def watch(viewers: list, seconds: float):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for viewer in viewers:
            viewer.read()
        time.sleep(0.005)


def capacity(rate: int, streams: int) -> int:
    """Mbit/s that are enough for so many streams, and not for one more."""
    mbps = math.ceil(streams * rate / 1e6)
    if mbps * 1e6 >= (streams + 1) * rate:
        raise RuntimeError(f"{rate} bit/s: too little to tell {streams} streams from {streams + 1} by whole megabits")
    return mbps


class Bench:
    def __init__(self, options, etcd: Etcd, origin: Node):
        self.options, self.etcd, self.origin, self.failed = options, etcd, origin, False
        with self.nodes("rate", "a", lambda name: ["--cluster-mbps", 1000]) as nodes:
            self.rate = assigned(nodes["a"], "films/1.mp4")["rate-bps"]

    def nodes(self, part: str, names: str, more):
        return cluster(self.options.server, f"films={self.origin.url}", WORK / part, self.etcd.addresses, names, more)

    def tell(self, part: str, is_right: bool, row: dict):
        self.failed |= not is_right
        print(f"{part}: {'' if is_right else 'WRONG: '}" + ", ".join(f"{key} {value}" for key, value in row.items()), flush=True)


def rtsp(bench: Bench):
    mbps = capacity(bench.rate * 65 // 64, FIT)
    with bench.nodes("rtsp", "a", lambda name: ["--cluster-mbps", mbps, "--cluster-storage-mbps", mbps]) as nodes:
        node, viewers, refused, contradictions = nodes["a"], [], [], 0
        for number in range(1, FIT + 7):
            viewer = Viewer(f"rtsp://127.0.0.1:{node.rtsp}/films/{number}.mp4")
            (viewers if viewer.play() == 200 else refused).append(viewer)
            contradictions += contradicts(node, f"films/{number}.mp4")
            watch(viewers, 1.0)
        watch(viewers, SECONDS - 30)
        late, lost, packets = (sum(getattr(viewer, name) for viewer in viewers) for name in ("late", "lost", "packets"))
        bench.tell("rtsp", len(viewers) == FIT and not late and not lost and not contradictions, {
            "rate": bench.rate, "capacity": mbps, "admitted": len(viewers), "refused": len(refused), "packets": packets, "late": late,
            "lost": lost, "full and fits at once": contradictions})


def http_viewers(bench: Bench):
    mbps = capacity(bench.rate, FIT)
    more = ["--cluster-mbps", mbps, "--cluster-storage-mbps", mbps, "--trusted-proxies", "127.0.0.1"]
    with bench.nodes("http", "a", lambda name: more) as nodes:
        node = nodes["a"]

        def get(path: str, client: str) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=60)
            connection.request("GET", path, headers={"X-Forwarded-For": client})
            reply = connection.getresponse()
            reply.read()
            connection.close()
            return reply.status

        # One client, nine manifests a second.
        statuses = []
        for _ in range(90):
            statuses.append(get("/films/1.mp4/index.m3u8", "192.0.2.100"))
            time.sleep(1 / 9)
        booked = json.loads(node.told("/api/v1/cluster"))["booked"]["node:a"]
        bench.tell("http, nine manifests a second", booked < 2 * bench.rate and set(statuses) == {200},
                   {"rate": bench.rate, "booked": booked, "statuses": sorted(set(statuses))})
        admitted = [1]
        for number in range(2, FIT + 5):
            if get(f"/films/{number}.mp4/index.m3u8", f"192.0.2.{number}") == 200:
                admitted.append(number)
            # Players: their first segments at once, the others as they are played.
            for segment in (1, 2, 3):
                if number in admitted:
                    get(f"/films/{number}.mp4/v1/{segment}.m4s", f"192.0.2.{number}")
            get("/films/1.mp4/index.m3u8", "192.0.2.100")
        bench.tell("http, viewers", len(admitted) == FIT, {"capacity": mbps, "admitted": len(admitted)})


def manager(bench: Bench):
    mbps = capacity(bench.rate * 65 // 64, FIT // 2)
    roles = {"a": ["--cluster-roles", "manager"], "b": ["--cluster-roles", "dispenser,storage"], "c": ["--cluster-roles", "dispenser,storage"]}
    with bench.nodes("manager", "abc", lambda name: ["--cluster-mbps", mbps, *roles[name]]) as nodes:
        viewers, refused, contradictions = [], [], 0
        for number in range(1, FIT + 3):
            viewer = Viewer(f"rtsp://127.0.0.1:{nodes['a'].rtsp}/films/{number}.mp4")
            (viewers if viewer.play() == 200 else refused).append(viewer)
            contradictions += contradicts(nodes["a"], f"films/{number}.mp4")
            watch(viewers, 0.5)
        by_node = [sum(f":{nodes[name].rtsp}/" in viewer.url for viewer in viewers) for name in "bc"]
        bench.tell("manager", len(viewers) == FIT and not contradictions, {
            "capacity of each": mbps, "admitted": len(viewers), "by node": by_node, "refused": len(refused),
            "full and fits at once": contradictions})


PARTS = {"rtsp": rtsp, "http": http_viewers, "manager": manager}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="parts to run; by default all")
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="the millpond to measure")
    options = parser.parse_args()
    if not shutil.which("etcd") or not shutil.which("ffmpeg"):
        sys.exit("bench/admission.py: needs etcd and ffmpeg")
    cluster_nodes.alone()
    clip = vbr_title(WORK / "vbr.mp4")
    media.titles(clip, WORK / "site", FIT + 7)
    with Etcd(WORK / "etcd") as etcd, Node(options.server, f"films={WORK / 'site'}", WORK / "origin", None, "origin") as origin:
        wait_for("the origin", lambda: origin.told("/livez"))
        origin.url += "/films"
        bench = Bench(options, etcd, origin)
        for part in options.parts or PARTS:
            PARTS[part](bench)
    sys.exit(1 if bench.failed else 0)


if __name__ == "__main__":
    main()
