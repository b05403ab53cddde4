#!/usr/bin/env python3
"""Matroska beside MP4: the opening of a cold film of two hours on S3, its segments, and the processor time of a viewer.

Usage: matroska.py [--server FILE] [--round-trip MS] [--minutes N] [--rounds N]

Needs root. One film is stored twice, as Matroska and as MP4, in an S3-compatible server at a round trip of MS. For each file, the program prints seconds
and requests to the MPD of the cold film, to the first segment and to a segment in the middle, and the part of the bytes on the wire that the client gets.
Then, from a local folder: processor seconds for all segments of a playback by HLS, cold and warm, beside `ffmpeg -c copy -f hls`, which a server runs for each
viewer that remuxes by it. They take turns, and the medians of all rounds are printed. The program exits with 1 where a segment is missing.
"""

import argparse
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import servers
import storages
from compare import TARGET

SAMPLE = Path(__file__).resolve().parent.parent / "assets/sample/360p.mp4"
NUMBER = 7
# Seconds after which a reply counts as missing.
REPLY = 120


def film(root: Path, minutes: int) -> list:
    folder = root / storages.BUCKET
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name, options in (("film.mkv", []), ("film.mp4", ["-movflags", "+faststart"])):
        path = folder / name
        if not path.exists():
            subprocess.run(["ffmpeg", "-v", "error", "-stream_loop", "-1", "-i", SAMPLE, "-map", "0:v", "-map", "0:a:0", "-c", "copy",
                            "-t", str(60 * minutes), *options, "-y", path], check=True)
        names.append(name)
    return names


def far(options, place: str, name: str, work: Path) -> list:
    """Seconds, requests, bytes on the wire and bytes to the client: of the MPD, the first segment, and one in the middle."""
    rows = []
    with servers.Edge(options.server, place, work, name="cold") as server:
        # The server lists the place when it starts.
        time.sleep(1)
        begun = (storages.received(NUMBER), server.origin_requests())

        def step(*paths):
            before = (storages.received(NUMBER), server.origin_requests())
            began = time.monotonic()
            bodies = [server.get(f"/{name}/{path}", REPLY) for path in paths]
            took = time.monotonic() - began
            time.sleep(0.5)
            rows.append((took, server.origin_requests() - before[1], storages.received(NUMBER) - before[0], sum(map(len, bodies))))
            return bodies

        mpd = step("index.mpd")[0].decode()
        version = re.search(r"~[0-9a-f]+", mpd)[0]
        playlist = server.get(f"/{name}/{version}/v1/index.m3u8", REPLY).decode()
        count = playlist.count("#EXTINF")
        step(f"{version}/v1/init.mp4", f"{version}/v1/1.m4s")
        step(f"{version}/v1/{count // 2}.m4s")
        wire = storages.received(NUMBER) - begun[0]
        rows.append((0, server.origin_requests() - begun[1], wire, sum(row[3] for row in rows)))
    return rows


def played(options, place: Path, name: str, work: Path) -> tuple:
    """Processor seconds of all segments, cold and warm, and the seconds of media."""
    with servers.Edge(options.server, str(place), work, name="played") as server:
        seconds, spent = 0.0, []
        for turn in range(2):
            before = server.cpu_seconds()
            for track in ("v1", "a1"):
                master = server.get(f"/{name}/index.m3u8", REPLY).decode()
                version = re.search(r"~[0-9a-f]+", master)[0]
                base = f"/{name}/{version}/{track}"
                lines = server.get(f"{base}/index.m3u8", REPLY).decode().splitlines()
                if track == "v1" and not turn:
                    seconds = sum(float(line[8:].split(",")[0]) for line in lines if line.startswith("#EXTINF"))
                for line in lines:
                    if line.endswith(".m4s"):
                        server.get(f"{base}/{line}", REPLY)
            spent.append(server.cpu_seconds() - before)
        return (*spent, seconds)


def remuxed(path: Path, work: Path) -> float:
    """Processor seconds of `ffmpeg -c copy -f hls` over the film."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-c", "copy", "-f", "hls", "-hls_segment_type", "fmp4", "-hls_time", "4",
                    "-hls_list_size", "0", "-y", work / "index.m3u8"], check=True, cwd=work)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--round-trip", type=int, default=50)
    parser.add_argument("--minutes", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=5, help="turns of both files and ffmpeg, whose medians are printed")
    options = parser.parse_args()
    root, work = TARGET / f"bench/matroska-{options.minutes}", TARGET / "bench/matroska-work"
    # A cache of an earlier run would not be cold.
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    names = film(root, options.minutes)
    with storages.started(storages.Storage("s3", options.round_trip), NUMBER, root, work / "storage") as place:
        for name in names:
            rows = far(options, place, name, work / f"far-{name}")
            for what, (took, asked, wire, out) in zip(("MPD", "first segment", "middle segment", "all"), rows):
                print(f"{name:9} {what:14} {took:6.3f} s {asked:3} requests {wire:9} bytes in {out:9} out {f'{out / wire:5.2f}' if wire else 'cached'}")
    (work / "remuxed").mkdir(exist_ok=True)
    rounds = {name: [] for name in (*names, "ffmpeg")}
    for number in range(options.rounds):
        for name in names:
            rounds[name].append(played(options, root / storages.BUCKET, name, work / f"near-{name}-{number}"))
        rounds["ffmpeg"].append(remuxed(root / storages.BUCKET / "film.mkv", work / "remuxed"))
    colds = []
    for name in names:
        cold, warm, seconds = (statistics.median(column) for column in zip(*rounds[name]))
        colds.append(cold)
        print(f"{name:9} played {seconds:6.0f} s of media: {cold:5.2f} s of processor cold, {warm:5.2f} warm, {seconds / warm:7.0f} viewers a core")
    print(f"Matroska takes {colds[0] / colds[1]:.2f} times as much as MP4, cold")
    spent = statistics.median(rounds["ffmpeg"])
    print(f"ffmpeg -c copy -f hls: {spent:.2f} s of processor, {60 * options.minutes / spent:.0f} viewers a core")
    return 0


if __name__ == "__main__":
    sys.exit(main())
