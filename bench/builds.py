#!/usr/bin/env python3
"""Two builds of Millpond in turns: what playlists, segments and slices cost each of them.

Usage: builds.py BEFORE AFTER [--rounds 5] [--seconds 2]

Both serve the same title with one worker, in one run. Printed are medians of the server's CPU time for a response, in
microseconds, responses a second, and the second build's share of the first one's time. Needs nginx, wrk, ffmpeg and python3; run
as root, so that congestion control can be set.
"""

import argparse
import contextlib
import statistics
from pathlib import Path

import compare
import measure
import media
import servers

COUNT = 64
SERVE = "serve {place} --http 127.0.0.1:{{port}} --admin 127.0.0.1:0 --rtsp 127.0.0.1:0 --workers 1 --access-log=off --cache {cache}"


def cases(segments: int) -> dict:
    """By title: paths, and whether replies are made anew."""
    numbers = range(1, segments + 1)
    return {
        "playlist, made anew": (["/a.mp4/v1/index.m3u8"], True),
        "playlist again": (["/a.mp4/v1/index.m3u8"], False),
        "fMP4 segment, made anew": ([f"/a.mp4/v1/{n}.m4s" for n in numbers], True),
        "fMP4 segment again": ([f"/a.mp4/v1/{n}.m4s" for n in numbers], False),
        "TS segment, made anew": ([f"/a.mp4/ts/v1/{n}.ts" for n in numbers], True),
        "TS segment again": ([f"/a.mp4/ts/v1/{n}.ts" for n in numbers], False),
    }


def slices() -> dict:
    """Files of a web server, all of whose slices are on the disk."""
    return {f"slices, {name}": ([f"/{name}-{n}.bin" for n in range(COUNT)], False) for name in ("100kB", "1MB")}


def origin(folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in (("100kB", 100_000), ("1MB", 1_000_000)):
        for n in range(COUNT):
            (folder / f"{name}-{n}.bin").write_bytes(bytes([n]) * size)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=5, help="of both builds, for each case (%(default)s)")
    parser.add_argument("--seconds", type=int, default=2, help="of each burst (%(default)s)")
    parser.add_argument("--connections", type=int, default=16, help="of wrk (%(default)s)")
    options = parser.parse_args()
    work = compare.TARGET / "bench"
    folder = work / "media"
    folder.mkdir(parents=True, exist_ok=True)
    media.make(media.TITLE, folder / "a.mp4")
    origin(work / "builds-origin")
    with contextlib.ExitStack() as stack:
        stack.enter_context(measure.congestion_control("cubic"))
        remote = stack.enter_context(servers.nginx("origin", work / "builds-origin", work / "builds-nginx"))
        found = {}
        for name, binary in (("before", options.before), ("after", options.after)):
            found[name] = tuple(
                stack.enter_context(servers.millpond(binary, SERVE.format(place=place, cache=work / f"{name}-cache-{which}"), folder, work / f"{name}-{which}"))
                for which, place in (("local", folder), ("remote", remote.url))
            )
        segments = media.segments_of(found["before"][0].get("/a.mp4/v1/index.m3u8").decode())
        print(f"{'':28}{'before us':>10}{'after us':>10}{'share':>7}{'before /s':>11}{'after /s':>10}")
        for which, chosen in ((0, cases(segments)), (1, slices())):
            for title, (paths, fresh) in chosen.items():
                row(title, {name: pair[which] for name, pair in found.items()}, paths, fresh, work, options)


def row(title: str, contestants: dict, paths: list, fresh: bool, work: Path, options):
    file = work / "builds.paths"
    file.write_text("\n".join(paths) + "\n")
    bursts = {name: [] for name in contestants}
    for number in range(options.rounds + 1):
        for name, server in contestants.items():
            burst = measure.burst(server, file, options.seconds, options.connections, fresh)
            # The first round fills caches.
            if number:
                bursts[name].append(burst)
    us = {name: statistics.median(b.server_us for b in of) for name, of in bursts.items()}
    rate = {name: statistics.median(b.rate for b in of) for name, of in bursts.items()}
    share = us["after"] / us["before"]
    print(f"{title:28}{us['before']:10.1f}{us['after']:10.1f}{share:7.2f}{rate['before']:11.0f}{rate['after']:10.0f}", flush=True)


if __name__ == "__main__":
    main()
