#!/usr/bin/env python3
"""What segments and playlists cost that are made anew: Millpond beside nginx-vod-module and beside nginx with ready-made files.

Usage: anew.py [--server MILLPOND] [--also NAME=MILLPOND]... [--vod NGINX] [--rounds 5] [--seconds 5]

All servers have one worker and take turns in one run. Printed are medians of the server's CPU time for a million bytes
of segments, or for one playlist, in microseconds; the part of it in user space; page faults; and responses a second.
Needs nginx, wrk, ffmpeg and python3; run as root, so that congestion control can be set. `--vod` is an nginx that was
built with nginx-vod-module: `auto/configure --with-cc-opt=-O3 --add-module=nginx-vod-module && make` in nginx's source
gives `objs/nginx`. Without it that row is left out.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import compare
import measure
import media
import servers

VOD = """
  vod_mode local;
  vod_segment_duration 4000;
  vod_align_segments_to_key_frames on;
  vod_manifest_segment_durations_mode accurate;
  vod_last_modified_types *;
  vod_metadata_cache vod_metadata 256m;
  vod_cache_buffer_size 1m;
  vod_output_buffer_pool 64k 256;
  open_file_cache max=1000 inactive=5m;
  open_file_cache_valid 1h;
"""
# Both containers are muxed by `vod hls`; the container is a setting of the location.
VOD_PLACES = """
  location /ts/ { vod hls; vod_hls_container_format mpegts; alias %(media)s/; }
  location /fmp4/ { vod hls; vod_hls_container_format fmp4; alias %(media)s/; }
"""
KINDS = {"ts": "TS, sound and picture", "fmp4": "fMP4, picture", "playlist": "playlist of 10 minutes", "film": "playlist of 2 hours"}
# Kinds whose figures are those of one reply.
PLAYLISTS = {"playlist": "a", "film": "film"}


@dataclass
class Cost:
    """What one burst cost its server."""

    us: float
    """CPU time for a million bytes, in microseconds."""
    user_us: float
    """The part of it in user space."""
    faults: float
    """Page faults for a million bytes."""
    rate: float
    """Responses a second."""
    size: float
    """Mean bytes of a response, head included."""


@dataclass
class Contestant:
    """A server and what it is asked for."""

    name: str
    server: servers.Server
    paths: dict
    """By kind: the file with its paths."""
    fresh: bool
    """Whether requests insist on replies made anew."""


def spent(server) -> tuple:
    """User and system time in seconds and page faults of all processes of a server (proc(5), stat)."""
    user = system = faults = 0
    for pid in server.pids():
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        user, system, faults = user + int(fields[11]), system + int(fields[12]), faults + int(fields[7])
    tick = os.sysconf("SC_CLK_TCK")
    return user / tick, system / tick, faults


def cost(contestant: Contestant, kind: str, seconds: float, connections: int) -> Cost:
    user, system, faults = spent(contestant.server)
    burst = measure.burst(contestant.server, contestant.paths[kind], seconds, connections, contestant.fresh)
    after = spent(contestant.server)
    user, system, faults = after[0] - user, after[1] - system, after[2] - faults
    megabytes = burst.requests * burst.size / 1e6
    return Cost((user + system) * 1e6 / megabytes, user * 1e6 / megabytes, faults / megabytes, burst.rate, burst.size)


def paths_file(work: Path, name: str, paths: list) -> Path:
    file = work / f"{name}.paths"
    file.write_text("\n".join(paths) + "\n")
    return file


def of_millpond(name: str, server, count: int, work: Path, fresh: bool) -> Contestant:
    form = {"ts": "/a.mp4/ts/v1/{}.ts", "fmp4": "/a.mp4/v1/{}.m4s"}
    paths = {kind: [form[kind].format(n) for n in range(1, count + 1)] for kind in form}
    paths |= {kind: [f"/{title}.mp4/v1/index.m3u8"] for kind, title in PLAYLISTS.items()}
    return Contestant(name, server, {kind: paths_file(work, f"anew-{kind}", of) for kind, of in paths.items()}, fresh)


def of_vod(server, count: int, work: Path) -> Contestant:
    form = {"ts": "/ts/a.mp4/seg-{}-v1-a1.ts", "fmp4": "/fmp4/a.mp4/seg-{}-v1.m4s"}
    paths = {kind: [form[kind].format(n) for n in range(1, count + 1)] for kind in form}
    paths |= {kind: [f"/fmp4/{title}.mp4/index-v1.m3u8"] for kind, title in PLAYLISTS.items()}
    for of in paths.values():
        server.get(of[0])
    return Contestant("nginx-vod", server, {kind: paths_file(work, f"vod-{kind}", of) for kind, of in paths.items()}, False)


def vod(binary: Path, folder: Path, work: Path) -> servers.Server:
    """nginx with nginx-vod-module, tuned as its manual says."""
    places = VOD_PLACES % {"media": folder}
    return servers.nginx_with("nginx-vod", work, places, VOD, binary)


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    default = compare.TARGET / "release/millpond"
    parser.add_argument("--server", type=Path, default=default, help="millpond's binary (%(default)s)")
    parser.add_argument("--also", action="append", default=[], metavar="NAME=PATH", help="another build of millpond")
    parser.add_argument("--vod", type=Path, help="an nginx built with nginx-vod-module")
    parser.add_argument("--kinds", default=",".join(KINDS), help="which to run (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of all servers (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="of each burst (%(default)s)")
    parser.add_argument("--connections", type=int, default=16, help="of wrk (%(default)s)")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for the run (%(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures too")
    options = parser.parse_args(arguments)
    unknown = set(options.kinds.split(",")) - set(KINDS)
    if unknown or any("=" not in also for also in options.also) or options.rounds < 1 or options.seconds < 1:
        parser.error(f"kinds are {', '.join(KINDS)}; --also is NAME=PATH; rounds and seconds are 1 or more")
    return options


def contestants(options, work: Path, stack: contextlib.ExitStack) -> list:
    folder = work / "media"
    media.make_all(folder)
    builds = {"millpond": options.server} | {name: Path(path) for name, path in (a.split("=", 1) for a in options.also)}
    found = []
    for name, binary in builds.items():
        server = stack.enter_context(servers.millpond(binary, compare.SERVE, folder, work / name))
        count = media.segments_of(server.get("/a.mp4/v1/index.m3u8").decode())
        found.append(of_millpond(name, server, count, work, True))
    if options.vod:
        found.append(of_vod(stack.enter_context(vod(options.vod, folder, work / "vod")), count, work))
    ready = [compare.Case("all", "", [path for file in found[0].paths.values() for path in file.read_text().split()])]
    compare.extract(found[0].server, work / "anew-site", ready)
    static = stack.enter_context(servers.nginx("static", work / "anew-site", work / "static"))
    found.append(of_millpond("static file", static, count, work, False))
    return found


def run(options) -> dict:
    work = compare.TARGET / "bench"
    work.mkdir(parents=True, exist_ok=True)
    results = {}
    with contextlib.ExitStack() as stack:
        found = contestants(options, work, stack)
        for kind in options.kinds.split(","):
            costs = {contestant.name: [] for contestant in found}
            for contestant in found:
                cost(contestant, kind, 1, options.connections)
            for _ in range(options.rounds):
                for contestant in found:
                    costs[contestant.name].append(cost(contestant, kind, options.seconds, options.connections))
            results[kind] = {name: [asdict(c) for c in of] for name, of in costs.items()}
            table(kind, results[kind])
    return results


def table(kind: str, costs: dict):
    is_playlist = kind in PLAYLISTS
    unit = "us" if is_playlist else "us/MB"
    print(f"\n{KINDS[kind]:28}{unit:>8}{'least':>8}{'user':>8}{'faults':>9}{'rate/s':>9}{'kB':>8}{'to static':>11}")

    def middle(of: list, figure: str) -> float:
        of_reply = is_playlist and figure in ("us", "user_us", "faults")
        return statistics.median(c[figure] * (c["size"] / 1e6 if of_reply else 1) for c in of)

    static = middle(costs["static file"], "us")
    for name, of in costs.items():
        us = middle(of, "us")
        least = min(middle([c], "us") for c in of)
        print(
            f"{name:28}{us:>8.1f}{least:>8.1f}{middle(of, 'user_us'):>8.1f}{middle(of, 'faults'):>9.1f}"
            f"{middle(of, 'rate'):>9.0f}{middle(of, 'size') / 1e3:>8.0f}{us / static:>11.2f}",
            flush=True,
        )


def main() -> int:
    options = parse(sys.argv[1:])
    try:
        with measure.congestion_control(options.congestion):
            results = run(options)
    except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
