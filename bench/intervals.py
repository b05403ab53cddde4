#!/usr/bin/env python3
"""Interval caching on an origin link that is too thin for all streams: how many it carries without missed deadlines.

Needs root. As Srinilta and Choudhary measured it: 100 objects, requests that arrive by a Poisson process and choose by Zipf's law,
with low and with high skew; the origin is behind a token bucket (`tc tbf`) in a network namespace, and no slices are kept on the
disk. Each number of streams is tried with next to no memory, as without a cache; with memory in which slices are kept as anybody's
policy keeps them; and with the same memory and interval caching; all that with each delay of missed deadlines. Each trial has a
link and a server of its own; those of a number run at the same time.

Late is a frame that goes out more than 100 ms after it was due. Carried means: fewer than 1 % are late. The paper's shares: cached
are blocks that were in memory behind another session, of all blocks; missed are frames that are late because they were not there,
of all frames; delayed are deadlines that were put off, of all deadlines: a block has one. Hits are of the blocks that followed
another session within the window.
"""

import argparse
import itertools
import json
import shutil
import subprocess
import threading
import time
from pathlib import Path

import media
import rtsp_capacity
import servers
from compare import TARGET
from thin_link import Link

OBJECTS = 100
# 200 ms of 30 frames a second: what a block of 0.3 Mbit/s has.
FRAMES_A_BLOCK = 6


def trial(number: int, streams: int, setting: str, deadlines: str, skew: float, options, results: dict):
    memory, window = setting.split("/")
    work = TARGET / f"bench/intervals/{number}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    link = Link(options.base + number, options.mbps * 1e6 * 1.05, options.site, work)
    try:
        arguments = ["--workers", 1, "--cache-size", 0, "--memory", memory, "--slice", options.slice, "--prefetch", "on-demand",
                     "--rtsp-window", window, "--rtsp-deadlines", deadlines, "--rtsp-origin-mbps", options.admit]
        with servers.Edge(options.server, link.url, work, *arguments) as server:
            # Titles are indexed before.
            for title in range(1, OBJECTS + 1):
                server.get(f"/{title}.mp4/index.m3u8")
            report = work / "report.json"
            load = [options.server, "load", f"rtsp://127.0.0.1:{server.rtsp}/{{1..{OBJECTS}}}.mp4", "--zipf", skew, "--clients", streams,
                    "--arrivals", "poisson", "--ramp-up", f"{options.ramp}s", "--duration", f"{options.ramp + options.seconds}s",
                    "--json", report]
            process = subprocess.Popen([str(part) for part in load], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(options.ramp)
            before = server.metrics()
            time.sleep(options.seconds - 3)
            after = server.metrics()
            process.wait()
            results[skew, streams, deadlines, setting] = figures(before, after, deadlines)
    finally:
        link.close()


def figures(before: dict, after: dict, deadlines: str) -> dict:
    gained = lambda name: after[f"millpond_{name}_total"] - before[f"millpond_{name}_total"]
    frames, late, missed = gained("rtp_frames"), gained("rtp_late_frames"), gained("rtp_missed_deadlines")
    blocks = max(1, frames / FRAMES_A_BLOCK)
    return {
        "playing": after["millpond_rtsp_playing"], "frames": frames, "late": late, "missed_deadlines": missed,
        "hits": after["millpond_rtsp_interval_hits_total"], "misses": after["millpond_rtsp_interval_misses_total"],
        "late_share": late / max(1, frames),
        "cached_share": gained("rtsp_interval_hits") / blocks,
        "missed_share": (late - gained("rtp_lagging_frames")) / max(1, frames),
        "delayed_share": missed / blocks if deadlines != "none" else 0,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--streams", default="40,50,60,70,80,100,120,140", help="numbers tried (%(default)s)")
    parser.add_argument("--skews", default="0.3,1.2", help="of Zipf's law: low and high (%(default)s)")
    parser.add_argument("--settings", default="8MiB/0s,64MiB/0s,64MiB/10s", help="memory and caching window of each (%(default)s)")
    parser.add_argument("--deadlines", default="none", help="what is done to those behind a missed one: none, half, one (%(default)s)")
    parser.add_argument("--mbps", type=float, default=20, help="of the origin's link, payload (%(default)s)")
    parser.add_argument("--admit", type=int, default=0, help="most Mbit/s that sessions may read from the origin (%(default)s: no bound)")
    parser.add_argument("--slice", default="64KiB", help="(%(default)s)")
    parser.add_argument("--ramp", type=float, default=20, help="seconds in which streams arrive (%(default)s)")
    parser.add_argument("--seconds", type=float, default=30, help="of each trial after that (%(default)s)")
    parser.add_argument("--base", type=int, default=100, help="number of the first namespace (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/intervals.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    rtsp_capacity.make("V300", TARGET / "bench/rtsp-media")
    options.site = TARGET / "bench/intervals-site"
    media.titles(TARGET / "bench/rtsp-media/V300.mp4", options.site, OBJECTS)
    settings = options.settings.split(",")
    results = {}
    print(f"{OBJECTS} objects of 0.3 Mbit/s, origin link of {options.mbps:g} Mbit/s")
    print(f"{'skew':>5} {'streams':>8} {'deadlines':>10} {'memory/window':>14} {'playing':>8} {'late %':>7} {'cached %':>9} {'missed %':>9} "
          f"{'delayed %':>10} {'hits %':>7}")
    carried = {}
    for skew, deadlines, streams in itertools.product(
        map(float, options.skews.split(",")), options.deadlines.split(","), map(int, options.streams.split(","))
    ):
        threads = [
            threading.Thread(target=trial, args=(number, streams, setting, deadlines, skew, options, results))
            for number, setting in enumerate(settings)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for setting in settings:
            row = results[skew, streams, deadlines, setting]
            hits = 100 * row["hits"] / max(1, row["hits"] + row["misses"])
            print(f"{skew:5} {streams:8} {deadlines:>10} {setting:>14} {row['playing']:8.0f} {100 * row['late_share']:7.2f} "
                  f"{100 * row['cached_share']:9.2f} {100 * row['missed_share']:9.2f} {100 * row['delayed_share']:10.2f} "
                  f"{hits:7.2f}", flush=True)
            most = carried.setdefault((skew, deadlines), dict.fromkeys(settings, 0))
            if row["late_share"] < 0.01 and row["playing"] >= 0.95 * streams:
                most[setting] = max(most[setting], streams)
    for (skew, deadlines), most in carried.items():
        print(f"skew {skew}, deadlines {deadlines}: carried {', '.join(f'{setting}: {streams}' for setting, streams in most.items())}")
    rows = [{"skew": s, "streams": n, "deadlines": d, "setting": t, **row} for (s, n, d, t), row in results.items()]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
