#!/usr/bin/env python3
"""Prefetch on a thin link: real servers behind nginx, a network namespace for each, all prefetch modes.

Needs root, `nginx`, `tc` and `ffmpeg`. A cell is a protocol, a kind of bit rate, a shape of the link and a prefetch mode. In each cell
one player in real time that holds a second of media ahead watches a title from its start to its end, then others begin other titles
and leave early. Stalls and startup are the players', bytes are the server's counters. Cells run at once, each with a link of its own.

Shapes: a number is a smooth link, as a multiple of the media's rate (`tc tbf`). `limited:N` is a fast link to an nginx that limits each
reply to N times the rate behind its first 256 kB (`limit_rate`). `halves:N` is a smooth link that has half of its rate after 30 s.

Each stall over HLS is printed with its cause (thin_causes.py), found from the server's log and from what came over the link. The status
is 1 where a cell failed.
"""

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import servers
import thin_causes
from compare import TARGET

TOP = Path(__file__).resolve().parent
SECONDS = 60
EARLY = [6, 8, 9, 11, 12, 13, 15, 17, 18, 20, 21, 23]
MODES = ["on-demand", "half", "window", "window:4", "active", "full"]
SHAPES = "1.15,1.5,2,limited:1.3,halves:2.6"


def run(*command, check=True):
    return subprocess.run([str(part) for part in command], check=check, capture_output=True, text=True)


def film(path: Path, is_vbr: bool = False):
    """A minute at about 1 Mbit/s; where its rate varies, the first 15 s have 1.6 times the mean."""
    if path.exists():
        return
    rates = ["-maxrate", "900k", "-minrate", "900k", "-bufsize", "900k"]
    parameters = "nal-hrd=cbr:keyint=50:scenecut=0"
    if is_vbr:
        first = 15 * 25
        rates, parameters = [], f"keyint=50:scenecut=0:zones=0,{first - 1},b=1.75/{first},{25 * SECONDS},b=0.8"
    run("ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=size=640x360:rate=25:duration={SECONDS}",
        "-f", "lavfi", "-i", f"sine=duration={SECONDS}", "-vf", "noise=alls=20:allf=t", "-c:v", "libx264", "-preset",
        "veryfast", "-b:v", "900k", *rates, "-g", "50", "-x264-params", parameters, "-c:a", "aac", "-b:a", "96k",
        "-movflags", "+faststart", "-y", path)


NGINX = """
user root;
worker_processes 1;
daemon off;
pid {work}/nginx.pid;
error_log {work}/nginx.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  sendfile on;
  server {{ listen {address}:8000; root {site}; {limits} }}
}}
"""


class Link:
    """A namespace with an origin in it, behind a token bucket; farther away by a round trip in milliseconds, where given.

    The origin is nginx where it has `limits`, a text of its configuration that may be empty.
    """

    def __init__(self, number: int, rate: float, site: Path, work: Path, round_trip: float = 0, limits: str | None = None):
        self.name = f"thin{number}"
        self.address = f"10.77.{number}.2"
        self.url = f"http://{self.address}:8000/"
        self.way = self.later = None
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
        self.shape = (*inside, "tc", "qdisc", "replace", "dev", far, "root", "tbf")
        self.limit(rate)
        if limits is None:
            command = [*inside, sys.executable, TOP / "slow_origin.py", site, "8000", "0", work / "origin.log", self.address]
        else:
            (work / "nginx.conf").write_text(NGINX.format(work=work, site=site, address=self.address, limits=limits))
            command = [*inside, "nginx", "-e", work / "nginx.log", "-c", work / "nginx.conf"]
        self.origin = subprocess.Popen([str(part) for part in command])

    def limit(self, rate: float):
        """Sets the rate, in bits a second."""
        # A quarter of a millisecond at once, where packets of an Ethernet are less.
        run(*self.shape, "rate", f"{int(rate)}bit", "burst", max(4000, int(rate / 32000)), "latency", "250ms")

    def close(self):
        if self.later:
            self.later.cancel()
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


class Cell(NamedTuple):
    """What is measured at once: a protocol, a kind of bit rate, a shape of the link, and a prefetch mode."""

    protocol: str
    rates: str
    shape: str
    mode: str


def link_of(shape: str, number: int, rate: float, site: Path, work: Path) -> Link:
    """The link of a shape, for media of a rate. Headers take a twentieth of what passes."""
    kind, _, factor = shape.rpartition(":")
    wanted = rate * float(factor)
    if kind == "limited":
        return Link(number, 1e9, site, work, limits=f"limit_rate_after 256k; limit_rate {int(wanted / 8)};")
    link = Link(number, wanted * 1.05, site, work, limits="")
    if kind == "halves":
        link.later = threading.Timer(30, link.limit, [wanted * 1.05 / 2])
        link.later.start()
    return link


def watch(cell: Cell, server: servers.Edge, options, work: Path, title: int, seconds=None) -> dict:
    """One player: its startup and stalled seconds, how often it stalled, and over RTSP the share of late packets."""
    report = work / "report.json"
    film_name = f"film-{title}-{cell.rates}.mp4"
    if cell.protocol == "hls":
        load = [options.server, "load", f"{server.url}/{film_name}/ts/index.m3u8", "--clients", "1", "--buffer", "1s", "--abr", "highest"]
        load += ["--duration", f"{seconds}s"] if seconds else []
    else:
        load = [options.server, "load", f"rtsp://127.0.0.1:{server.rtsp}/{film_name}", "--clients", "1", "--once", "--transport", "tcp", "--silence", "60s"]
        load += ["--watch", f"{seconds or SECONDS}s", "--duration", f"{2 * SECONDS}s"]
    report.unlink(missing_ok=True)
    done = run(*load, "--json", report, check=False)
    if not report.exists():
        raise RuntimeError(f"load gave no report: {done.stderr[-300:]}")
    figures = json.loads(report.read_text())
    if cell.protocol == "hls":
        return {"startup": figures["startup"].get("p50", 0) / 1e3, "stalls": figures["stalls"]["count"], "stalled": figures["stalls"]["seconds"]}
    if figures["sessions"]["failed"]:
        causes = "; ".join(f"{failure['count']} x {failure['kind']}: {failure.get('example', '')}" for failure in figures["failures"])
        raise RuntimeError(f"{film_name}: the session failed: {causes}")
    late = figures["media"]["late-percent"]
    # Seconds of media that came late.
    return {"startup": figures["startup"]["p50"] / 1e3, "stalls": 0, "stalled": late / 100 * (seconds or SECONDS)}


def measure(number: int, cell: Cell, rate: float, options, results: dict):
    work = TARGET / f"bench/thin/{number}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        link = link_of(cell.shape, number, rate, options.site, work)
        sampler = Sampler(number)
        try:
            arguments = ["--workers", 1, "--prefetch", cell.mode, "--slice", options.slice, "--cache-size", "256MiB", "--segment-duration", options.segment,
                         "--log", "info,millpond_store=trace", "--log-format", "json"]
            with servers.Edge(options.server, link.url, work, *arguments, *options.serve.split(), name=cell.mode, access_log=True) as server:
                whole = watch(cell, server, options, work, 0)
                before = server.place()
                early = [watch(cell, server, options, work, title, seconds) for title, seconds in enumerate(EARLY[:options.early], 1)]
                time.sleep(1)
                after = server.place()
                gained = lambda name: after[name] - before[name]
                results[cell] = {
                    "whole": whole, "early": early, "prefetched": gained("prefetched-bytes"),
                    "unused": gained("prefetched-unused-bytes"), "origin": gained("received-bytes"),
                    "bandwidth": (after["bandwidth-bps"] or 0) / 8, "causes": [],
                }
        finally:
            sampler.close()
            link.close()
        if cell.protocol == "hls" and cell.shape.replace(".", "").isdigit():
            log = (work / "output.log").read_text(errors="replace")
            duration = float(options.segment.removesuffix("s"))
            results[cell]["causes"] = thin_causes.stalls(log, sampler.samples, rate * float(cell.shape) * 1.05 / 8, duration)
    except Exception as error:  # noqa: BLE001, a cell that failed is told at the end
        results[cell] = {"failed": f"{type(error).__name__}: {error}"}


def judge(results: dict, cells: list) -> list:
    """Cells in which Active stalls longer than another mode that sends as it receives: by more than a twentieth and 0.2 s."""
    lost = []
    for cell in (cell for cell in cells if cell.mode == "active"):
        stalled = lambda mode: sum(one["stalled"] for one in results[cell._replace(mode=mode)]["early"] + [results[cell._replace(mode=mode)]["whole"]])
        others = {other.mode: stalled(other.mode) for other in cells if other[:3] == cell[:3] and other.mode not in ("active", "full")}
        best = min(others, key=others.get, default=None)
        if best and stalled("active") > others[best] * 1.05 + 0.2:
            lost.append(f"{cell.protocol} {cell.rates} {cell.shape}: active {stalled('active'):.2f} s, {best} {others[best]:.2f} s")
    return lost


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--shapes", default=SHAPES, help="of the links (%(default)s)")
    parser.add_argument("--protocols", default="hls,rtsp", help="(%(default)s)")
    parser.add_argument("--rates", default="cbr,vbr", help="kinds of bit rates (%(default)s)")
    parser.add_argument("--modes", default=",".join(MODES), help="(%(default)s)")
    parser.add_argument("--early", type=int, default=len(EARLY), help="viewers who leave early (%(default)s)")
    parser.add_argument("--at-once", type=int, default=30, help="cells measured at once (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="two shapes, two modes, three who leave: two minutes")
    parser.add_argument("--slice", default="1MiB", help="(%(default)s)")
    parser.add_argument("--serve", default="", help="more arguments of millpond")
    parser.add_argument("--segment", default="4s", help="length of segments (%(default)s)")
    parser.add_argument("--base", type=int, default=0, help="number of the first namespace, where several run (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/thin.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    if options.quick:
        options.shapes, options.modes, options.early = "1.5,limited:1.3", "on-demand,active", 3
    return options


def needs(options):
    """Ends the program where something is missing that it needs."""
    missing = [name for name in ("nginx", "tc", "ip", "ffmpeg") if not shutil.which(name)]
    missing += [str(options.server)] if not options.server.is_file() else []
    if missing:
        sys.exit(f"error: missing: {', '.join(missing)}; build with `cargo build --release -p millpond -p millpond-lab`, or: apt install nginx-light iproute2 ffmpeg")


def films(options) -> dict:
    """Writes the titles; their mean bit rates by kind."""
    options.site = TARGET / "bench/thin-site"
    options.site.mkdir(parents=True, exist_ok=True)
    rates = {}
    for kind in options.rates.split(","):
        first = options.site / f"film-0-{kind}.mp4"
        film(first, kind == "vbr")
        for number in range(1, len(EARLY) + 1):
            path = options.site / f"film-{number}-{kind}.mp4"
            if not path.exists():
                path.hardlink_to(first)
        rates[kind] = first.stat().st_size * 8 / SECONDS
    return rates


def main():
    options = parse()
    needs(options)
    rates = films(options)
    each = itertools.product(options.protocols.split(","), options.rates.split(","), options.shapes.split(","), options.modes.split(","))
    cells = [Cell(*words) for words in each]
    shown = ", ".join(f"{kind} {rate / 1e6:.2f} Mbit/s" for kind, rate in rates.items())
    print(f"{SECONDS} s of {shown}, slices of {options.slice}, segments of {options.segment}; bandwidth is that of payload")
    results = {}
    with ThreadPoolExecutor(options.at_once) as pool:
        for number, cell in enumerate(cells):
            pool.submit(measure, options.base + number, cell, rates[cell.rates], options, results)
            time.sleep(0.3)
    print("\n| protocol | rates | link | mode | startup, s | stalls | stalled, s | early: startup, s | stalls | stalled, s | origin, MB | ahead, MB | unused, MB |")
    print("|" + "---|" * 13)
    failed = [cell for cell in cells if "failed" in results[cell]]
    for cell in cells:
        result = results[cell]
        if "failed" in result:
            print(f"| {' | '.join(cell)} | failed: {result['failed']} |")
            continue
        whole, early = result["whole"], result["early"]
        total = lambda name: sum(one[name] for one in early)
        print(f"| {' | '.join(cell)} | {whole['startup']:.2f} | {whole['stalls']} | {whole['stalled']:.2f} | {total('startup') / max(len(early), 1):.2f} | "
              f"{total('stalls')} | {total('stalled'):.2f} | {result['origin'] / 1e6:.1f} | {result['prefetched'] / 1e6:.1f} | {result['unused'] / 1e6:.1f} |")
    for cell in cells:
        for stall in results[cell].get("causes", []):
            print(f"{' '.join(cell)}: {thin_causes.show(stall)}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps([{**cell._asdict(), **results[cell]} for cell in cells], indent=1))
    if failed:
        sys.exit(f"error: {len(failed)} of {len(cells)} cells failed")
    lost = judge(results, cells)
    print("\nActive stalls longer than another mode in: " + ("; ".join(lost) if lost else "no cell"))


if __name__ == "__main__":
    main()
