#!/usr/bin/env python3
"""What one live stream costs with many WebRTC viewers (WHEP): millpond beside MediaMTX, in turn, in the same run.

ffmpeg pushes a stream of 1 Mbit/s, 720p at 25 pictures a second without B-frames and Opus, to each server by RTSP. `millpond-lab load whep`
is the viewers of both, each with a port of its own; a packet is late where it comes more than 100 ms behind the fastest one of its track.
Medians of the rounds are compared. MediaMTX is measured where `--mediamtx` names its program. Exits 1 where a viewer fails, where late
packets of millpond exceed 1 %, or where its CPU a viewer is above a third of MediaMTX's.

    cargo build --release -p millpond -p millpond-lab
    bench/webrtc.py --mediamtx FOLDER/mediamtx
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import measure
import servers
from compare import TARGET, conclude, ratio
from rtsp_capacity import Rtsp, process_seconds

MEDIAMTX = """
logLevel: warn
rtspAddress: 127.0.0.1:{rtsp}
rtspTransports: [tcp]
webrtcAddress: 127.0.0.1:{http}
webrtcEncryption: no
webrtcLocalUDPAddress: 127.0.0.1:{udp}
webrtcIPsFromInterfaces: no
webrtcAdditionalHosts: [127.0.0.1]
rtmp: no
hls: no
srt: no
moq: no
paths:
  all_others:
"""
PATH = "live/cam"
CLIP = (
    "-f lavfi -i testsrc2=size=1280x720:rate=25 -f lavfi -i sine=frequency=440:sample_rate=48000 -c:v libx264 -preset veryfast -profile:v baseline "
    "-pix_fmt yuv420p -b:v 1M -minrate 1M -maxrate 1M -bufsize 500k -g 50 -bf 0 -x264-params nal-hrd=cbr -c:a libopus -b:a 64k"
)
LATE = 1.0
SHARE = 1 / 3


def clip(options) -> Path:
    """The stream, encoded once. It is longer than a trial."""
    seconds = round(options.viewers / options.arrivals + options.settle + options.seconds) + 60
    file = options.media / f"webrtc-{seconds}.mkv"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part.mkv")
        command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y", *CLIP.split(), "-t", str(seconds), str(part)]
        subprocess.run(command, check=True)
        part.rename(file)
    return file


@contextlib.contextmanager
def publisher(server: Rtsp, file: Path, log: Path):
    """Pushes the stream, and ends with an error where the server stopped it."""
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-re", "-i", file, "-c", "copy", "-f", "rtsp", "-rtsp_transport", "tcp"]
    command.append(f"rtsp://127.0.0.1:{server.port}/{PATH}")
    with log.open("wb") as output:
        process = subprocess.Popen([str(word) for word in command], stdout=output, stderr=output)
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError(f"the publisher of {server.name} ended: {log.read_text(errors='replace')[-1000:]}")
    finally:
        process.kill()
        process.wait()


def start(name: str, options, work: Path) -> Rtsp:
    """A server under test, with the address of its WHEP endpoint."""
    rtsp, http, udp = servers.free_port(), servers.free_port(), servers.free_port()
    if name == "millpond":
        command = [options.bin, "serve", "live=publish:", "--http", f"127.0.0.1:{http}", "--admin", "127.0.0.1:0", "--rtsp", f"127.0.0.1:{rtsp}"]
        command += ["--webrtc", f"127.0.0.1:{udp}", "--access-log=false", "--cache", work / "cache"]
    else:
        config = work / "mediamtx.yml"
        config.write_text(MEDIAMTX.format(rtsp=rtsp, http=http, udp=udp))
        command = [options.mediamtx, config]
    server = Rtsp(name, [str(word) for word in command], rtsp, work / f"{name}.log")
    server.whep = f"http://127.0.0.1:{http}/{PATH}/whep"
    return server


def load(server: Rtsp, options, viewers: int, seconds: float) -> list:
    command = [options.lab, "load", "whep", server.whep, "--json", "-", "--viewers", viewers, "--rate", options.arrivals]
    return [str(word) for word in command] + ["--duration", f"{round(seconds * 1000)}ms"]


def until_it_plays(server: Rtsp, options):
    """Until a viewer gets media."""
    deadline = time.monotonic() + 20
    while True:
        ran = subprocess.run(load(server, options, 1, 2), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if ran.returncode == 0 and json.loads(ran.stdout)["sessions"]["started"]:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{server.name} plays nothing: {ran.stdout[-2000:]}{ran.stderr[-500:]}\n{server.tail()}")


def trial(name: str, file: Path, options) -> dict:
    steady = options.viewers / options.arrivals + options.settle
    total = steady + options.seconds
    work = TARGET / "bench/webrtc"
    work.mkdir(parents=True, exist_ok=True)
    with start(name, options, work) as server, publisher(server, file, work / "ffmpeg.log"):
        until_it_plays(server, options)
        empty = server.memory()
        began = time.monotonic()
        process = subprocess.Popen(load(server, options, options.viewers, total), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            time.sleep(max(0.0, began + steady - time.monotonic()))
            before = server.cpu_seconds(), measure.machine_seconds(), process_seconds(process.pid), time.monotonic()
            time.sleep(max(0.0, began + total - 1 - time.monotonic()))
            memory = server.memory()
            after = server.cpu_seconds(), measure.machine_seconds(), process_seconds(process.pid), time.monotonic()
            report = json.loads(process.communicate(timeout=60)[0])
        finally:
            process.kill()
            process.wait()
    cpu, machine, generator, wall = (b - a for a, b in zip(before, after))
    window = [step for step in report["timeline"] if steady < step["elapsed"] <= total - 0.5]
    packets = sum(step["packets-per-second"] for step in window) or 1
    active = statistics.mean(step["active"] for step in window)
    steps = {step["step"]: step["latency"]["p50"] for step in report["steps"]}
    return {
        "server": name,
        "active": active,
        "failed": report["sessions"]["failed"] + report["sessions"]["cut-off"],
        "packets": packets / len(window),
        "megabits": statistics.mean(step["megabits-per-second"] for step in window),
        "late": sum(step["packets-per-second"] * step["late-percent"] for step in window) / packets,
        "lost": 100 * sum(step["lost"] for step in window) / packets,
        "cpu": 100 * cpu / wall,
        "machine": 100 * machine / wall,
        "generator": 100 * generator / wall,
        "memory": memory / 1e6,
        "memory-a-viewer": (memory - empty) / 1e3 / max(1, active),
        "startup": [report["startup"][point] for point in ("p50", "p99")],
        "steps": steps,
        "overflows": report["generator"]["overflows"],
        "why": "; ".join(f"{failure['count']} x {failure['kind']}: {failure['examples'][:1]}" for failure in report["failures"][:2]),
    }


def run(options, problems: list) -> dict:
    file = clip(options)
    names = ["millpond"] + (["mediamtx"] if options.mediamtx else [])
    results = []
    for turn in range(options.rounds):
        # Neither is always the first.
        for name in names[:: 1 if turn % 2 == 0 else -1]:
            one = trial(name, file, options)
            results.append(one)
            print(
                f"{name:9} {one['active']:.0f} of {options.viewers} viewers active, {one['failed']} failed, {one['packets']:.0f} packets/s, {one['megabits']:.0f} Mbit/s, "
                f"{one['late']:.2f} % late, {one['lost']:.3f} % lost, CPU {one['cpu']:.1f} % (generator {one['generator']:.0f} %, machine {one['machine']:.0f} %), "
                f"{one['memory']:.0f} MB, first packet p50 {one['startup'][0]:.1f} p99 {one['startup'][1]:.1f} ms  {one['why']}",
                flush=True,
            )
    print("\n| server | viewers | packets/s | late | lost | CPU a viewer | memory | memory a viewer | first packet, p50 and p99 |")
    print("|---|---|---|---|---|---|---|---|---|")
    costs = {}
    for name in names:
        own = [one for one in results if one["server"] == name]
        of = lambda key: statistics.median(one[key] for one in own)  # noqa: E731
        costs[name] = statistics.median(one["cpu"] / max(1, one["active"]) for one in own)
        p50, p99 = (statistics.median(one["startup"][place] for one in own) for place in (0, 1))
        print(f"| {name} | {of('active'):.0f} | {of('packets'):.0f} | {of('late'):.2f} % | {of('lost'):.3f} % | {costs[name]:.4f} % | "
              f"{of('memory'):.0f} MB | {of('memory-a-viewer'):.0f} kB | {p50:.1f}, {p99:.1f} ms |")
        failed = sum(one["failed"] for one in own)
        if failed:
            problems.append(f"{failed} viewers of {name} failed")
        if name == "millpond" and of("late") > LATE:
            problems.append(f"{of('late'):.2f} % of millpond's packets are late, expected at most {LATE:g} %")
    if len(costs) == 2:
        print(f"\nCPU a viewer: MediaMTX takes {ratio(costs['mediamtx'], costs['millpond']):.1f} times as much")
        if costs["millpond"] > SHARE * costs["mediamtx"]:
            problems.append("millpond's CPU a viewer is above a third of MediaMTX's")
    return {"results": results, "problems": problems}


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--lab", type=Path, help="millpond-lab's binary (the one beside millpond's)")
    parser.add_argument("--mediamtx", type=Path, help="MediaMTX's binary")
    parser.add_argument("--viewers", type=int, default=500, help="(%(default)s)")
    parser.add_argument("--media", type=Path, default=TARGET / "bench/media", help="where the stream is kept (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=15, help="steady part of each trial (%(default)s)")
    parser.add_argument("--settle", type=float, default=5, help="seconds between arrivals and steady part (%(default)s)")
    parser.add_argument("--arrivals", type=float, default=50, help="viewers that arrive in a second (%(default)s)")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for the run (%(default)s)")
    default = TARGET / "bench/webrtc.json"
    parser.add_argument("--json", type=Path, nargs="?", const=default, help=f"write all figures too ({default})")
    options = parser.parse_args(arguments)
    options.lab = options.lab or options.bin.with_name("millpond-lab")
    return options


def main() -> int:
    problems = []
    status = conclude(parse(sys.argv[1:]), lambda options: run(options, problems))
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    return status or bool(problems)


if __name__ == "__main__":
    sys.exit(main())
