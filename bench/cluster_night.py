#!/usr/bin/env python3
"""Twenty faults of a cluster under viewers of all protocols: wrong bytes, and the longest stall by fault.

    cargo build --release -p millpond -p millpond-lab
    bench/cluster_night.py [FAULT...]

Three nodes, three members of etcd, an origin and a camera are machines of their own: network namespaces at one bridge. During each fault

- HTTP viewers play titles as players that know pathways: 30 s of buffer, ten seconds of patience for the first byte, then the next node.
  Each body must have the hash of a single server's;
- live viewers play a camera by Low-Latency HLS (`millpond-lab load --live`, which checks playlists and bodies). They know pathways too, and wait
  two seconds for a reply;
- RTSP viewers play a title by TCP, and WebRTC viewers the camera by WHEP, a third of them at each node. Those of a dead node come again.

Exits 1 where a body is wrong, a viewer has nothing from any node, or an HTTP viewer stalls longer than --most seconds. Needs root, etcd, nft and ffmpeg.
"""

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import cluster_faults
from cluster_faults import SEGMENTS, TITLES, Node, Scene, get, run
from cluster_nodes import load, reported, title, wait_for
from compare import TARGET

SEGMENT_SECONDS = 6.0
BUFFER, PATIENCE = 30.0, 10.0
CAMERA = "cams/door.mp4"


class Viewer(threading.Thread):
    """One player of a title. It plays in real time, and stalls where its buffer is empty."""

    def __init__(self, night, number: int):
        super().__init__(daemon=True)
        self.night, self.random = night, random.Random(number)
        self.order = self.random.sample(night.nodes, len(night.nodes))
        self.path, self.segment = self.random.choice(TITLES), self.random.randrange(1, SEGMENTS // 2)
        self.read, self.wrong, self.failed, self.moved, self.stalls = 0, [], [], 0, []
        self.connection, self.base = None, ""

    def run(self):
        self.night.ends.wait(self.random.uniform(0, 8))
        until = time.monotonic()
        while not self.night.ends.is_set():
            now = time.monotonic()
            if until - now > BUFFER - SEGMENT_SECONDS:
                self.night.ends.wait(min(until - now - (BUFFER - SEGMENT_SECONDS), 1))
                continue
            body = self.fetch()
            if body is None:
                continue
            now = time.monotonic()
            if self.read and now > until:
                self.stalls.append(now - until)
            until = max(until, now) + SEGMENT_SECONDS
            self.read += 1
            if hashlib.sha256(body).digest() != self.night.known[self.path, self.segment]:
                self.wrong.append(f"{self.base} {self.path} {self.segment}")
            self.segment = self.segment % SEGMENTS + 1
        self.close()

    def fetch(self) -> bytes | None:
        """The next segment, from the first node that answers."""
        why = None
        for _ in range(2 * len(self.order)):
            try:
                if not self.base:
                    self.base = self.order[0].url
                return self.get(urljoin(self.base, f"/{self.path}/v1/{self.segment}.m4s"))
            except (OSError, http.client.HTTPException) as error:
                why = error
                self.close()
                self.order.append(self.order.pop(0))
                self.base, self.moved = "", self.moved + 1
                if self.night.ends.wait(0.1):
                    return None
        self.failed.append(f"{self.path}: {why}")
        return None

    def get(self, url: str) -> bytes:
        for _ in range(3):
            parts = urlsplit(url)
            if self.connection is None or self.connection.host != parts.hostname:
                self.close()
                self.connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE)
            self.connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""))
            reply = self.connection.getresponse()
            body = reply.read()
            if reply.status in (302, 307):
                url = urljoin(url, reply.headers["Location"])
                continue
            if reply.status != 200:
                raise OSError(f"{url}: {reply.status}")
            self.base = url
            return body
        raise OSError(f"{url}: too many redirects")

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None


class Night(Scene):
    """The machines, with a camera."""

    def __init__(self, binary: Path):
        super().__init__(binary)
        self.camera = Node(8, "camera")
        self.ends = threading.Event()

    def machines(self) -> list:
        return [*super().machines(), self.camera]

    def places(self) -> list:
        return [*super().places(), f"cams=rtsp://{self.camera.address}:8554/", "--source-transport", "tcp", "--webrtc", "0.0.0.0:8189"]

    def start(self):
        folder = cluster_faults.WORK / "channel"
        folder.mkdir()
        (folder / "door.mp4").write_bytes(title(TARGET / "bench/cluster-faults.mp4", 2, 600).read_bytes())
        self.camera.serve(self.binary, [folder, "--rtsp-channels", "door.mp4"])
        super().start()

    def holder(self) -> Node:
        """The node that asks the camera."""
        name = self.nodes[0].owner(CAMERA)
        return next(node for node in self.nodes if node.name == name)


def paused(machine, seconds: float):
    """The program of a machine hangs for a time. `ip netns exec` becomes the program, so the signal reaches it."""
    machine.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    machine.process.send_signal(signal.SIGCONT)


def killed(machine, seconds: float = 10):
    machine.end()
    time.sleep(seconds)
    machine.again()


def stopped(machine):
    machine.process.send_signal(signal.SIGTERM)
    machine.process.wait()
    machine.again()


def cut(machine, others: list, seconds: float = 20):
    machine.cut(others)
    time.sleep(seconds)
    machine.join()


def cut_from_viewers(machine, seconds: float = 20):
    """Drops packets of viewers, who are at the bridge; nodes, etcd and storages still reach the machine."""
    rules = f"add table ip cut; add chain ip cut in {{ type filter hook input priority 0; }}; add rule ip cut in ip saddr {cluster_faults.NETWORK}.254 drop"
    run("ip", "netns", "exec", machine.space, "nft", rules)
    time.sleep(seconds)
    machine.join()


def lossy(machines: list, percent: int, seconds: float = 20):
    """Loses packets that machines send, at random."""
    rules = f"add table ip cut; add chain ip cut out {{ type filter hook output priority 0; }}; add rule ip cut out numgen random mod 100 < {percent} drop"
    for machine in machines:
        run("ip", "netns", "exec", machine.space, "nft", rules)
    time.sleep(seconds)
    for machine in machines:
        machine.join()


def several(jobs: list):
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def command(night: Night, node: Node, *words):
    run(night.binary, *words, "--admin", f"http://{node.address}:8380")


def drained(night: Night):
    command(night, night.nodes[1], "cluster", "drain", "a")
    time.sleep(15)
    command(night, night.nodes[1], "cluster", "drain", "a", "--undo")


def purged(night: Night):
    for path in TITLES:
        command(night, night.nodes[0], "cache", "purge", path, "--cluster")
        time.sleep(1)


def reloaded(night: Night):
    for _ in range(5):
        for node in night.nodes:
            node.process.send_signal(signal.SIGHUP)
        time.sleep(2)


FAULTS = {
    "none": lambda night: time.sleep(20),
    "a member of etcd is killed": lambda night: killed(next(one for one in night.etcd if one is not night.leader())),
    "the leader of etcd is killed": lambda night: killed(night.leader()),
    "the leader of etcd hangs 15 s": lambda night: paused(night.leader(), 15),
    "all of etcd is killed for 30 s": lambda night: several([lambda one=one: killed(one, 30) for one in night.etcd]),
    "a node is cut from etcd": lambda night: cut(night.nodes[0], night.etcd),
    "a node is cut from the other nodes": lambda night: cut(night.nodes[0], night.nodes[1:]),
    "the holder of the camera is cut from its viewers": lambda night: cut_from_viewers(night.holder()),
    "a node is cut from the origin": lambda night: cut(night.nodes[0], [night.origin]),
    "the holder of the camera hangs 30 s (SIGSTOP)": lambda night: paused(night.holder(), 30),
    "a node is killed": lambda night: killed(night.nodes[2]),
    "two nodes are killed": lambda night: several([lambda one=one: killed(one) for one in night.nodes[:2]]),
    "a node is restarted (SIGTERM)": lambda night: stopped(night.nodes[0]),
    "a node is drained and comes back": drained,
    "the holder of the camera is killed": lambda night: killed(night.holder()),
    "the camera is killed": lambda night: killed(night.camera, 5),
    "the origin is killed": lambda night: killed(night.origin),
    "the origin hangs 15 s": lambda night: paused(night.origin, 15),
    "5 % of the nodes' packets are lost": lambda night: lossy(night.nodes, 5),
    "10 % of the origin's packets are lost": lambda night: lossy([night.origin], 10),
    "all titles are purged": purged,
    "the configuration is reloaded, five times": reloaded,
}


def loads(night: Night, options, seconds: int, name: str) -> dict:
    """Players of other protocols, a third of them at each node: the process and the report of each."""
    lab, started = options.server.with_name("millpond-lab"), {}
    for node in night.nodes:
        for kind, words in {
            "live": ("--live", "--timeout", "2s", "--retries", 0, "--clients", options.live // 3, f"{node.url}/{CAMERA}/index.m3u8"),
            "rtsp": ("--transport", "tcp", "--clients", options.rtsp // 3, f"rtsp://{node.address}:8554/{TITLES[1]}"),
        }.items():
            report = cluster_faults.WORK / f"{kind}-{node.name}.json"
            started[kind, node.name] = load(lab, report, "--ramp-up", "3s", "--duration", f"{seconds}s", *words), report
        report = cluster_faults.WORK / f"whep-{node.name}.json"
        started["whep", node.name] = load(lab, report, "whep", f"{node.url}/{CAMERA}/whep", "--viewers", options.whep // 3, "--rate", 10,
                                          "--duration", f"{seconds}s"), report
    return started


def trial(night: Night, name: str, options) -> dict:
    night.ends.clear()
    # The camera runs before viewers come, who wait for two seconds only.
    get(f"{night.nodes[0].url}/{CAMERA}/index.m3u8")
    began = time.monotonic()
    others = loads(night, options, options.seconds, name)
    viewers = [Viewer(night, number) for number in range(options.http)]
    for viewer in viewers:
        viewer.start()
    time.sleep(10)
    FAULTS[name](night)
    wait_for("all nodes are members", night.whole)
    time.sleep(max(5.0, began + options.seconds - time.monotonic()))
    night.ends.set()
    for viewer in viewers:
        viewer.join()
    reports = {}
    for key, each in others.items():
        try:
            reports[key] = reported(*each)
        except RuntimeError as error:
            print(f"{name}: {' '.join(key)}: {error}", file=sys.stderr)
    of = lambda kind: [report for (one, _), report in reports.items() if one == kind]  # noqa: E731
    stalls = [stall for viewer in viewers for stall in viewer.stalls]
    return {
        "bodies": sum(viewer.read for viewer in viewers),
        "wrong": [wrong for viewer in viewers for wrong in viewer.wrong],
        "failed": [failed for viewer in viewers for failed in viewer.failed],
        "moved": sum(viewer.moved for viewer in viewers),
        "stalls": len(stalls), "longest": round(max(stalls, default=0), 1),
        "live-stalls": sum(report["stalls"]["count"] for report in of("live")),
        "live-longest": round(max((report["stalls"]["longest"] for report in of("live")), default=0), 1),
        "live-moved": sum(report["switches"]["servers"] for report in of("live")),
        "live-gave-up": sum(report["viewers"]["failed"] for report in of("live")),
        "live-errors": {error["kind"]: error["count"] for report in of("live") for error in report["errors"]},
        "rtsp-started": sum(report["sessions"]["started"] for report in of("rtsp")),
        "rtsp-lost": sum(report["sessions"]["failed"] for report in of("rtsp")),
        "whep-started": sum(report["sessions"]["started"] for report in of("whep")),
        "whep-lost": sum(report["sessions"]["failed"] + report["sessions"]["cut-off"] for report in of("whep")),
        "reports": len(reports),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="words of faults' names; all without any")
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary; millpond-lab lies beside it")
    parser.add_argument("--http", type=int, default=500, help="HTTP viewers (%(default)s)")
    parser.add_argument("--rtsp", type=int, default=99, help="RTSP viewers (%(default)s)")
    parser.add_argument("--live", type=int, default=99, help="live viewers (%(default)s)")
    parser.add_argument("--whep", type=int, default=48, help="WebRTC viewers (%(default)s)")
    parser.add_argument("--seconds", type=int, default=50, help="time of each trial (%(default)s)")
    parser.add_argument("--most", type=float, default=3, help="longest stall of an HTTP viewer in seconds (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/cluster-night.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    if os.geteuid():
        raise SystemExit("bench/cluster_night.py needs root, for namespaces")
    names = [name for name in FAULTS if not options.faults or any(word in name for word in options.faults)]
    cluster_faults.WORK = TARGET / "bench/cluster-night"
    night, results = Night(options.server), {}
    try:
        night.start()
        print("| fault | bodies | wrong | from nowhere | moves | stalls, longest | live moves | live stalls, longest | live left | RTSP begun, lost | WebRTC begun, lost |")
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for name in names:
            one = results[name] = trial(night, name, options)
            print(f"| {name} | {one['bodies']} | {len(one['wrong'])} | {len(one['failed'])} | {one['moved']} | {one['stalls']}, {one['longest']} s | "
                  f"{one['live-moved']} | {one['live-stalls']}, {one['live-longest']} s | {one['live-gave-up']} | {one['rtsp-started']}, {one['rtsp-lost']} | "
                  f"{one['whep-started']}, {one['whep-lost']} |", flush=True)
    finally:
        night.close()
        options.json.write_text(json.dumps(results, indent=1))
    problems = [name for name, one in results.items() if one["wrong"] or one["failed"] or one["longest"] > options.most or one["reports"] < 9]
    for name in problems:
        print(f"FAILED: {name}: {json.dumps(results[name])[:1500]}", file=sys.stderr)
    return 1 if problems or len(results) < len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
