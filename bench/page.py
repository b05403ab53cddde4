#!/usr/bin/env python3
"""Cost of the page for its viewers: bytes, requests and time to the first row, the first poster and the first picture.

Serves a folder of made clips, and opens the page in Chromium over an emulated link (the developer tools' network conditions), each time in a
new profile: a folder of 20 titles, and one of 10,000. Prints layout shifts, long tasks, the longest frame while scrolling, and the time of a
search too. Exits 1 where something failed, or a bound is exceeded: 2 s to the first row, no layout shift.

    npm ci --prefix tests/players
    cargo build --release -p millpond
    bench/page.py
    bench/page.py --pictures FOLDER
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import servers
from compare import TARGET, TOP

NAMES = (
    "Harbour (2019)", "Night Train (1987)", "The Long Field (2004)", "Salt (2011)", "Copper Sky (1999)", "Orchard (2022)", "North of Here (2016)",
    "Glass Bridge (1974)", "Paper Boats (2008)", "Winter Count (1993)", "Low Tide (2020)", "The Weaver (1968)", "Lanterns (2013)", "Two Rivers (2001)",
    "A Quiet Engine (1982)", "Blue Hour (2018)", "Signal (2015)", "The Cartographer (1996)", "Ember (2010)", "Far Shore (2023)",
)
SOURCES = ("mandelbrot=size=640x360:rate=25", "testsrc2=size=640x360:rate=25", "life=size=640x360:mold=10:rate=25:ratio=0.1:death_color=#123a5a:life_color=#e0b050",
           "gradients=size=640x360:rate=25:speed=0.02", "smptehdbars=size=640x360:rate=25")
# The link of a phone at the edge of a cell: kbit/s and milliseconds of latency.
LINK = (1600, 150)
FIRST_ROW_MS = 2000
SHIFT = 0.01


def ffmpeg(*arguments):
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *[str(word) for word in arguments]], check=True)


def make(library: Path, many: int):
    """The folders films/, many/, odd/ and empty/."""
    films = library / "films"
    for folder in (films, library / "many", library / "odd", library / "empty"):
        folder.mkdir(parents=True)
    coding = ("-c:v", "libx264", "-preset", "veryfast", "-g", 50, "-pix_fmt", "yuv420p", "-c:a", "aac")
    tone = ("-f", "lavfi", "-i", "sine=sample_rate=48000:duration=20")
    for number, name in enumerate(NAMES):
        picture = ("-f", "lavfi", "-i", SOURCES[number % len(SOURCES)], "-vf", f"hue=h={number * 37 % 360}", "-t", 20)
        ffmpeg(*picture[:4], *tone, *picture[4:], *coding, films / f"{name}.mp4")
    (films / f"{NAMES[0]}.en.srt").write_text("1\n00:00:00,500 --> 00:00:18,000\nThe harbour at dawn\n")
    small = library / "odd" / "clip.mp4"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=6", *coding, small)
    for number in range(1, many + 1):
        os.link(small, library / "many" / f"clip-{number:05}.mp4")
    ffmpeg("-f", "lavfi", "-i", SOURCES[1], "-f", "lavfi", "-i", "sine=sample_rate=48000", "-t", 10, *coding[:-1], "dca", "-strict", -2, library / "odd" / "Interview.mkv")
    (library / "odd" / "old.wmv").write_bytes(b"\x30\x26\xb2\x75\x8e\x66\xcf\x11")
    (library / "odd" / "broken.mp4").write_text("This is no film.")
    (library / "empty" / "notes.txt").write_text("nothing to play")


def run(script: str, *arguments) -> subprocess.CompletedProcess:
    command = ["node", TOP / "tests/players" / script, *arguments]
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, timeout=600)


def measured(url: str, folder: str, title: str, word: str, link) -> dict:
    ran = run("gallery.mjs", url, folder, title, word, *link)
    lines = ran.stdout.splitlines()
    return json.loads(lines[-1]) if lines else {"failed": f"the script ended with status {ran.returncode}"}


def middle(runs: list, *path):
    """Median of a figure over all runs."""
    values = []
    for found in runs:
        for name in path:
            found = found[name]
        values.append(found)
    return statistics.median(values)


# Each row of the table: its name, and the place of the figure in a run.
ROWS = (
    ("time to the first row, ms", ("row", "ms")),
    ("requests until then", ("row", "requests")),
    ("bytes until then", ("row", "bytes")),
    ("time to the first poster, ms", ("poster", "ms")),
    ("requests until then", ("poster", "requests")),
    ("bytes until then", ("poster", "bytes")),
    ("layout shift of the gallery", ("shift",)),
    ("longest task until the first poster, ms", ("tasks", "longest")),
    ("search, from a letter to its rows, ms", ("search", "ms")),
    ("cards after scrolling", ("scroll", "cards")),
    ("longest frame while scrolling, ms", ("scroll", "frame")),
    ("longest task while scrolling, ms", ("scroll", "tasks", "longest")),
    ("from a click to the first picture, ms", ("picture", "ms")),
    ("requests for it", ("picture", "requests")),
    ("bytes for it", ("picture", "bytes")),
    ("layout shift of the player", ("picture", "shift")),
    ("longest task of the player, ms", ("picture", "tasks", "longest")),
)


def compare(server, options) -> int:
    films = ("films/", f"films/{NAMES[0]}.mp4", "har")
    many = ("many/", "many/clip-00001.mp4", "clip-007")
    cases = [("20 titles", films), (f"{options.many:,} titles", many)]
    columns, failures = [], []
    for name, (folder, title, word) in cases:
        runs = []
        for number in range(options.rounds):
            found = measured(server.url, folder, title, word, (options.kbits, options.latency))
            if "failed" in found:
                failures.append(f"{name}, round {number + 1}: {found['failed']}")
            else:
                runs.append(found)
        columns.append((name, runs))
    print(f"\n{options.kbits} kbit/s, {options.latency} ms of latency, medians of {options.rounds} rounds, each in a new profile\n")
    print("| | " + " | ".join(name for name, _ in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for label, path in ROWS:
        values = [f"{middle(runs, *path):,.4g}" if "shift" in path else f"{middle(runs, *path):,.0f}" for _, runs in columns if runs]
        print(f"| {label} | " + " | ".join(values) + " |")
    for name, runs in columns:
        if not runs:
            continue
        if middle(runs, "row", "ms") > options.bound:
            failures.append(f"{name}: the first row after {middle(runs, 'row', 'ms'):.0f} ms, expected at most {options.bound} ms")
        for place in (("shift",), ("picture", "shift")):
            if middle(runs, *place) > SHIFT:
                failures.append(f"{name}: a layout shift of {middle(runs, *place):.3f}, expected at most {SHIFT}")
    if options.json:
        options.json.write_text(json.dumps({name: runs for name, runs in columns}, indent=1) + "\n")
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--kbits", type=int, default=LINK[0], help="rate of the link in kbit/s; 0 for the machine's own (%(default)s)")
    parser.add_argument("--latency", type=int, default=LINK[1], help="latency of the link in ms (%(default)s)")
    parser.add_argument("--many", type=int, default=10_000, help="titles of the large folder, at least 800 (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--bound", type=int, default=FIRST_ROW_MS, help="most milliseconds to the first row (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="one round, with 1,000 titles")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="take pictures of the page instead")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures of each round")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.many = 1, min(options.many, 1000)
    work = TARGET / "bench/page"
    shutil.rmtree(work, ignore_errors=True)
    try:
        make(work / "library", options.many)
        with servers.Edge(options.bin, str(work / "library"), work / "server") as server:
            if options.pictures:
                ran = run("gallery_pictures.mjs", server.url, options.pictures)
                print(ran.stdout, end="")
                sys.exit(ran.returncode)
            sys.exit(compare(server, options))
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
