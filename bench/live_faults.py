#!/usr/bin/env python3
"""How long viewers of a live stream see no new picture after a fault, and whether they go on by themselves.

Faults: the source is killed and comes back after 5 s and after 60 s; its connection is reset in the middle of a frame; nothing passes
the network for 10 s; another publisher, with pictures of another size, takes the name of a stream; the server itself is killed
and started again. Viewers are players in Chromium and ffmpeg, by RTSP and by HLS. ffmpeg is started again where it ends; hls.js is told
to go on where it gives up, as its documentation asks of pages; the others get no help. After the server was killed its time shift must list what it listed before, but for the last
segment. Exits 1 where a viewer stays without pictures, or more of the past is lost.

    npm ci --prefix tests/players
    bench/live_faults.py --bin FILE
"""

import argparse
import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import flaky
import live_exact
import media
import servers
from compare import TARGET, TOP

NAMES = {
    "hls": "LL-HLS, hls.js", "hls-ts": "HLS with TS, hls.js", "dash": "DASH, dash.js", "shaka": "DASH, Shaka", "mse": "stream.mp4, page",
    "rtsp": "RTSP, ffmpeg", "ffmpeg-hls": "HLS, ffmpeg",
}
# Options of the viewers with ffmpeg.
FFMPEG = {"rtsp": ["-rtsp_transport", "tcp"], "ffmpeg-hls": ["-re"]}
# Seconds at the end of an observation in which a viewer must have got pictures.
LAST = 3
# Bytes of a picture that ffmpeg has scaled to 2 by 2.
PICTURE = 4


class Ffmpeg:
    """A viewer that notes when it has decoded each picture. It is started again where it ends."""

    def __init__(self, url: str, options: list, log: Path):
        self.command = ["ffmpeg", "-v", "error", "-nostdin", *options, "-i", url, "-map", "0:v:0", "-vf", "scale=2:2,format=gray"]
        self.command += ["-fps_mode", "passthrough", "-f", "rawvideo", "pipe:1"]
        self.log = log
        self.shown, self.starts, self.process = [], 0, None
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with self.log.open("wb") as log:
            while not self.ends.is_set():
                self.starts += 1
                self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=log)
                while self.process.stdout.read(PICTURE):
                    self.shown.append(time.time())
                self.process.wait()
                self.ends.wait(1)

    def stop(self):
        self.ends.set()
        with contextlib.suppress(OSError):
            self.process.kill()
        self.thread.join(10)


class Link:
    """The network between a source and the server."""

    def __init__(self, upstream: int):
        self.port = servers.free_port()
        self.relay = flaky.Relay(upstream, [self.port], 1)
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.set(True)
        asyncio.run_coroutine_threadsafe(self.relay.listen(self.port), self.loop).result(10)

    def set(self, flows: bool):
        """Lets everything pass, or holds it back, new connections too."""
        flowing = self.relay.flowing[self.port]
        self.loop.call_soon_threadsafe(flowing.set if flows else flowing.clear)

    def tear(self):
        self.loop.call_soon_threadsafe(self.relay.torn.add, self.port)


class World:
    """The server, its source behind a link, and a publisher."""

    def __init__(self, options, work: Path, stack: contextlib.ExitStack):
        self.options, self.work, self.stack = options, work, stack
        self.clips = TARGET / "bench/live-faults/media"
        self.clip, self.large = self.clips / "small.mp4", self.clips / "large.mp4"
        live_exact.make(self.clip)
        if not self.large.exists():
            media.ffmpeg("-i", self.clip, "-s", "640x360", "-c:v", "libx264", "-preset", "veryfast", "-g", 50, "-c:a", "copy", self.large)
        self.source = stack.enter_context(
            servers.Edge(options.bin, str(self.clips), work / "source", "--rtsp-channels", self.clip.name, name="source"))
        self.link = Link(self.source.rtsp)
        more = ["live=publish:", "--source-transport", "tcp", "--publish-conflict", "replace", "--time-shift", "1h"]
        self.server = stack.enter_context(
            servers.Edge(options.bin, f"cams=rtsp://127.0.0.1:{self.link.port}/", work / "server", *more))
        self.path = f"cams/{self.clip.name}"
        self.publishers = 0

    def publish(self, clip: Path):
        self.publishers += 1
        url, log = f"rtsp://127.0.0.1:{self.server.rtsp}/live/cam", self.work / f"publisher-{self.publishers}.log"
        self.stack.enter_context(live_exact.pushing(clip, url, live_exact.PUSHES["push-tcp"], log, 0))


def killed(server, seconds: float):
    """Kills a server, and starts it again at the same ports."""
    server.process.kill()
    server.process.wait()
    time.sleep(seconds)
    with server.log.open("ab") as log:
        server.process = subprocess.Popen(server.process.args, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    server.wait()


def unreachable(world: World, seconds: float):
    world.link.set(False)
    time.sleep(seconds)
    world.link.set(True)


@dataclass
class Fault:
    name: str
    # Brings it about, and returns when its cause is over.
    act: object
    is_published: bool = False


FAULTS = {
    "source-5": Fault("source killed, back after 5 s", lambda world: killed(world.source, 5)),
    "reset": Fault("connection reset within a frame", lambda world: world.link.tear()),
    "network": Fault("network gone for 10 s", lambda world: unreachable(world, 10)),
    "replaced": Fault("publisher replaced, 320x180 by 640x360", lambda world: world.publish(world.large), is_published=True),
    "server": Fault("server killed, started after 1 s", lambda world: killed(world.server, 1)),
    "source-60": Fault("source killed, back after 60 s", lambda world: killed(world.source, 60)),
}


class Viewers:
    """All viewers of a stream."""

    def __init__(self, world: World, path: str, work: Path):
        work.mkdir(parents=True)
        base, rtsp = world.server.url, f"rtsp://127.0.0.1:{world.server.rtsp}/{path}"
        names = world.options.players.split(",")
        browsers = [name for name in names if name not in FFMPEG]
        self.ffmpeg = {
            name: Ffmpeg(rtsp if name == "rtsp" else f"{base}/{path}/index.m3u8", FFMPEG[name], work / f"{name}.log")
            for name in names if name in FFMPEG
        }
        command = ["node", str(TOP / "tests/players/faults.mjs"), base, path, ",".join(browsers)]
        self.chromium = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) if browsers else None
        if self.chromium and self.chromium.stdout.readline().strip() != "ready":
            raise RuntimeError("Chromium does not play")

    def ended(self) -> dict:
        """Times of pictures, and notes, of each viewer."""
        found = {}
        if self.chromium:
            told = json.loads(self.chromium.communicate("")[0])
            found = {name: ([at / 1000 for at in one["shown"]], [one["size"], *one["faults"]]) for name, one in told.items()}
        for name, viewer in self.ffmpeg.items():
            viewer.stop()
            found[name] = (viewer.shown, [f"{viewer.starts - 1} new starts"] if viewer.starts > 1 else [])
        return found


def past(world: World) -> dict:
    """Segments that the time shift lists: address by number."""
    text = live_exact.fetch(f"{world.server.url}/{world.path}/v1/index.m3u8?dvr").decode()
    found = re.findall(r"(?m)^\.\./(.+?/(\d+)\.m4s)$", text)
    return {int(number): f"{world.server.url}/{world.path}/{uri}" for uri, number in found}


def lost(world: World, before: dict) -> list:
    """Numbers of segments that are not served any more."""
    after = past(world)
    missing = []
    for number in before:
        try:
            live_exact.fetch(after[number])
        except (OSError, KeyError):
            missing.append(number)
    return missing


def row(fault: Fault, name: str, shown: list, notes: list, span: tuple) -> bool:
    """Prints what a viewer saw. `span`: when the fault began, when it was over, and the end."""
    began, over, end = span
    times = [began - 1, *sorted(at for at in shown if began - 1 <= at <= end), end]
    longest = max(b - a for a, b in zip(times, times[1:]))
    went_on = any(at > end - LAST for at in shown)
    back = next((at - over for at in sorted(shown) if at > over and at > began + 0.1), None)
    cells = [fault.name, NAMES[name], f"{longest:.1f} s" if went_on else "", f"{max(back, 0):.1f} s" if back and went_on else ""]
    cells += ["yes" if went_on else "NO", "; ".join(dict.fromkeys(notes))]
    print(f"| {' | '.join(cells)} |", flush=True)
    return went_on


def show(world: World, name: str) -> bool:
    fault, path = FAULTS[name], world.path
    if fault.is_published:
        path = "live/cam"
        world.publish(world.clip)
        time.sleep(3)
    viewers = Viewers(world, path, world.work / "viewers")
    try:
        time.sleep(world.options.warm)
        before = past(world) if name == "server" else {}
        began = time.time()
        fault.act(world)
        over = time.time()
        time.sleep(world.options.after)
        end = time.time()
    finally:
        found = viewers.ended()
    fine = all([row(fault, viewer, *found[viewer], (began, over, end)) for viewer in found])
    if before:
        missing = lost(world, before)
        fine &= set(missing) <= {max(before)}
        print(f"\nof {len(before)} segments of the time shift before the kill, {len(missing)} are lost: {missing}\n")
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--faults", default=",".join(FAULTS), help="(%(default)s)")
    parser.add_argument("--players", default="hls,hls-ts,dash,mse,rtsp,ffmpeg-hls", help=f"among {', '.join(NAMES)} (%(default)s)")
    parser.add_argument("--warm", type=float, default=8, help="seconds that viewers play before a fault (%(default)s)")
    parser.add_argument("--after", type=float, default=30, help="seconds that they are watched after it (%(default)s)")
    options = parser.parse_args()
    work = TARGET / "bench/live-faults/run"
    shutil.rmtree(work, ignore_errors=True)
    print("| fault | viewer | no new picture for | first picture after the cause was over | went on | width of the last picture; told |\n|---|---|---|---|---|---|")
    fine = True
    for name in options.faults.split(","):
        with contextlib.ExitStack() as stack:
            fine &= show(World(options, work / name, stack), name)
    print("\nAll viewers went on by themselves, and no more than the last segment of the past is lost." if fine else "\nFAILED: see above")
    sys.exit(not fine)


if __name__ == "__main__":
    main()
