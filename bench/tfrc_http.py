#!/usr/bin/env python3
"""A live HTTP response limited by TFRC, beside the kernel's cubic and BBR: bandwidth, frames in time, times between packets.

    cargo build --release -p millpond-link
    bench/tfrc_http.py
    bench/tfrc_http.py --quick

The translation paper (Espeland et al., 5.2) limits the HTTP response by TFRC. Here a server (tfrc_response.py) sends 1 Mbit/s, a chunk for
each of 25 frames a second, over a network with delay and loss in both directions (millpond-link), to viewers (tfrc_viewers.py). Each way is
a congestion control of the kernel, alone or below the throughput equation of RFC 5348. The equation also keeps the kernel's queue of unsent
bytes short, so a way without it and with a short queue is measured too. Ways are measured with all frames, and with those dropped that
waited for half a second. A frame's delay is counted from its due time, without the link's own delay. Frames that did not arrive are not in
time.

Each delay and loss has one network without a limited rate, which all ways share, so they do not compete. The status is 1 where a cell
failed. Needs root.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import netns
from compare import TARGET
from tfrc_response import FPS

WORK = TARGET / "bench/tfrc-http"
PORT = 8000
# Seconds that do not count: those at the beginning, in which connections start, and those at the end, in which late frames still come.
BEGINNING, REST = 3, 2
RULES = {"": "", "-short": ", short queue", "-tfrc": " below TFRC"}
NAMES = {control + rule: name + words for control, name in {"cubic": "cubic", "bbr": "BBR", "reno": "Reno"}.items() for rule, words in RULES.items()}
# Columns of a table: title, key, form and factor of a value.
FIGURES = [
    ("Mbit/s", "mean", "{:.2f}", 1e-6),
    ("variation over 1 s", "variation", "{:.2f}", 1),
    ("within 0.2 s, %", "within-0.2", "{:.0f}", 100),
    ("within 1 s, %", "within-1", "{:.0f}", 100),
    ("dropped, %", "dropped", "{:.0f}", 100),
    ("unsent, kB", "unsent", "{:.0f}", 1e-3),
    ("between packets, ms", "gap-mean", "{:.0f}", 1e3),
    ("its deviation, ms", "gap-deviation", "{:.0f}", 1e3),
]


def needs(options):
    """Ends the program where something is missing that it needs."""
    if os.geteuid():
        sys.exit("error: network namespaces need root: run as root")
    if not shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
        sys.exit("error: ip is not installed: apt install iproute2")
    try:
        netns.binary()
    except RuntimeError as error:
        sys.exit(f"error: {error}")
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    for control in sorted({way.partition("-")[0] for way in options.ways}):
        if control not in known:
            sys.exit(f"error: the kernel has no {control}: modprobe tcp_{control}")
        netns.allow(control)


def judge(watched: dict, told: dict, options, delay: float) -> dict:
    """Figures of a response, from what its viewer saw and what the server told."""
    problem = watched["problem"] or told.get("problem", "")
    numbers = [number for number, _, _ in watched["frames"]]
    if not problem and not numbers:
        problem = "no frame arrived"
    if not problem and numbers != sorted(set(numbers)):
        problem = "frames are not in their order"
    if problem:
        return {"problem": problem}
    number, due, _ = watched["frames"][0]
    start = due - number / FPS
    begin, end = BEGINNING, BEGINNING + options.seconds
    # How late each frame came, without the link's own delay.
    late = [arrived - due - delay for number, due, arrived in watched["frames"] if begin <= number / FPS < end]
    packets = [(at - start, length) for at, length in watched["packets"] if begin <= at - start < end]
    bits = [0] * int(options.seconds)
    for at, length in packets:
        bits[int(at - begin)] += length * 8
    gaps = [b - a for (a, _), (b, _) in itertools.pairwise(packets)]
    if len(gaps) < 2:
        return {"problem": f"{len(packets)} packets arrived"}
    mean, frames = statistics.mean(bits), round(options.seconds * FPS)
    within = {f"within-{limit:g}": sum(one <= limit for one in late) / frames for limit in (0.2, 1)}
    return {
        "problem": "", "mean": mean, "variation": statistics.pstdev(bits) / mean, **within, "latest": max(late, default=None),
        "dropped": told["dropped"] / told["made"], "gap-mean": statistics.mean(gaps), "gap-deviation": statistics.pstdev(gaps),
        "unsent": told["unsent"], "repeats": told["repeated"] / told["sent"], "p": told.get("p", 0.0), "bits": bits,
    }


def network(point: tuple, options) -> list:
    """All ways over one network, at once."""
    delay, loss, run = point
    sent, folder = BEGINNING + options.seconds + REST, WORK / f"{delay:g}-{loss:g}-{run}"
    folder.mkdir(parents=True, exist_ok=True)
    each = itertools.product(range(options.viewers), options.waits, options.ways)
    cells = {f"/{way}?wait={wait:g}&viewer={viewer}&unsent={options.unsent}&seconds={sent:g}": (way, wait, viewer) for viewer, wait, way in each}
    log, seen = folder / "responses.log", folder / "seen.json"
    seen.unlink(missing_ok=True)
    error, link = "", {}
    try:
        # No two networks lose the same packets.
        with netns.Pair(both=f"delay={delay:g}ms,loss={loss:g}%", seed=1000 * run + round(delay + 10 * loss)) as pair:
            pair.a.start(sys.executable, Path(__file__).with_name("tfrc_response.py"), pair.a.address, PORT, log=log)
            pair.b.wait_for(pair.a.address, PORT)
            command = [sys.executable, Path(__file__).with_name("tfrc_viewers.py"), pair.a.address, PORT, sent + 1, seen, *cells]
            viewers = pair.b.run(*command, check=False, timeout=sent + 60)
            error = viewers.stderr[-300:] if viewers.returncode else ""
        link = pair.report
    except (OSError, RuntimeError, subprocess.SubprocessError) as failed:
        error = str(failed)
    if not error and not link:
        error = "the link told nothing"
    if not error and (missed := sum(link[way][name] for way in ("ab", "ba") for name in ("overflowed", "unread", "refused"))):
        error = f"the link lost {missed} packets that it was not told to lose"
    watched = json.loads(seen.read_text()) if seen.exists() else {}
    told = {one["path"]: one for one in map(json.loads, log.read_text().splitlines()) if "path" in one} if not error else {}
    results = []
    for path, (way, wait, viewer) in cells.items():
        if error or path not in watched or path not in told:
            found = {"problem": error or "the server or the viewer told nothing"}
        else:
            found = judge(watched[path], told[path], options, delay / 1e3)
        link_late = max(link[way]["late"]["p99"] for way in ("ab", "ba")) if link else None
        results.append({"way": way, "wait": wait, "delay": delay, "loss": loss, "run": run, "viewer": viewer, "link-late-us": link_late, **found})
    return results


def samples(results: list, key: str, **which) -> list:
    """A figure of the responses that did not fail, of a cell."""
    return [one[key] for one in results if not one["problem"] and all(one[name] == value for name, value in which.items())]


def mean(results: list, key: str, **which):
    """Mean of a figure over viewers and runs; None where there are none."""
    found = samples(results, key, **which)
    return statistics.mean(found) if found else None


def table(results: list, options, wait: float, loss: float) -> str:
    """A row for each way, a column for each figure, with a value for each delay."""
    columns = [figure for figure in FIGURES if figure[1] != "dropped" or wait < float("inf")]
    lines = ["| | " + " | ".join(title for title, _, _, _ in columns) + " |", "|" + "---|" * (len(columns) + 1)]
    for way in options.ways:
        cells = []
        for _, key, form, factor in columns:
            values = [mean(results, key, way=way, wait=wait, delay=delay, loss=loss) for delay in options.delays]
            cells.append(" / ".join("failed" if value is None else form.format(value * factor) for value in values))
        lines.append(f"| {NAMES[way]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def gained(results: list, options, key: str, wait: float, way: str, other: str) -> tuple:
    """What a way has more of a figure than another one, as the mean over the points with loss, and its standard error."""
    gains, errors = [], []
    for delay, loss in itertools.product(options.delays, filter(None, options.losses)):
        of = lambda name: samples(results, key, way=name, wait=wait, delay=delay, loss=loss)
        ours, theirs = of(way), of(other)
        if len(ours) > 1 and len(theirs) > 1:
            gains.append(statistics.mean(ours) - statistics.mean(theirs))
            errors.append(sum(statistics.variance(found) / len(found) for found in (ours, theirs)))
    return (statistics.mean(gains), sum(errors) ** 0.5 / len(gains)) if gains else (None, None)


def compared(results: list, options) -> str:
    """What each rule brings beside the same control with another rule or none."""
    keys = [("variation", 1, "{:+.3f}", ""), ("within-0.2", 100, "{:+.1f}", " points"), ("within-1", 100, "{:+.1f}", " points")]
    lines = ["| | | variation | frames within 0.2 s | frames within 1 s |", "|---|---|---|---|---|"]
    for wait, (other, way) in itertools.product(options.waits, itertools.combinations(sorted(options.ways), 2)):
        if way.partition("-")[0] != other.partition("-")[0]:
            continue
        cells = []
        for key, factor, form, unit in keys:
            gain, error = gained(results, options, key, wait, way, other)
            cells.append("-" if gain is None else f"{form.format(gain * factor)} ± {form.format(error * factor)[1:]}{unit}")
        lines.append(f"| {NAMES[way]}, beside {NAMES[other]} | {shown(wait)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def shown(wait: float) -> str:
    return "all frames sent" if wait == float("inf") else f"frames dropped after {wait:g} s"


def parse() -> argparse.Namespace:
    numbers = lambda text: [float(word) for word in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", type=lambda text: text.split(","), default="cubic,cubic-short,cubic-tfrc,bbr,bbr-tfrc", help="also bbr-short, and reno with all three (%(default)s)")
    parser.add_argument("--delays", type=numbers, default="50,100,200", help="milliseconds each way (%(default)s)")
    parser.add_argument("--losses", type=numbers, default="0,0.5,1", help="percent each way (%(default)s)")
    parser.add_argument("--waits", type=numbers, default="inf,0.5", help="seconds after which a frame is dropped (%(default)s)")
    parser.add_argument("--seconds", type=float, default=24, help="measured of each response (%(default)s)")
    parser.add_argument("--unsent", type=int, default=10_000, help="bytes unsent in the kernel from which a short queue takes none (%(default)s)")
    parser.add_argument("--viewers", type=int, default=2, help="of each way at once, which lose other packets (%(default)s)")
    parser.add_argument("--runs", type=int, default=6, help="of each with loss, and one without (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="one delay, two losses, one run: half a minute")
    parser.add_argument("--from-json", type=Path, help="show the runs of this file instead of measuring")
    parser.add_argument("--json", type=Path, default=WORK / "result.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    if options.quick:
        options.delays, options.losses, options.runs = [100.0], [0.0, 1.0], 1
    if unknown := set(options.ways) - set(NAMES):
        parser.error(f"no way: {', '.join(sorted(unknown))}")
    return options


def measure(options) -> list:
    """Runs one behind the other; the networks of a run at once."""
    needs(options)
    WORK.mkdir(parents=True, exist_ok=True)
    results = []
    for run in range(1, options.runs + 1):
        points = [(delay, loss, run) for delay in options.delays for loss in options.losses if loss or run == 1]
        load = os.getloadavg()[0]
        with concurrent.futures.ThreadPoolExecutor(len(points)) as pool:
            found = [one for cells in pool.map(lambda point: network(point, options), points) for one in cells]
        late = max((one["link-late-us"] or 0 for one in found), default=0)
        print(f"run {run}: load {load:.1f} to {os.getloadavg()[0]:.1f}, the link's p99 at most {late} us late", file=sys.stderr, flush=True)
        results += found
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results) + "\n")
    return results


def main():
    options = parse()
    results = json.loads(options.from_json.read_text()) if options.from_json else measure(options)
    each = ", ".join(f"{delay:g}" for delay in options.delays)
    print(f"Each cell has the values of {each} ms each way. Dropped frames are not in time.")
    for wait, loss in itertools.product(options.waits, options.losses):
        print(f"\n{shown(wait).capitalize()}, {loss:g} % lost each way:\n\n{table(results, options, wait, loss)}")
    print(f"\nDifferences with loss, the mean over delays and losses, ± standard error:\n\n{compared(results, options)}")
    failed = [one for one in results if one["problem"]]
    for one in failed:
        print(f"{one['way']} wait {one['wait']:g}, {one['delay']:g} ms, {one['loss']:g} %, run {one['run']}: {one['problem']}", file=sys.stderr)
    if failed:
        sys.exit(f"error: {len(failed)} of {len(results)} cells failed")


if __name__ == "__main__":
    main()
