#!/usr/bin/env python3
"""The measurements of the AMPS paper (Zhang et al., NOSSDAV 2004), repeated on Millpond.

Usage: amps.py [--bin MILLPOND] [--profiled MILLPOND] [--out FOLDER] [--quick] [--parts pipes,rounds,streams,...]

  pipes       where the server's CPU time is spent, and the share of pipes between modules (Figure 2)
  rounds      CPU and packets' delay by the time between two rounds of transmission (Figure 6, section 4.3)
  streams     CPU of as many streams as AMPS's data plane carried (Table 2)
  signalling  CPU and delay of requests by the rate of sessions that begin and leave at once (Figure 3)
  arrivals    time between frames at the receivers, and the time that they must buffer (Figure 4)
  sessions    delay of requests and late packets while sessions play, by their number and by their rate (section 4.2)

Clients are `millpond load`, on the same machine and over the loopback. `pipes` needs perf and a build with function names:
`cargo build --profile profiling -p millpond`. Printed are the Markdown tables of docs/measured/rtsp.md, with AMPS's figures beside ours.
FOLDER gets them as `amps.md`, all figures as `amps.json`, and plots (SVG).
"""

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import amps_profile
import amps_tables
import measure
import servers
from compare import TARGET, conclude
from rtsp_capacity import CLIPS, make, process_seconds

PARTS = ["pipes", "rounds", "streams", "signalling", "arrivals", "sessions"]
# The clips of Table 1, by AMPS's names.
NAMES = {"V10": "V10", "V100": "V100f10", "V300": "V300f15", "V1024": "V1024"}
# AMPS's sessions lasted this long, so that 5 a second made 600.
STAY = 120
# A number of sessions is carried up to AMPS's delay of requests at the 95th percentile, and up to this share of late packets.
MOST_DELAY_MS, MOST_LATE = 120.0, 1.0
# Values of flags that are not given, and of those with --quick.
USUAL = {
    "seconds": (8.0, 2.0), "pipe_seconds": (20.0, 4.0), "lengths": ("5,15,33", "5,33"), "round_streams": ("500,2000,4000", "1000"),
    "rates": ("1,5,10,20,30,100,300,1000", "5,30,200"), "stay": (30.0, 3.0), "session_rates": ("50,200,500", "100"), "most": (4800, 600),
    "arrivals": (400.0, 800.0), "settle": (2.0, 1.0),
}


class Bench:
    """One run: the settings, and servers with one generator each."""

    def __init__(self, options):
        self.options = options
        self.folder = options.media.resolve()
        self.foreign = []
        """Shares of the machine that other programs had, of each measurement."""

    def server(self, *arguments, binary: Path | None = None) -> servers.Edge:
        return servers.Edge(binary or self.options.bin, str(self.folder), TARGET / "bench/amps", "--log", "warn", *arguments)

    @contextlib.contextmanager
    def load(self, server, clip: str, *arguments):
        url = f"rtsp://127.0.0.1:{server.rtsp}/{NAMES[clip]}.mp4"
        command = [str(part) for part in (self.options.bin, "load", url, "--json", "-", *arguments)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def report(self, process) -> dict:
        # The status is another one where sessions failed; the report says so.
        output = process.communicate(timeout=120)[0]
        if not output:
            raise RuntimeError(f"millpond load gave no report: {' '.join(process.args)}")
        return json.loads(output)

    def alone(self, server, clip: str, *arguments) -> dict:
        with self.load(server, clip, *arguments) as process:
            return self.report(process)

    def newcomers(self, server, rate: float, seconds: float):
        """Sessions of 1 s that begin at a rate."""
        return self.load(server, "V300", "--rate", f"{rate:g}", "--arrivals", "poisson", "--watch", "1s", "--duration", f"{1000 * seconds:.0f}ms")

    def warm(self, server, clip: str):
        """A session before all others, so that what is loaded with the first one is no session's."""
        report = self.alone(server, clip, "--clients", 1, "--watch", "500ms")
        if report["sessions"]["failed"]:
            raise RuntimeError(f"{clip} does not play: {report['failures']}\n{server.tail()}")

    def costs(self, server, processes: list):
        """A function that returns the CPU since now: of the server, in percent of a core. Notes other programs' share."""
        moment = lambda: (server.cpu_seconds(), measure.machine_seconds(), sum(process_seconds(one.pid) for one in processes), time.monotonic())
        before = moment()

        def spent() -> float:
            cpu, machine, generators, wall = (b - a for a, b in zip(before, moment()))
            self.foreign.append(max(0.0, machine - cpu - generators) / wall / (os.cpu_count() or 1))
            return 100 * cpu / wall

        return spent

    def steady(self, server, clip: str, streams: int, seconds: float, during=None) -> dict:
        """Streams that all play: CPU and packets of the time after all have arrived, in which `during` runs."""
        ramp = max(1.0, streams / self.options.arrivals)
        begin = ramp + self.options.settle
        # What begins within the window may end a little behind it.
        total = begin + seconds + (3 if during else 1)
        self.warm(server, clip)
        began = time.monotonic()
        with self.load(server, clip, "--clients", streams, "--ramp-up", f"{1000 * ramp:.0f}ms", "--duration", f"{1000 * total:.0f}ms") as process:
            time.sleep(max(0.0, began + begin - time.monotonic()))
            spent = self.costs(server, [process])
            found = during(seconds) if during else None
            time.sleep(max(0.0, began + begin + seconds - time.monotonic()))
            cpu = spent()
            report = self.report(process)
        window = [step for step in report["timeline"] if begin < step["elapsed"] <= total - 0.5]
        packets = sum(step["packets-per-second"] for step in window) or 1
        mean = lambda name: statistics.mean(step[name] for step in window) if window else 0.0
        behind = report["histograms"]["behind"]
        media = report["media"]
        return {
            "clip": clip, "streams": streams, "cpu": cpu, "active": mean("active"), "failed": report["sessions"]["failed"],
            "mbps": mean("megabits-per-second"), "packets": mean("packets-per-second"),
            "late": sum(step["packets-per-second"] * step["late-percent"] for step in window) / packets, "lost": media["lost-percent"],
            "delay": media["behind"], "buffer": media["buffer"], "within_52": amps_tables.within(behind, amps_tables.BUFFER), "behind": behind, "during": found,
            "requests": report["requests"],
        }


def pipes(bench: Bench) -> dict:
    options = bench.options
    missing = amps_profile.missing(options.profiled)
    if missing:
        print(f"SKIPPED: pipes: {missing}", file=sys.stderr)
        return {"skipped": missing}
    recording = TARGET / "bench/amps/perf.data"
    with bench.server(binary=options.profiled) as server:

        def profile(seconds: float):
            with bench.newcomers(server, 600 / STAY, seconds):
                amps_profile.record(server.process.pid, seconds, recording)

        found = bench.steady(server, "V300", 600, options.pipe_seconds, during=profile)
    shares = amps_profile.shares(recording, options.profiled)
    share = shares["groups"].get(amps_profile.PIPES, 0)
    print(f"pipes: {shares['samples']} samples, CPU {found['cpu']:.1f} %, pipes {share:.2f} % of it", flush=True)
    return {**shares, "steady": found}


def rounds(bench: Bench) -> list:
    results = []
    for streams, length in itertools.product(bench.options.round_streams, bench.options.lengths):
        with bench.server("--rtsp-round", f"{length}ms") as server:
            found = bench.steady(server, "V10", streams, bench.options.seconds)
        results.append({"round": length, **found})
        print(f"rounds: {length:3} ms, {streams} streams: CPU {found['cpu']:5.1f} %, packets late by p50 {found['delay']['p50']:.1f} and "
              f"p99 {found['delay']['p99']:.1f} ms, {found['within_52']:.3f} % within 52 ms", flush=True)
    return results


def streams(bench: Bench) -> list:
    results = []
    for clip, number in amps_tables.TABLE_2.items():
        with bench.server() as server:
            found = bench.steady(server, clip, number["streams"], bench.options.seconds)
        results.append(found)
        print(f"streams: {clip} {number['streams']}: CPU {found['cpu']:.1f} %, {found['mbps']:.1f} Mbit/s, {found['packets']:.0f} packets/s, "
              f"{found['late']:.2f} % late, {found['lost']:.2f} % lost", flush=True)
    return results


def signalling(bench: Bench) -> list:
    results = []
    with bench.server() as server:
        bench.warm(server, "V300")
        for rate in bench.options.rates:
            arguments = ("--mute", "--rate", rate, "--arrivals", "poisson", "--duration", f"{bench.options.seconds:g}s")
            with bench.load(server, "V300", *arguments) as process:
                spent = bench.costs(server, [process])
                time.sleep(bench.options.seconds - 0.2)
                cpu = spent()
                report = bench.report(process)
            methods = {method["method"]: method["latency"] for method in report["methods"]}
            results.append({"rate": rate, "cpu": cpu, "started": report["sessions"]["started-per-second"], "failed": report["sessions"]["failed"],
                            "requests": report["requests"], "methods": methods})
            print(f"signalling: {rate:4} a second: CPU {cpu:5.1f} %, requests p50 {report['requests']['p50']:.2f} p95 {report['requests']['p95']:.2f} ms, "
                  f"{report['sessions']['failed']} failed", flush=True)
    return results


def arrivals(bench: Bench) -> dict:
    """Sessions that arrive and leave all the time, 600 at once."""
    options = bench.options
    rate = 600 / options.stay
    total = options.stay + options.seconds + 2
    arguments = ("--rate", f"{rate:g}", "--arrivals", "poisson", "--watch", f"{1000 * options.stay:.0f}ms", "--duration", f"{1000 * total:.0f}ms")
    with bench.server() as server:
        bench.warm(server, "V300")
        began = time.monotonic()
        with bench.load(server, "V300", *arguments) as process:
            time.sleep(max(0.0, began + options.stay + 1 - time.monotonic()))
            spent = bench.costs(server, [process])
            time.sleep(options.seconds)
            cpu = spent()
            report = bench.report(process)
    media = report["media"]
    print(f"arrivals: {rate:g} a second: between frames mean {media['between']['mean']:.2f} max {media['between']['max']:.1f} ms, buffer p50 "
          f"{media['buffer']['p50']:.1f} p99 {media['buffer']['p99']:.1f} max {media['buffer']['max']:.1f} ms", flush=True)
    return {"rate": rate, "stay": options.stay, "cpu": cpu, "active": max(step["active"] for step in report["timeline"]),
            "failed": report["sessions"]["failed"], "between": media["between"], "buffer": media["buffer"], "late": media["late-percent"],
            "lost": media["lost-percent"], "requests": report["requests"], "histogram": report["histograms"]["between"]}


def beside(bench: Bench, playing: int, rate: float) -> dict:
    """Sessions that begin and leave at a rate, while others play."""
    with bench.server() as server:

        def signal(seconds: float) -> dict:
            with bench.newcomers(server, rate, seconds) as process:
                return bench.report(process)

        found = bench.steady(server, "V300", playing, bench.options.seconds, during=signal)
    came = found.pop("during")
    result = {**found, "rate": rate, "requests": came["requests"], "startup": came["startup"], "began": came["sessions"]["started"],
              "failed": found["failed"] + came["sessions"]["failed"]}
    carried = result["failed"] == 0 and result["requests"]["p95"] <= MOST_DELAY_MS and result["late"] + result["lost"] < MOST_LATE
    print(f"sessions: {playing} play, {rate:g} a second begin: CPU {result['cpu']:5.1f} %, requests p50 {result['requests']['p50']:.2f} p95 "
          f"{result['requests']['p95']:.2f} ms, {result['late']:.2f} % late, {result['failed']} failed", flush=True)
    return {**result, "carried": carried}


def sessions(bench: Bench) -> dict:
    by_number, playing = [], 600
    while playing <= bench.options.most:
        # As many begin as do where each session lasts as long as AMPS's.
        by_number.append(beside(bench, playing, playing / STAY))
        if not by_number[-1]["carried"]:
            break
        playing *= 2
    return {"number": by_number, "rate": [beside(bench, 600, rate) for rate in bench.options.session_rates]}


RUNS = {"pipes": pipes, "rounds": rounds, "streams": streams, "signalling": signalling, "arrivals": arrivals, "sessions": sessions}


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = lambda name: f"({USUAL[name][0]}; with --quick {USUAL[name][1]})"
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--profiled", type=Path, default=TARGET / "profiling/millpond", help="that with function names (%(default)s)")
    parser.add_argument("--out", type=Path, default=TARGET / "bench/amps/results", help="folder for tables and plots (%(default)s)")
    parser.add_argument("--media", type=Path, default=TARGET / "bench/rtsp-media", help="where clips are kept (%(default)s)")
    parser.add_argument("--parts", default=",".join(PARTS), help="(%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements, in about a minute")
    parser.add_argument("--seconds", type=float, help=f"of most measurements {usual('seconds')}")
    parser.add_argument("--pipe-seconds", type=float, help=f"of the profile {usual('pipe_seconds')}")
    parser.add_argument("--lengths", help=f"times between rounds in ms {usual('lengths')}")
    parser.add_argument("--round-streams", help=f"numbers of V10 streams {usual('round_streams')}")
    parser.add_argument("--rates", help=f"sessions a second, signalling alone {usual('rates')}")
    parser.add_argument("--stay", type=float, help=f"seconds that each of 600 sessions lasts; AMPS: {STAY} {usual('stay')}")
    parser.add_argument("--session-rates", help=f"sessions a second beside 600 that play {usual('session_rates')}")
    parser.add_argument("--most", type=int, help=f"sessions at most {usual('most')}")
    parser.add_argument("--arrivals", type=float, help=f"clients a second that arrive before a measurement {usual('arrivals')}")
    parser.add_argument("--settle", type=float, help=f"seconds from the last arrival to a measurement {usual('settle')}")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for the run (%(default)s)")
    options = parser.parse_args(arguments)
    for name, (long, short) in USUAL.items():
        if getattr(options, name) is None:
            setattr(options, name, short if options.quick else long)
    for name in ("lengths", "round_streams", "rates", "session_rates"):
        setattr(options, name, [int(word) for word in getattr(options, name).split(",")])
    options.parts = options.parts.split(",")
    if not set(options.parts) <= set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)}")
    if options.seconds < 2 or options.stay < 2:
        parser.error("measurements and sessions last 2 s or more")
    options.json = options.out / "amps.json"
    return options


def run(options) -> dict:
    for name in NAMES.values():
        make(name, options.media)
    bench, began = Bench(options), time.monotonic()
    results = {part: RUNS[part](bench) for part in options.parts}
    results["foreign"] = max(bench.foreign, default=0.0)
    results["quick"], results["minutes"] = options.quick, (time.monotonic() - began) / 60
    options.out.mkdir(parents=True, exist_ok=True)
    text = amps_tables.everything(results, options.out)
    (options.out / "amps.md").write_text(text)
    print("\n" + text)
    return {"results": results}


if __name__ == "__main__":
    sys.exit(conclude(parse(sys.argv[1:]), run))
