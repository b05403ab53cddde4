#!/usr/bin/env python3
"""Hits of a disk-backed cache: millpond against Debian's nginx (proxy_cache and slice), alternately in one run.

Both stand before the same origin, which serves one file of 256 MB; both have all of it on the disk before the first
round. Random ranges of 1 MB and of 100 KB are asked for, aligned to their own size. One worker each. First by wrk, which reads
what it gets and is the limit on two cores; then by a client that doesn't (drain.c), so that the server is.
"""

import argparse
import json
import random
import shutil
import statistics
from dataclasses import asdict
from pathlib import Path

import measure
import servers
from compare import TARGET, ratio, summary

SIZE = 256 << 20
SERVE = "serve {media} --http 127.0.0.1:{port} --admin 127.0.0.1:0 --rtsp 127.0.0.1:0 --workers 1 --access-log=false --cache {work}"
# Length of the ranges, and what is aimed at: figure, relation, bound of the ratio to nginx.
CASES = {
    "1 MB": (1 << 20, [("rate", ">=", 1.2), ("server_us", "<=", 1.0), ("machine_us", "<=", 1.0)]),
    "100 KB": (100 << 10, [("rate", ">=", 1.2), ("server_us", "<=", 0.85), ("machine_us", "<=", 1.0)]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--serve", default=SERVE, help="its arguments (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of both servers, for each case (%(default)s)")
    parser.add_argument("--seconds", type=int, default=5, help="of each burst (%(default)s)")
    parser.add_argument("--connections", type=int, default=16, help="of wrk (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/cache.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    work = TARGET / "bench/cache-hits"
    site = work / "site"
    site.mkdir(parents=True, exist_ok=True)
    file = site / "film.bin"
    if not file.exists() or file.stat().st_size != SIZE:
        noise = random.Random(1)
        file.write_bytes(b"".join(noise.randbytes(1 << 20) for _ in range(SIZE >> 20)))
    shutil.rmtree(work / "millpond", ignore_errors=True)
    results = {}
    with (
        measure.congestion_control("cubic"),
        servers.nginx("origin", site, work / "origin") as origin,
        servers.nginx_cache("nginx", origin.url, work / "nginx") as peer,
        servers.millpond(
            options.server, options.serve.replace("{work}", str(work / "millpond/cache")), origin.url, work / "millpond"
        ) as ours,
        servers.floor(file, work / "floor") as floor,
    ):
        for server in (ours, peer, floor):
            server.warm("/film.bin", SIZE)
        for client, burst in (("", measure.burst), (", drained", measure.drained)):
            for title, (length, aims) in CASES.items():
                results[title + client] = compare(title + client, length, (ours, peer, floor), options, work, burst)
                table(title + client, results[title + client], aims)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1))


def compare(title: str, length: int, compared, options, work: Path, measured) -> dict:
    paths = work / "ranges"
    starts = list(range(0, SIZE - length + 1, length))
    random.Random(2).shuffle(starts)
    paths.write_text("".join(f"/film.bin {start}-{start + length - 1}\n" for start in starts))
    ours, peer, floor = compared
    bursts = {server.name: [] for server in compared}
    for server in compared:
        measured(server, paths, 2, options.connections)
    for number in range(options.rounds):
        for server in compared:
            burst = measured(server, paths, options.seconds, options.connections)
            bursts[server.name].append(burst)
            print(
                f"  {title} round {number + 1} {server.name:9} {burst.rate:9.1f}/s {burst.server_us:8.1f} us "
                f"{burst.machine_us:8.1f} us machine, {burst.foreign:.0%} foreign", flush=True,
            )
    pairs = list(zip(bursts[ours.name], bursts[peer.name]))
    least = list(zip(bursts[floor.name], bursts[peer.name]))
    if any(abs(a.size - b.size) > 1000 for a, b in pairs):
        raise RuntimeError("the responses are not of the same size")
    figures = ("rate", "server_us", "machine_us")

    def against(pairs: list) -> dict:
        return {f: statistics.median(ratio(getattr(a, f), getattr(b, f)) for a, b in pairs) for f in figures}

    return {
        **{server.name: summary(bursts[server.name]) for server in compared},
        "ratio": against(pairs),
        "floor_ratio": against(least),
        "rounds": {name: [asdict(burst) for burst in of] for name, of in bursts.items()},
    }


def table(title: str, result: dict, aims: list):
    print(f"{title:10}{'':10}{'rate/s':>10}{'server us':>11}{'machine us':>12}{'p99 ms':>9}")
    for name in ("millpond", "nginx", "floor"):
        row = result[name]
        print(f"{'':10}{name:10}{row['rate']:10.1f}{row['server_us']:11.1f}{row['machine_us']:12.1f}{row['p99_ms']:9.2f}")
    for figure, relation, bound in aims:
        value = result["ratio"][figure]
        met = value <= bound if relation == "<=" else value >= bound
        least = result["floor_ratio"][figure]
        print(
            f"{'':10}{figure} ratio {value:.2f}, of the floor {least:.2f} "
            f"(target {relation} {bound:g}): {'met' if met else 'MISSED'}"
        )


if __name__ == "__main__":
    main()
