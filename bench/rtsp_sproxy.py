#!/usr/bin/env python3
"""What the SProxy paper measured of RTSP viewers: startup, jitter and late packets by concurrency, slice size and prefetch mode.

Needs root. One of the three varies at a time, the others are those of a base setting. Each row has a fresh server with an empty
cache: 100 titles of 0.3 Mbit/s, chosen by Zipf's law, viewers that arrive by a Poisson process and stay. The origin is near (nginx
on the loopback), or far: in a network namespace, behind a token bucket and a long way (far.c).

Startup is from DESCRIBE to the first packet; jitter that of RFC 3550 A.8, of each track at its end; late is a packet that comes more
than 100 ms after its schedule. Prints tables in Markdown.
"""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import media
import rtsp_capacity
import servers
from compare import TARGET, conclude
from thin_link import Link

TITLES = 100
WORK = TARGET / "bench/rtsp-sproxy"


class Setting(NamedTuple):
    streams: int
    slice: str
    prefetch: str


def trial(setting: Setting, origin: str, options) -> dict:
    shutil.rmtree(WORK / "server", ignore_errors=True)
    arguments = ["--slice", setting.slice, "--prefetch", setting.prefetch]
    with servers.Edge(options.bin, origin, WORK / "server", *arguments) as server:
        load = [
            options.bin, "load", f"rtsp://127.0.0.1:{server.rtsp}/{{1..{TITLES}}}.mp4", "--zipf", options.zipf, "--clients", setting.streams,
            "--arrivals", "poisson", "--ramp-up", f"{options.ramp}s", "--duration", f"{options.seconds}s", "--json", "-",
        ]
        done = subprocess.run([str(part) for part in load], capture_output=True, text=True, timeout=60 + 2 * options.seconds)
        if not done.stdout:
            raise RuntimeError(f"load gave no report: {done.stderr}")
        return {"report": json.loads(done.stdout), "place": server.place()}


def row(value, origin: str, figures: dict) -> str:
    report, place = figures["report"], figures["place"]
    startup, heard, sessions = report["startup"], report["media"], report["sessions"]
    jitter = heard["jitter"]
    return (
        f"| {value} | {origin} | {startup['p50']:.1f} | {startup['p99']:.1f} | {jitter['p50']:.2f} | {jitter['p95']:.2f} | "
        f"{jitter['p99']:.2f} | {heard['late-percent']:.2f} | {heard['lost']} | {sessions['failed']} | {place['received-bytes'] / 1e6:.0f} |"
    )


def run(options) -> dict:
    rtsp_capacity.make("V300", TARGET / "bench/rtsp-media")
    site = TARGET / "bench/rtsp-sproxy-site"
    media.titles(TARGET / "bench/rtsp-media/V300.mp4", site, TITLES)
    WORK.mkdir(parents=True, exist_ok=True)
    base = Setting(options.reference, "512KiB", "active")
    varied = {
        "streams": [int(number) for number in options.streams.split(",")],
        "slice": options.slices.split(","),
        "prefetch": options.modes.split(","),
    }
    results = {}
    with contextlib.ExitStack() as stack:
        origins = {}
        if "near" in options.origins:
            origins["near"] = stack.enter_context(servers.nginx("origin", site, WORK / "nginx")).url
        if "far" in options.origins:
            link = Link(options.base, options.mbps * 1e6 * 1.05, site, WORK, options.round_trip)
            stack.callback(link.close)
            origins["far"] = link.url
        for name, values in varied.items():
            print(f"\n| {name} | origin | startup p50, ms | p99 | jitter p50, ms | p95 | p99 | late, % | lost | failed | from the origin, MB |")
            print("|" + "---|" * 11, flush=True)
            for value in values:
                setting = base._replace(**{name: value})
                for origin, url in origins.items():
                    if (origin, setting) not in results:
                        results[origin, setting] = trial(setting, url, options)
                    print(row(value, origin, results[origin, setting]), flush=True)
    return {"results": [{"origin": origin, **setting._asdict(), **figures} for (origin, setting), figures in results.items()]}


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--streams", default="1,10,50,100,200,500", help="numbers of streams (%(default)s)")
    parser.add_argument("--reference", type=int, default=100, help="streams at which slices and modes are compared (%(default)s)")
    parser.add_argument("--slices", default="100KiB,512KiB,1MiB", help="sizes of slices (%(default)s)")
    parser.add_argument("--modes", default="on-demand,window,half,active,full", help="prefetch modes (%(default)s)")
    parser.add_argument("--origins", default="near,far", help="(%(default)s)")
    parser.add_argument("--mbps", type=float, default=200, help="of the far origin's link, payload (%(default)s)")
    parser.add_argument("--round-trip", type=float, default=50, help="of that link, in milliseconds (%(default)s)")
    parser.add_argument("--zipf", type=float, default=1.0, help="how uneven titles are chosen (%(default)s)")
    parser.add_argument("--ramp", type=float, default=8, help="seconds in which streams arrive (%(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="of each row, arrivals included (%(default)s)")
    parser.add_argument("--base", type=int, default=200, help="number of the namespace (%(default)s)")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for the run (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/rtsp_sproxy.json", help="all figures (%(default)s)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(conclude(parse(sys.argv[1:]), run))
