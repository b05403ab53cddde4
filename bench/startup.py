#!/usr/bin/env python3
"""Startup of cold objects by their length, from an origin behind a link of 50 Mbit/s, beside whole-object caching.

Needs root. For each length a fresh cache: seconds to the first byte of the object as it is, and from asking for the
playlist to the end of the first TS segment, with the index cold and warm. One line has slices of 16 MiB: a
viewer doesn't wait for a whole slice.
"""

import argparse
import shutil
import time
import urllib.request
from pathlib import Path

import servers
from compare import TARGET
from thin_link import Link, film, run

RATE = 50e6
MINUTES = [1, 5, 10, 20, 40]


def longer(first: Path, path: Path, minutes: int):
    if not path.exists():
        run("ffmpeg", "-v", "error", "-stream_loop", minutes - 1, "-i", first, "-c", "copy", "-movflags", "+faststart", "-y", path)


def timed(url: str, most=None) -> float:
    began = time.monotonic()
    with urllib.request.urlopen(url, timeout=120) as reply:
        reply.read(most)
    return time.monotonic() - began


def started(options, link, work: Path, mode: str, size: str, title: str) -> tuple:
    """Seconds to the first byte; of the first segment with a cold index, and with a warm one."""
    results = []
    for case in ("plain", "cold", "warm"):
        if case != "warm":
            shutil.rmtree(work / "cache", ignore_errors=True)
        else:
            shutil.rmtree(work / "cache/slices", ignore_errors=True)
        arguments = ["--workers", 1, "--prefetch", mode, "--slice", size]
        with servers.Edge(options.server, link.url, work, *arguments, name=mode) as server:
            film_url = f"{server.url}/{title}"
            if case == "plain":
                results.append(timed(film_url, 1))
            else:
                names = ("ts/index.m3u8", "ts/v1/index.m3u8", "ts/v1/1.ts")
                results.append(sum(timed(f"{film_url}/{name}") for name in names))
        time.sleep(0.3)
    return tuple(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    options = parser.parse_args()
    site, work = TARGET / "bench/startup-site", TARGET / "bench/startup"
    site.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    first = site / "film-1.mp4"
    film(first)
    for minutes in MINUTES[1:]:
        longer(first, site / f"film-{minutes}.mp4", minutes)
    link = Link(99, RATE, site, work)
    try:
        print(f"{'minutes':>8} {'MB':>6} {'slices':>8} {'mode':10} {'first byte s':>13} {'segment, index cold s':>22} {'warm s':>8}")
        cases = [(minutes, "512KiB", mode) for mode in ("active", "full") for minutes in MINUTES]
        cases.insert(len(MINUTES), (40, "16MiB", "active"))
        for minutes, size, mode in cases:
            title = f"film-{minutes}.mp4"
            plain, cold, warm = started(options, link, work, mode, size, title)
            length = (site / title).stat().st_size / 1e6
            print(f"{minutes:8} {length:6.0f} {size:>8} {mode:10} {plain:13.3f} {cold:22.3f} {warm:8.3f}", flush=True)
    finally:
        link.close()


if __name__ == "__main__":
    main()
