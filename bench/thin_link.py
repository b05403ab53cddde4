#!/usr/bin/env python3
"""Prefetch on a thin link: real servers behind `tc tbf`, a network namespace for each, all prefetch modes.

Needs root. For each bandwidth (as a multiple of the media's rate) and mode: one player in real time that holds a second of
media ahead watches a title from its start to its end, then others begin other titles and leave early. Stalls and startup
are the players', bytes are the server's counters. All settings run at once, each with a link of its own. Each stall is printed with
its cause (thin_causes.py), found from the server's log and from what came over the link.
"""

import argparse
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import servers
import thin_causes
from compare import TARGET

TOP = Path(__file__).resolve().parent
SECONDS = 60
EARLY = [6, 8, 9, 11, 12, 13, 15, 17, 18, 20, 21, 23]
MODES = ["on-demand", "window", "half", "active"]


def run(*command, check=True):
    return subprocess.run([str(part) for part in command], check=check, capture_output=True, text=True)


def film(path: Path):
    """A minute at about 1 Mbit/s."""
    if not path.exists():
        run("ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=size=640x360:rate=25:duration={SECONDS}",
            "-f", "lavfi", "-i", f"sine=duration={SECONDS}", "-vf", "noise=alls=20:allf=t", "-c:v", "libx264", "-preset",
            "veryfast", "-b:v", "900k", "-minrate", "900k", "-maxrate", "900k", "-bufsize", "900k", "-g", "50",
            "-x264-params", "nal-hrd=cbr:keyint=50:scenecut=0", "-c:a", "aac", "-b:a", "96k", "-movflags", "+faststart", "-y", path)


class Link:
    """A namespace with an origin in it, behind a token bucket; farther away by a round trip in milliseconds, where given."""

    def __init__(self, number: int, rate: float, site: Path, work: Path, round_trip: float = 0):
        self.name = f"thin{number}"
        self.address = f"10.77.{number}.2"
        self.url = f"http://{self.address}:8000/"
        self.way = None
        near, far = f"th{number}a", f"th{number}b"
        run("ip", "netns", "del", self.name, check=False)
        run("ip", "link", "del", near, check=False)
        run("ip", "netns", "add", self.name)
        inside = ("ip", "netns", "exec", self.name)
        if round_trip:
            self.way = long_way(near, far, round_trip / 2, work)
            run("ip", "link", "set", far, "netns", self.name)
        else:
            run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", self.name)
        run("ip", "addr", "add", f"10.77.{number}.1/24", "dev", near)
        run("ip", "link", "set", near, "up")
        run(*inside, "ip", "addr", "add", f"{self.address}/24", "dev", far)
        run(*inside, "ip", "link", "set", far, "up")
        # Without segmentation offload, so that the bucket sees packets.
        run(*inside, "ethtool", "-K", far, "tso", "off", "gso", "off", check=False)
        # A quarter of a millisecond at once, where packets of an Ethernet are less.
        run(*inside, "tc", "qdisc", "add", "dev", far, "root", "tbf", "rate", f"{int(rate)}bit", "burst", max(4000, int(rate / 32000)),
            "latency", "250ms")
        command = [*inside, sys.executable, TOP / "slow_origin.py", site, "8000", "0", work / "origin.log", self.address]
        self.origin = subprocess.Popen([str(part) for part in command])

    def close(self):
        for process in filter(None, (self.origin, self.way)):
            process.terminate()
            process.wait()
        run("ip", "netns", "del", self.name, check=False)


def long_way(near: str, far: str, delay: float, work: Path) -> subprocess.Popen:
    """Two devices so many milliseconds apart (far.c); gives the process between them once they are there."""
    run("cc", "-O2", "-o", work / "far", TOP / "far.c")
    process = subprocess.Popen([str(part) for part in (work / "far", near, far, delay)])
    while any(run("ip", "link", "set", "dev", name, "txqueuelen", 10000, check=False).returncode for name in (near, far)):
        if process.poll() is not None:
            raise RuntimeError(f"far ended with {process.returncode}")
        time.sleep(0.02)
    return process


class Sampler:
    """Bytes that came over a link, every 20 ms, until it is closed."""

    def __init__(self, number: int):
        self.file = Path(f"/sys/class/net/th{number}a/statistics/rx_bytes")
        self.samples = []
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.ends.wait(0.02):
            self.samples.append((time.time(), int(self.file.read_text())))

    def close(self):
        self.ends.set()
        self.thread.join()


def measure(number: int, factor: float, mode: str, rate: float, options, results: dict):
    work = TARGET / f"bench/thin/{number}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    link = Link(number, rate * factor * 1.05, options.site, work)
    sampler = Sampler(number)
    try:
        arguments = ["--workers", 1, "--prefetch", mode, "--slice", options.slice, "--segment-duration", options.segment,
                     "--log", "info,millpond_store=trace", "--log-format", "json"]
        with servers.Edge(options.server, link.url, work, *arguments, *options.serve.split(), name=mode, access_log=True) as server:

            def watch(title: int, seconds=None) -> dict:
                report = work / "report.json"
                load = [options.server, "load", f"{server.url}/film-{title}.mp4/ts/index.m3u8", "--clients", "1",
                        "--buffer", "1s", "--abr", "highest", "--json", report]
                run(*load, *(["--duration", f"{seconds}s"] if seconds else []), check=False)
                return json.loads(report.read_text())

            whole = watch(0)
            before = server.place()
            early = [watch(title, seconds) for title, seconds in enumerate(EARLY, 1)]
            time.sleep(1)
            after = server.place()
            gained = lambda name: after[name] - before[name]
            results[factor, mode] = {
                "whole": whole, "early": early, "prefetched": gained("prefetched-bytes"),
                "unused": gained("prefetched-unused-bytes"), "origin": gained("origin-bytes"),
                "bandwidth": (after["bandwidth-bps"] or 0) / 8,
            }
        sampler.close()
        duration = float(options.segment.removesuffix("s"))
        log = (work / "output.log").read_text(errors="replace")
        results[factor, mode]["causes"] = thin_causes.stalls(log, sampler.samples, rate * factor * 1.05 / 8, duration)
    finally:
        sampler.close()
        link.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--factors", default="1.05,1.15,1.5,2,4", help="of the media's rate (%(default)s)")
    parser.add_argument("--modes", default=",".join(MODES), help="(%(default)s)")
    parser.add_argument("--slice", default="1MiB", help="(%(default)s)")
    parser.add_argument("--serve", default="", help="more arguments of millpond")
    parser.add_argument("--segment", default="4s", help="length of segments (%(default)s)")
    parser.add_argument("--base", type=int, default=0, help="number of the first namespace, where several run (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/thin.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    options.site = TARGET / "bench/thin-site"
    options.site.mkdir(parents=True, exist_ok=True)
    first = options.site / "film-0.mp4"
    film(first)
    for number in range(1, len(EARLY) + 1):
        path = options.site / f"film-{number}.mp4"
        if not path.exists():
            path.hardlink_to(first)
    rate = first.stat().st_size * 8 / SECONDS
    print(f"{SECONDS} s of {rate / 1e6:.2f} Mbit/s, slices of {options.slice}, segments of {options.segment}; bandwidth is that of payload")
    results, threads = {}, []
    settings = [(float(factor), mode) for factor in options.factors.split(",") for mode in options.modes.split(",")]
    for number, (factor, mode) in enumerate(settings):
        threads.append(threading.Thread(target=measure, args=(options.base + number, factor, mode, rate, options, results)))
        threads[-1].start()
        time.sleep(0.3)
    for thread in threads:
        thread.join()
    print(f"{'bandwidth':>10} {'mode':10} {'startup s':>10} {'stalls':>7} {'stalled s':>10} | leaving early: "
          f"{'startup s':>10} {'stalls':>7} {'origin MB':>10} {'ahead MB':>9} {'unused MB':>10}")
    for factor, mode in settings:
        result = results.get((factor, mode))
        if not result:
            print(f"{factor:10} {mode:10} failed")
            continue
        whole, early = result["whole"], result["early"]
        starts = [report["startup"]["p50"] / 1e3 for report in early if report["startup"]["count"]]
        stalls = sum(report["stalls"]["count"] for report in early)
        print(f"{factor:10} {mode:10} {whole['startup'].get('p50', 0) / 1e3:10.2f} {whole['stalls']['count']:7} "
              f"{whole['stalls']['seconds']:10.2f} | {'':14} {sum(starts) / max(len(starts), 1):10.2f} {stalls:7} "
              f"{result['origin'] / 1e6:10.2f} {result['prefetched'] / 1e6:9.2f} {result['unused'] / 1e6:10.2f}")
    for (factor, mode), result in sorted(results.items()):
        for stall in result["causes"]:
            print(f"{factor} {mode}: {thin_causes.show(stall)}")
    options.json.write_text(json.dumps([{"factor": f, "mode": m, **r} for (f, m), r in results.items()], indent=1))


if __name__ == "__main__":
    main()
