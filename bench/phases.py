#!/usr/bin/env python3
"""A title in phases beside the title alone: how many streams the origin sends for 1 to 100 viewers that arrive at random.

The origin is a second server over HTTP. The edge keeps no slices on the disk, and so little memory that the title does not stay. So
each read of a viewer is a read of the origin, unless interval caching has its block. Viewers play by TCP, and to the end.

Streams are the bytes of the origin divided by those of the title, and by the number of titles' durations that were measured.
"""

import argparse
import json
import shutil
import subprocess
import time
from pathlib import Path

import rtsp_capacity
import servers
from compare import TARGET


def make(file: Path, seconds: int):
    """A title of `seconds` with the rate of V1024."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        rtsp_capacity.make("V1024", TARGET / "bench/rtsp-media")
        source = TARGET / "bench/rtsp-media/V1024.mp4"
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-stream_loop", "-1", "-i", source, "-t", str(seconds), "-c", "copy", file], check=True)


def trial(viewers: int, path: str, options, origin: str) -> dict:
    work = TARGET / f"bench/phases/{path}-{viewers}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    arguments = ["--workers", 1, "--cache-size", 0, "--memory", options.memory, "--slice", "64KiB", "--prefetch", "on-demand",
                 "--rtsp-window", "4s", "--rtsp-channels", f"movie=title.mp4 phases={options.phases}"]
    length = (TARGET / f"bench/phases-site/title.mp4").stat().st_size
    with servers.Edge(options.server, origin, work, *arguments) as server:
        server.get("/title.mp4/index.m3u8")
        before = server.metrics()
        seconds = 2 * options.seconds + 10
        report = work / "report.json"
        load = [options.server, "load", f"rtsp://127.0.0.1:{server.rtsp}/{path}", "--clients", viewers, "--arrivals", "poisson",
                "--ramp-up", f"{options.seconds}s", "--duration", f"{seconds}s", "--json", report]
        process = subprocess.Popen([str(part) for part in load], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process.wait(timeout=seconds + 60)
        after = server.metrics()
    gained = lambda name: after.get(f"millpond_{name}_total", 0) - before.get(f"millpond_{name}_total", 0)
    row = {
        "viewers": viewers, "path": path, "titles": gained("origin_bytes") / length, "frames": gained("rtp_frames"),
        "late": gained("rtp_late_frames"), "hits": gained("rtsp_interval_hits"), "misses": gained("rtsp_interval_misses"),
    }
    print(f"{viewers:8} {path:>10} {row['titles']:12.1f} {100 * row['late'] / max(1, row['frames']):8.2f} {row['hits']:10.0f}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--viewers", default="1,10,50,100", help="numbers tried (%(default)s)")
    parser.add_argument("--phases", type=int, default=4, help="(%(default)s)")
    parser.add_argument("--seconds", type=int, default=120, help="of the title, and in which viewers arrive (%(default)s)")
    parser.add_argument("--memory", default="8MiB", help="of the edge (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/phases.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    site = TARGET / "bench/phases-site"
    make(site / "title.mp4", options.seconds)
    work = TARGET / "bench/phases"
    work.mkdir(parents=True, exist_ok=True)
    print(f"{'viewers':>8} {'path':>10} {'titles read':>12} {'late %':>8} {'hits':>10}")
    rows = []
    with servers.nginx("origin", site, work) as origin:
        for viewers in map(int, options.viewers.split(",")):
            for path in ["title.mp4", "movie"]:
                rows.append(trial(viewers, path, options, f"http://127.0.0.1:{origin.port}/"))
                time.sleep(1)
    options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
