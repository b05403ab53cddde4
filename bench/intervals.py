#!/usr/bin/env python3
"""Interval caching on an origin link that is too thin for all streams: how many it carries without missed deadlines.

Needs root. As Srinilta and Choudhary measured it: 100 objects, requests that arrive by a Poisson process and choose by Zipf's law,
with low and with high skew; the origin is behind a token bucket (`tc tbf`) in a network namespace, and no slices are kept on the disk. Each number of streams is tried with next
to no memory, as without a cache; with memory in which slices are kept as anybody's policy keeps them; and with the same memory and
interval caching. Each trial has a link and a server of its own; those of a number run at the same time.

Missed is a frame that goes out more than 100 ms late. Carried means: fewer than 1 % are missed.
"""

import argparse
import json
import re
import shutil
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import rtsp_capacity
import servers
from compare import TARGET
from thin_link import Link

OBJECTS = 100


def counters(admin: int) -> dict:
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=5) as reply:
        text = reply.read().decode()
    return {name: float(value) for name, value in re.findall(r"^millpond_(rt\w+?)(?:_total)? ([\d.e+]+)$", text, re.M)}


def trial(number: int, streams: int, setting: str, skew: float, options, results: dict):
    memory, window = setting.split("/")
    work = TARGET / f"bench/intervals/{number}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    link = Link(options.base + number, options.mbps * 1e6 * 1.05, options.site, work)
    try:
        http, admin, rtsp = servers.free_port(), servers.free_port(), servers.free_port()
        command = [options.server, "serve", f"http://{link.address}:8000/", "--http", f"127.0.0.1:{http}", "--admin",
                   f"127.0.0.1:{admin}", "--rtsp", f"127.0.0.1:{rtsp}", "--workers", "1", "--cache", work / "cache",
                   "--cache-size", "0", "--memory", memory, "--slice", options.slice, "--prefetch", "on-demand",
                   "--rtsp-window", window, "--access-log=false"]
        with servers.Server("millpond", [str(part) for part in command], http, work / "output.log"):
            # Titles are indexed before.
            for title in range(1, OBJECTS + 1):
                urllib.request.urlopen(f"http://127.0.0.1:{http}/{title}.mp4/index.m3u8", timeout=30).close()
            report = work / "report.json"
            load = [options.server, "load", f"rtsp://127.0.0.1:{rtsp}/{{1..{OBJECTS}}}.mp4", "--zipf", skew, "--clients", streams,
                    "--arrivals", "poisson", "--ramp-up", f"{options.ramp}s", "--duration", f"{options.ramp + options.seconds}s",
                    "--json", report]
            process = subprocess.Popen([str(part) for part in load], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(options.ramp)
            before = counters(admin)
            time.sleep(options.seconds - 3)
            after = counters(admin)
            process.wait()
            gained = lambda name: after[name] - before[name]
            hits, misses = after["rtsp_interval_hits"], after["rtsp_interval_misses"]
            results[skew, streams, setting] = {
                "playing": after["rtsp_playing"], "frames": gained("rtp_frames"), "late": gained("rtp_late_frames"),
                "missed": gained("rtp_missed_deadlines"), "hits": hits, "misses": misses,
                "late_share": gained("rtp_late_frames") / max(1, gained("rtp_frames")),
            }
    finally:
        link.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--streams", default="40,50,60,70,80,100,120,140", help="numbers tried (%(default)s)")
    parser.add_argument("--skews", default="0.3,1.2", help="of Zipf's law: low and high (%(default)s)")
    parser.add_argument("--settings", default="8MiB/0s,64MiB/0s,64MiB/10s", help="memory and caching window of each (%(default)s)")
    parser.add_argument("--mbps", type=float, default=20, help="of the origin's link, payload (%(default)s)")
    parser.add_argument("--slice", default="64KiB", help="(%(default)s)")
    parser.add_argument("--ramp", type=float, default=20, help="seconds in which streams arrive (%(default)s)")
    parser.add_argument("--seconds", type=float, default=30, help="of each trial after that (%(default)s)")
    parser.add_argument("--base", type=int, default=100, help="number of the first namespace (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/intervals.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    rtsp_capacity.make("V300", TARGET / "bench/rtsp-media")
    options.site = TARGET / "bench/intervals-site"
    options.site.mkdir(parents=True, exist_ok=True)
    for title in range(1, OBJECTS + 1):
        path = options.site / f"{title}.mp4"
        if not path.exists():
            path.hardlink_to(TARGET / "bench/rtsp-media/V300.mp4")
    settings = options.settings.split(",")
    results = {}
    print(f"{OBJECTS} objects of 0.3 Mbit/s, origin link of {options.mbps:g} Mbit/s")
    print(f"{'skew':>5} {'streams':>8} {'memory/window':>14} {'playing':>8} {'late %':>7} {'missed':>7} {'hits %':>7}")
    carried = {}
    for skew in map(float, options.skews.split(",")):
        for streams in map(int, options.streams.split(",")):
            threads = [
                threading.Thread(target=trial, args=(number, streams, setting, skew, options, results))
                for number, setting in enumerate(settings)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for setting in settings:
                row = results[skew, streams, setting]
                hits = 100 * row["hits"] / max(1, row["hits"] + row["misses"])
                print(f"{skew:5} {streams:8} {setting:>14} {row['playing']:8.0f} {100 * row['late_share']:7.2f} "
                      f"{row['missed']:7.0f} {hits:7.2f}", flush=True)
                if row["late_share"] < 0.01 and row["playing"] >= 0.95 * streams:
                    carried[skew, setting] = max(carried.get((skew, setting), 0), streams)
        print(f"skew {skew}: carried {', '.join(f'{setting}: {carried.get((skew, setting), 0)}' for setting in settings)}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps([{"skew": s, "streams": n, "setting": t, **row} for (s, n, t), row in results.items()], indent=1))


if __name__ == "__main__":
    main()
