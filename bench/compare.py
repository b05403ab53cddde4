#!/usr/bin/env python3
"""Millpond against Debian's nginx, alternately in one run, on the same bytes.

nginx serves ready-made files that were fetched from millpond before; millpond makes them as it is asked. For each
case both are loaded in turn (A B A B ...), and the table has the medians over the rounds, and the median of each
round's ratio of millpond to nginx. CPU is what the server's processes used for a response; machine is what all
cores did for it, client and kernel included. Targets are printed beside; missing one is no error.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import measure
import media
import servers

TOP = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target")).resolve()
# Interrupts that belong to no process take a few percent of a machine that is otherwise left alone.
QUIET = 0.10
SERVE = "serve {media} --http 127.0.0.1:{port} --admin 127.0.0.1:0 --rtsp 127.0.0.1:0 --workers 1 --access-log=false --cache {media}/../cache"


@dataclass
class Case:
    """Paths that are asked for in turn, and what is aimed at."""

    name: str
    title: str
    paths: list = field(default_factory=list)
    # Ratios of millpond to nginx: (figure, "<=" or ">=", bound).
    ratios: list = field(default_factory=list)
    # Responses a second that millpond alone should reach.
    least_rate: float = 0
    # Whether requests insist on replies made anew, past everything that was made before.
    fresh: bool = False


def cases(segments: int) -> list:
    numbers = range(1, segments + 1)
    return [
        Case(
            "fmp4", "fMP4 video segments",
            [f"/a.mp4/v1/{n}.m4s" for n in numbers],
            [("server_us", "<=", 1.5), ("machine_us", "<=", 1.15), ("rate", ">=", 0.9)],
        ),
        Case("fmp4-first", "the same, gathered anew", [f"/a.mp4/v1/{n}.m4s" for n in numbers], fresh=True),
        Case("ts", "TS segments", [f"/a.mp4/ts/v1/{n}.ts" for n in numbers], [("server_us", "<=", 4.0)]),
        Case("ts-first", "the same, rewritten anew", [f"/a.mp4/ts/v1/{n}.ts" for n in numbers], fresh=True),
        Case("playlist", "2-hour playlist made anew", ["/film.mp4/v1/index.m3u8"], least_rate=2000, fresh=True),
        Case("hls", "HLS manifest", ["/a.mp4/index.m3u8"], [("rate", ">=", 0.8)]),
        Case("dash", "DASH manifest", ["/a.mp4/index.mpd"], [("rate", ">=", 0.8)]),
    ]


def extract(server, site: Path, chosen: list):
    """Fetches everything that will be asked for, so that nginx has the same bytes as files."""
    shutil.rmtree(site, ignore_errors=True)
    paths = {path for case in chosen for path in case.paths} | {"/a.mp4/v1/init.mp4"}
    print(f"fetching {len(paths)} files from {server.name}", flush=True)
    for path in sorted(paths):
        body = server.get(path)
        if not body:
            raise RuntimeError(f"{server.name}: {path} is empty")
        target = site / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)


def compare(case: Case, ours, other, options, work: Path) -> dict:
    """All rounds of one case."""
    paths = work / f"{case.name}.paths"
    paths.write_text("\n".join(case.paths) + "\n")
    bursts = {ours.name: [], other.name: []}
    for server in (ours, other):
        measure.burst(server, paths, 1, options.connections, case.fresh)
    for number in range(options.rounds):
        for server in (ours, other):
            burst = measure.burst(server, paths, options.seconds, options.connections, case.fresh)
            bursts[server.name].append(burst)
            print(
                f"  {case.name} round {number + 1} {server.name:9} {burst.rate:10.1f}/s "
                f"{burst.server_us:9.1f} us {burst.machine_us:9.1f} us machine",
                flush=True,
            )
    mine, theirs = bursts[ours.name], bursts[other.name]
    sizes = statistics.median(b.size for b in mine), statistics.median(b.size for b in theirs)
    # Heads differ by a few hundred bytes; anything else means that other bytes were served.
    if abs(sizes[0] - sizes[1]) > max(1000, 0.02 * sizes[1]):
        raise RuntimeError(f"{case.name}: responses of {sizes[0]:.0f} and {sizes[1]:.0f} bytes are not the same")
    return {
        "case": case.name,
        "title": case.title,
        ours.name: summary(mine),
        other.name: summary(theirs),
        "ratio": {
            figure: statistics.median(ratio(getattr(a, figure), getattr(b, figure)) for a, b in zip(mine, theirs))
            for figure in ("rate", "server_us", "machine_us")
        },
        "rounds": {name: [asdict(b) for b in of] for name, of in bursts.items()},
    }


def ratio(ours: float, other: float) -> float:
    return ours / other if other > 0 else float("inf")


def summary(bursts: list) -> dict:
    figures = asdict(bursts[0]).keys()
    return {figure: statistics.median(getattr(burst, figure) for burst in bursts) for figure in figures}


def verdicts(case: Case, result: dict, ours: str) -> list:
    """Each target with what was found: (text, met)."""
    found = []
    names = {"server_us": "server CPU", "machine_us": "machine CPU", "rate": "rate"}
    for figure, relation, bound in case.ratios:
        value = result["ratio"][figure]
        met = value <= bound if relation == "<=" else value >= bound
        found.append((f"{names[figure]} ratio {value:.2f} (target {relation} {bound:g})", met))
    if case.least_rate:
        rate = result[ours]["rate"]
        found.append((f"{rate:.0f}/s (target >= {case.least_rate:g}/s)", rate >= case.least_rate))
    return found


def table(chosen: list, results: list, ours: str, other: str):
    print(f"\n{'':40}{'':>10}{'rate/s':>11}{'MB/s':>9}{'p99 ms':>9}{'server us':>11}{'machine us':>12}")
    for case, result in zip(chosen, results):
        for name in (ours, other):
            row = result[name]
            title = f"{case.title} ({row['size'] / 1e3:.1f} kB)" if name == ours else ""
            print(
                f"{title:40}{name:>10}{row['rate']:>11.1f}{row['megabytes']:>9.1f}{row['p99_ms']:>9.2f}"
                f"{row['server_us']:>11.1f}{row['machine_us']:>12.1f}"
            )
        ratios = result["ratio"]
        print(
            f"{'':40}{'ratio':>10}{ratios['rate']:>11.2f}{'':>18}{ratios['server_us']:>11.2f}"
            f"{ratios['machine_us']:>12.2f}"
        )
        for text, met in result["verdicts"]:
            print(f"{'':40}{'met' if met else 'MISSED':>10}  {text}")
    foreign = max(result[name]["foreign"] for result in results for name in (ours, other))
    if foreign > QUIET:
        print(f"\nOther programs had up to {foreign:.0%} of the machine: machine CPU and rates are unsure.")


def version(command: list) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip().split("\n")[0]


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--serve", default=SERVE, help="its arguments, with {media} and {port} (%(default)s)")
    parser.add_argument("--stand-in", action="store_true", help="a second nginx in millpond's place, to try the bench")
    parser.add_argument("--cases", default="fmp4,fmp4-first,ts,ts-first,playlist,hls,dash", help="which to run (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of both servers, for each case (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="of each burst (%(default)s)")
    parser.add_argument("--connections", type=int, default=16, help="of wrk (%(default)s)")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for the run (%(default)s)")
    default = TARGET / "bench/http.json"
    parser.add_argument("--json", type=Path, nargs="?", const=default, help=f"write all figures too ({default})")
    options = parser.parse_args(arguments)
    known = [case.name for case in cases(1)]
    unknown = set(options.cases.split(",")) - set(known)
    if unknown or options.rounds < 1 or options.seconds < 1:
        parser.error(f"cases are {', '.join(known)}; rounds and seconds are 1 or more")
    return options


def run(options) -> dict:
    work = TARGET / "bench"
    folder, site = work / "media", work / "site"
    media.make_all(folder)
    if options.stand_in:
        media.stand_in(folder, work / "stand-in")
        ours = servers.nginx("stand-in", work / "stand-in", work / "stand-in-nginx")
    else:
        ours = servers.millpond(options.server, options.serve, folder, work / "millpond")
    with ours:
        segments = media.segments_of(ours.get("/a.mp4/v1/index.m3u8").decode())
        chosen = [case for case in cases(segments) if case.name in options.cases.split(",")]
        extract(ours, site, chosen)
        with servers.nginx("nginx", site, work / "nginx") as other:
            results = []
            for case in chosen:
                result = compare(case, ours, other, options, work)
                result["verdicts"] = verdicts(case, result, ours.name)
                results.append(result)
            table(chosen, results, ours.name, other.name)
    return {"ours": ours.name, "nginx": version(["nginx", "-v"]), "results": results}


def conclude(options, run) -> int:
    """Runs a comparison under the congestion control asked for, and writes its report; the status to exit with."""
    # So that `with` blocks are left, servers stopped and congestion control set back.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with measure.congestion_control(options.congestion) as congestion:
            found = run(options)
    except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.json:
        report = {
            "kernel": platform.release(),
            "cores": os.cpu_count(),
            "load_average": os.getloadavg(),
            "congestion_control": congestion,
            "options": {key: str(value) for key, value in vars(options).items()},
            **found,
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n")
        print(f"\nall figures are in {options.json}")
    return 0


if __name__ == "__main__":
    sys.exit(conclude(parse(sys.argv[1:]), run))
