#!/usr/bin/env python3
"""Delay from the making of a picture to its display in Chromium, for each way of playing a live stream.

A publisher burns the time into each picture, in cells that survive encoding, and pushes by RTSP. Each player in turn plays the stream;
a canvas reads the cells of each picture as it is presented. The delay holds the encoder's time and the player's. Medians and 95th
percentiles of all pictures are printed. Exits 1 where a 95th percentile exceeds its bound, or a player fails.

With `--loss` or `--delay-ms` the viewer is behind a bad network (millpond-link), and only WebRTC plays. That needs root.

With `--failover` the stream has two publishers, and the one that plays is killed in the middle: for each player in turn, and for ffmpeg by
RTSP. The longest time without another picture is printed. It must be at most a group of pictures and a second.

    cargo build --release -p millpond -p millpond-link
    npm ci --prefix tests/players
    bench/live_delay.py
    bench/live_delay.py --loss 1 --delay-ms 50
    bench/live_delay.py --failover --keys 1
"""

import argparse
import contextlib
import json
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import live_clock
import netns
import servers
from compare import TARGET, TOP

# Bounds in milliseconds. Shaka must play; its delay is its own choice.
BOUNDS = {"webrtc": 250, "mse": 700, "hls": 2000, "dash": 2500, "shaka": None, "shaka-hls": None}
# Over a bad network, and of the first picture on loopback.
BAD_NETWORK, FIRST_PICTURE = 500, 300
NAMES = {"webrtc": "WebRTC, page", "mse": "stream.mp4, page", "hls": "LL-HLS, hls.js", "dash": "DASH, dash.js", "shaka": "DASH, Shaka", "shaka-hls": "LL-HLS, Shaka"}


def verdict(name: str, found: dict, delays: list, is_bad: bool) -> str:
    bound = BAD_NETWORK if is_bad else BOUNDS[name]
    if "problem" in found or found["faults"]:
        return "FAILED " + "; ".join([found.get("problem", ""), *found.get("faults", [])]).strip("; ")
    if not delays or found["unreadable"] > len(delays) / 10:
        return f"FAILED {len(delays)} pictures read, {found['unreadable']} unreadable"
    if found["played"] < 0.9 * found["took"]:
        return f"FAILED {found['played']:.1f} s played in {found['took']:.1f} s"
    if bound and percentile(delays, 95) > bound:
        return f"FAILED above {bound} ms"
    if name == "webrtc" and not is_bad and found["startup"] > FIRST_PICTURE:
        return f"FAILED first picture above {FIRST_PICTURE} ms"
    return "ok"


def percentile(values: list, of: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * of // 100)]


def table(found: dict, is_bad: bool) -> bool:
    print("| player | median | p95 | greatest | pictures | stalls | first picture | |")
    print("|---|---|---|---|---|---|---|---|")
    fine = True
    for name, one in found.items():
        delays = one.get("delays", [])
        says = verdict(name, one, delays, is_bad)
        fine &= says == "ok"
        figures = [statistics.median(delays), percentile(delays, 95), max(delays)] if delays else []
        cells = [f"{figure / 1000:.2f} s" for figure in figures] or ["", "", ""]
        cells += [str(len(delays)), str(len(one.get("stalls", []))), f"{one.get('startup', 0)} ms", says]
        print(f"| {NAMES[name]} | " + " | ".join(cells) + " |")
    return fine


@contextlib.contextmanager
def watched(server):
    """Has somebody reload a playlist, so that segments are made all the time."""
    ends = threading.Event()

    def reload():
        while not ends.wait(2):
            server.get("/live/clock/v1/index.m3u8")

    thread = threading.Thread(target=reload, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def play(options, within, url: str) -> str:
    """Has Chromium play, and returns what it saw. `within` runs a command to its end."""
    script = TOP / "tests/players/delay.mjs"
    return within(*(str(word) for word in ("node", script, url, "live/clock", options.seconds, options.players)))


# Time after the start of a player at which the publisher is killed, in seconds: players have begun, and steer no more.
KILL = 20


def over_a_failover(options, work: Path) -> dict:
    """The longest time in seconds without another picture, by player, while the publisher that plays is killed. A text where one failed."""
    found = {}
    for name in [*options.players.split(","), "rtsp"]:
        folder = work / name
        arguments = ["live=publish:", folder, "--webrtc", f"127.0.0.1:{servers.free_port()}", "--failover", "live/clock=live/a live/b"]
        with servers.Edge(options.bin, *arguments) as server, contextlib.ExitStack() as stack:
            publishers = []
            for input in ("a", "b"):
                publisher = live_clock.Publisher(f"rtsp://127.0.0.1:{server.rtsp}/live/{input}", folder / f"{input}.log", options.keys)
                publishers.append(stack.enter_context(publisher))
            time.sleep(4 + 4 * options.keys)
            killing = threading.Timer(KILL, publishers[0].process.kill)
            killing.start()
            try:
                with watched(server):
                    found[name] = standstill_by_rtsp(options, server) if name == "rtsp" else standstill_of(options, name, server)
            finally:
                killing.cancel()
            if publishers[1].process.poll() is not None:
                found[name] = "the backup ended"
    return found


def standstill_of(options, name: str, server):
    one = json.loads(run_here("node", str(TOP / "tests/players/delay.mjs"), server.url, "live/clock", str(options.seconds), name))[name]
    if "problem" in one or not one.get("delays"):
        return one.get("problem", "no picture was read")
    return one["standstill"] / 1000


def standstill_by_rtsp(options, server):
    """ffmpeg tells each picture when it has decoded it."""
    command = ["ffmpeg", "-v", "error", "-nostdin", "-rtsp_transport", "tcp", "-i", f"rtsp://127.0.0.1:{server.rtsp}/live/clock"]
    command += ["-map", "0:v", "-fps_mode", "passthrough", "-flush_packets", "1", "-f", "framecrc", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as player:
        ends = threading.Timer(KILL + options.seconds / 2, player.kill)
        ends.start()
        longest, before = 0.0, None
        for line in player.stdout:
            if not line.startswith("#"):
                now = time.monotonic()
                longest, before = max(longest, now - (before or now)), now
        is_early = ends.is_alive()
        ends.cancel()
    return "ffmpeg ended" if is_early or before is None else longest


def table_of_failovers(found: dict, bound: float) -> bool:
    print("| player | longest time without another picture | |")
    print("|---|---|---|")
    fine = True
    for name, one in found.items():
        says = f"FAILED {one}" if isinstance(one, str) else "ok" if one <= bound else f"FAILED above {bound:g} s"
        fine &= says == "ok"
        print(f"| {NAMES.get(name, 'RTSP by TCP, ffmpeg')} | {'' if isinstance(one, str) else f'{one:.2f} s'} | {says} |")
    return fine


def run_here(*command) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def on_loopback(options, work: Path) -> tuple:
    """What the players saw, and the publisher."""
    with servers.Edge(options.bin, "live=publish:", work, "--webrtc", f"127.0.0.1:{servers.free_port()}") as server:
        with live_clock.Publisher(f"rtsp://127.0.0.1:{server.rtsp}/live/clock", work / "ffmpeg.log", options.keys) as publisher:
            time.sleep(2)
            with watched(server):
                # Shaka 5.2 fails where a playlist has fewer than three complete segments: it then asks for the unfinished one by no address.
                time.sleep(4 * options.keys)
                told = play(options, run_here, server.url)
            publisher.ended = publisher.process.poll()
    return told, publisher


def behind_a_bad_network(options, work: Path) -> tuple:
    """The same. The publisher is at the server's side of the network."""
    loss, delay = f"loss={options.loss:g}%", f"delay={options.delay_ms:g}ms"
    with netns.Pair(both=delay, ab=f"{delay},{loss}", seed=options.seed) as pair:
        here = pair.a.address
        pair.a.start(
            options.bin, "serve", "live=publish:", "--http", f"{here}:8080", "--admin", "127.0.0.1:8081", "--rtsp", "127.0.0.1:8554",
            "--webrtc", f"{here}:8189", "--cache", work / "cache", "--access-log=false", log=work / "output.log",
        )
        pair.a.wait_for("127.0.0.1", 8554)
        within = tuple(pair.a.command())
        with live_clock.Publisher("rtsp://127.0.0.1:8554/live/clock", work / "ffmpeg.log", options.keys, within) as publisher:
            time.sleep(2 + options.keys)
            told = play(options, lambda *command: pair.b.run(*command).stdout, f"http://{here}:8080")
            publisher.ended = publisher.process.poll()
    print(f"of {pair.report['ab']['arrived']} packets to the viewer {pair.report['ab']['lost']} were lost\n")
    return told, publisher


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--seconds", type=float, default=30, help="measured for each player (%(default)s)")
    parser.add_argument("--players", help=f"({','.join(BOUNDS)}; over a bad network webrtc)")
    parser.add_argument("--keys", type=float, default=2, help="seconds between key frames (%(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures too")
    parser.add_argument("--loss", type=float, default=0, help="percent of packets to the viewer that are lost (%(default)s)")
    parser.add_argument("--delay-ms", type=float, default=0, help="delay of each way between server and viewer (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of losses (%(default)s)")
    parser.add_argument("--failover", action="store_true", help="kill the publisher that plays, and print the longest standstill")
    options = parser.parse_args()
    is_bad = options.loss > 0 or options.delay_ms > 0
    options.players = options.players or ("webrtc" if is_bad else ",".join(BOUNDS))
    work = TARGET / "bench/live-delay"
    shutil.rmtree(work, ignore_errors=True)
    if options.failover:
        sys.exit(not table_of_failovers(over_a_failover(options, work), options.keys + 1))
    told, publisher = (behind_a_bad_network if is_bad else on_loopback)(options, work)
    if publisher.ended is not None:
        print(f"the publisher ended: {(work / 'ffmpeg.log').read_text()[-1000:]}", file=sys.stderr)
    found = json.loads(told)
    fine = table(found, is_bad) and publisher.ended is None
    print(f"\nthe publisher was at most {publisher.late * 1000:.0f} ms late")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(not fine)


if __name__ == "__main__":
    main()
