#!/usr/bin/env python3
"""What one live stream costs with many players of Low-Latency HLS: millpond beside MediaMTX, both before the same source.

The source is a channel of another millpond. `millpond load --live` is the client of both: each player reloads playlists with blocking and
fetches each part. A part is late where it arrives more than 100 ms behind the schedule of the earliest one of its player. Its age is the
time from its end, by the wall clock of its playlist, to its arrival. Servers take turns; medians are compared. MediaMTX is measured where `--mediamtx` names its program.

With `--minutes`, the checker of playlists and hls.js and Shaka in Chromium play for that time instead: no rule may be
broken, and no player may stall. Exits 1 where one is.

    cargo build --release -p millpond -p millpond-lab
    bench/live_llhls.py --mediamtx FOLDER/mediamtx
    bench/live_llhls.py --minutes 10
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import live_fanout
import servers
from compare import TARGET, TOP, conclude, ratio
from rtsp_capacity import CLIPS, Rtsp, make, process_seconds

MEDIAMTX = """
logLevel: warn
rtspAddress: 127.0.0.1:{rtsp}
rtspTransports: [tcp]
hls: yes
hlsAddress: 127.0.0.1:{port}
hlsVariant: lowLatency
hlsSegmentDuration: 2s
hlsPartDuration: 334ms
hlsSegmentCount: 30
{off}
paths:
  "~^cams/(.+)$":
    source: rtsp://127.0.0.1:{source}/$G1
    sourceOnDemand: yes
    rtspTransport: tcp
"""
OFF = "\n".join(f"{name}: no" for name in ("rtmp", "webrtc", "srt", "moq"))


def edge(name: str, upstream: Rtsp, options, work: Path) -> Rtsp:
    """A server under test; its port is the one of HTTP."""
    port, rtsp = servers.free_port(), servers.free_port()
    if name == "millpond":
        command = [options.bin, "serve", f"cams=rtsp://127.0.0.1:{upstream.port}/", "--http", f"127.0.0.1:{port}", "--admin", "127.0.0.1:0"]
        command += ["--rtsp", f"127.0.0.1:{rtsp}", "--access-log=false", "--cache", work / "cache", "--source-transport", "tcp"]
    else:
        config = work / "mediamtx-hls.yml"
        config.write_text(MEDIAMTX.format(port=port, rtsp=rtsp, off=OFF, source=upstream.port))
        command = [options.mediamtx, config]
    return Rtsp(name, [str(word) for word in command], port, work / f"{name}.log")


def players(options, url: str, count: int, seconds: float, ramp: float) -> subprocess.Popen:
    command = [options.generator or options.bin, "load", url, "--live", "--json", "-", "--clients", count, "--threads", options.threads]
    command += ["--ramp-up", f"{round(ramp * 1000)}ms", "--duration", f"{round(seconds * 1000)}ms"]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def trial(name: str, options, work: Path) -> dict:
    ramp = options.players / options.arrivals
    steady = ramp + options.settle
    total = steady + options.seconds
    with live_fanout.source(options, work) as upstream, edge(name, upstream, options, work) as server:
        url = f"http://127.0.0.1:{server.port}/cams/{options.clip}.mp4/index.m3u8"
        warm(options, url)
        began = time.monotonic()
        process = players(options, url, options.players, total, ramp)
        try:
            time.sleep(max(0.0, began + steady - time.monotonic()))
            before = server.cpu_seconds(), process_seconds(process.pid), time.monotonic()
            time.sleep(max(0.0, began + total - 1 - time.monotonic()))
            memory, sessions = server.memory(), live_fanout.playing(upstream)
            after = server.cpu_seconds(), process_seconds(process.pid), time.monotonic()
            report = json.loads(process.communicate(timeout=90)[0])
        finally:
            process.kill()
            process.wait()
    cpu, generator, wall = (b - a for a, b in zip(before, after))
    kinds = {kind["kind"]: kind["requests"] for kind in report["kinds"]}
    return {
        "server": name, "late": report["late"]["percent"], "behind": report["late"]["delay"]["p99"], "age": report["late"]["age"]["p50"], "failed": report["viewers"]["failed"],
        "stalls": report["stalls"]["count"], "cpu": 100 * cpu / wall, "generator": 100 * generator / wall, "memory": memory / 1e6,
        "parts": kinds.get("part", 0) / total, "requests": report["requests-per-second"], "sessions": sessions,
        "startup": report["startup"]["p50"], "errors": [[one["kind"], one["count"], one["examples"][:1]] for one in report["errors"]],
    }


def warm(options, url: str):
    """One player first, so that the playlist is a long one."""
    process = players(options, url, 1, 8, 0)
    report = json.loads(process.communicate(timeout=60)[0])
    if not any(kind["kind"] == "part" for kind in report["kinds"]):
        raise RuntimeError(f"{url}: no parts: {report['errors']}")


def run(options) -> dict:
    make(options.clip, options.media)
    work = TARGET / "bench/live-llhls"
    work.mkdir(parents=True, exist_ok=True)
    if options.minutes:
        return rules(options, work)
    names = ["millpond"] + (["mediamtx"] if options.mediamtx else [])
    results = []
    for _ in range(options.rounds):
        for name in names:
            one = trial(name, options, work)
            results.append(one)
            print(
                f"{name:9} {options.players} players: {one['late']:.2f} % late, p99 {one['behind']:.0f} ms behind, {one['age']:.0f} ms old, {one['stalls']} stalls, "
                f"{one['failed']} failed, CPU {one['cpu']:.1f} %, {one['memory']:.0f} MB, {one['requests']:.0f} requests a second, "
                f"generator {one['generator']:.0f} %, {one['sessions']} upstream  {one['errors'][:2] or ''}",
                flush=True,
            )
    print("\n| server | players | late | p99 behind | age | stalls | CPU a player | memory | requests a second | upstream sessions |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    costs = {}
    for name in names:
        of = lambda key: statistics.median(one[key] for one in results if one["server"] == name)  # noqa: E731
        costs[name] = of("cpu") / options.players
        print(f"| {name} | {options.players} | {of('late'):.2f} % | {of('behind'):.0f} ms | {of('age'):.0f} ms | {of('stalls'):.0f} | {costs[name]:.4f} % | "
              f"{of('memory'):.0f} MB | {of('requests'):.0f} | {of('sessions'):.0f} |")
    if len(costs) == 2:
        print(f"CPU a player: MediaMTX takes {ratio(costs['mediamtx'], costs['millpond']):.1f} times as much")
    return {"results": results}


def rules(options, work: Path) -> dict:
    """Plays by the rules for some minutes."""
    seconds = options.minutes * 60
    with live_fanout.source(options, work) as upstream, edge("millpond", upstream, options, work) as server:
        path = f"cams/{options.clip}.mp4"
        warm(options, f"{server.url}/{path}/index.m3u8")
        checker = players(options, f"{server.url}/{path}/index.m3u8", 1, seconds + 20, 0)
        command = ["node", TOP / "tests/players/live.mjs", server.url, path, seconds, options.engines, "together"]
        played = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
        report = json.loads(checker.communicate(timeout=90)[0])
    print(played.stdout, end="")
    kinds = {kind["kind"]: kind["requests"] for kind in report["kinds"]}
    print(f"checker: {kinds.get('reload', 0)} reloads, {kinds.get('part', 0)} parts, {report['stalls']['count']} stalls, "
          f"{report['late']['percent']:.2f} % late, {sum(one['count'] for one in report['errors'])} faults")
    for one in report["errors"]:
        print(f"{one['count']} x {one['kind']}: {one['examples']}")
    if played.returncode or report["errors"] or not kinds.get("reload"):
        raise RuntimeError("a player stalled, or a rule was broken")
    return {"checker": report}


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--generator", type=Path, help="another binary of millpond that generates the load")
    parser.add_argument("--mediamtx", type=Path, help="MediaMTX's binary")
    parser.add_argument("--players", type=int, default=1000, help="(%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of the load generator (%(default)s)")
    parser.add_argument("--minutes", type=float, help="checks rules and players for this time, instead of measuring")
    parser.add_argument("--engines", default="hls,shaka-hls", help="players in Chromium (%(default)s)")
    parser.add_argument("--clip", choices=list(CLIPS), default="V1024", help="(%(default)s)")
    parser.add_argument("--media", type=Path, default=TARGET / "bench/rtsp-media", help="where clips are kept (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="steady part of each trial (%(default)s)")
    parser.add_argument("--settle", type=float, default=5, help="seconds between arrivals and steady part (%(default)s)")
    parser.add_argument("--arrivals", type=float, default=100, help="players that arrive in a second (%(default)s)")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for the run (%(default)s)")
    default = TARGET / "bench/live_llhls.json"
    parser.add_argument("--json", type=Path, nargs="?", const=default, help=f"write all figures too ({default})")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(conclude(parse(sys.argv[1:]), run))
