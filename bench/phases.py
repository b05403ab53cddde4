#!/usr/bin/env python3
"""A title in phases beside the title alone: how many streams the origin sends for 1 to 100 viewers that arrive at random.

The origin is a second server over HTTP. The edge keeps no slices on the disk, and too little memory for the whole title. A read of a viewer
is a read of the origin, unless memory has the slice, or interval caching has the block. Viewers play by TCP, and to the end.

Titles read are the bytes of the origin divided by those of the title. All viewers come within one duration of the title.
"""

import argparse
import json
import shutil
import subprocess
import threading
from pathlib import Path

import media
import servers
from compare import TARGET


def make(file: Path, seconds: int, kbits: int):
    """A title with key frames two seconds apart."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    media.ffmpeg(
        "-f", "lavfi", "-i", "testsrc2=s=640x480:r=25,noise=alls=40:allf=t", "-t", seconds, "-an", "-c:v", "libx264", "-preset", "ultrafast",
        "-pix_fmt", "yuv420p", "-bf", 0, "-g", 50, "-sc_threshold", 0, "-b:v", f"{kbits}k", "-minrate", f"{kbits}k", "-maxrate", f"{kbits}k",
        "-bufsize", f"{kbits}k", "-movflags", "+faststart", "-f", "mp4", file,
    )


def trial(viewers: int, path: str, options, origin: str, rows: list):
    work = TARGET / f"bench/phases/{path}-{viewers}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    arguments = ["--workers", 1, "--cache-size", 0, "--memory", options.memory, "--slice", "64KiB", "--prefetch", "on-demand",
                 "--rtsp-window", "4s", "--rtsp-channels", f"movie=title.mp4 phases={options.phases}"]
    length = (options.site / "title.mp4").stat().st_size
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
    print(f"{viewers:8} {path:>10} {row['titles']:12.1f} {100 * row['late'] / max(1, row['frames']):8.2f} {row['hits']:10.0f} {row['misses']:8.0f}", flush=True)
    rows.append(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--viewers", default="1,10,30,100", help="numbers tried (%(default)s)")
    parser.add_argument("--phases", type=int, default=4, help="(%(default)s)")
    parser.add_argument("--seconds", type=int, default=90, help="of the title, and in which viewers arrive (%(default)s)")
    parser.add_argument("--kbits", type=int, default=4000, help="kbit/s of the title (%(default)s)")
    parser.add_argument("--memory", default="32MiB", help="of the edge (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/phases.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    site = options.site = TARGET / f"bench/phases-site/{options.seconds}-{options.kbits}"
    make(site / "title.mp4", options.seconds, options.kbits)
    work = TARGET / "bench/phases"
    work.mkdir(parents=True, exist_ok=True)
    print(f"{'viewers':>8} {'path':>10} {'titles read':>12} {'late %':>8} {'hits':>10} {'misses':>8}")
    rows = []
    with servers.nginx("origin", site, work) as origin:
        for viewers in map(int, options.viewers.split(",")):
            # At the same time, with a server each.
            arguments = [(viewers, path, options, f"http://127.0.0.1:{origin.port}/", rows) for path in ["title.mp4", "movie"]]
            threads = [threading.Thread(target=trial, args=of) for of in arguments]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
