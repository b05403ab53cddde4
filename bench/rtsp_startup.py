#!/usr/bin/env python3
"""How soon RTSP sessions start: signalling under load, and cold assets of a far origin.

Signalling: sessions that begin at a fixed rate for some seconds and leave at once (OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN; no
media is looked at), for millpond and gst-rtsp-server. Cold: one session each of assets that the server has never seen, from an
origin whose replies are late by a round trip; the time is from DESCRIBE to the first packet, in round trips. Startup of warm assets
at 100 streams is in rtsp_capacity.py.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import media
import rtsp_capacity
import servers
from compare import TARGET

METHODS = ["connect", "OPTIONS", "DESCRIBE", "SETUP", "PLAY", "TEARDOWN"]
COLD = 12


def load(options, *arguments) -> dict:
    command = [str(part) for part in (options.bin, "load", *arguments, "--json", "-")]
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120).stdout)


def signalling(name: str, rate: int, options, folder: Path) -> dict:
    with rtsp_capacity.start(name, options, folder, TARGET / f"bench/rtsp/{name}") as server:
        url = f"rtsp://127.0.0.1:{server.port}/V300.mp4"
        load(options, url, "--clients", 1, "--watch", "1s")
        cpu = server.cpu_seconds()
        report = load(options, url, "--mute", "--rate", rate, "--duration", f"{options.seconds}s")
        cpu = server.cpu_seconds() - cpu
    latency = {method["method"]: method["latency"] for method in report["methods"]}
    return {
        "server": name, "rate": rate, "started": report["sessions"]["started-per-second"], "failed": report["sessions"]["failed"],
        "p95": {method: latency[method]["p95"] for method in METHODS if method in latency},
        "p50": {method: latency[method]["p50"] for method in METHODS if method in latency},
        "cpu_ms": 1000 * cpu / max(1, report["sessions"]["started"]),
    }


def cold(options, folder: Path) -> dict:
    work = TARGET / "bench/rtsp-cold"
    shutil.rmtree(work, ignore_errors=True)
    media.titles(folder / "V1024.mp4", work / "site", COLD)
    port, log = servers.free_port(), work / "origin.log"
    delay = options.round_trip / 1000
    origin = subprocess.Popen([sys.executable, str(Path(__file__).with_name("slow_origin.py")), str(work / "site"), str(port), str(delay), str(log)])
    try:
        with servers.Edge(options.bin, f"http://127.0.0.1:{port}/", work) as server:
            startups, requests = [], []
            for number in range(1, COLD + 1):
                before = len(log.read_text().splitlines())
                report = load(options, f"rtsp://127.0.0.1:{server.rtsp}/{number}.mp4", "--clients", 1, "--watch", "300ms")
                startups.append(report["startup"]["max"])
                requests.append(len(log.read_text().splitlines()) - before)
    finally:
        origin.terminate()
        origin.wait()
    return {"ms": statistics.median(startups), "worst_ms": max(startups), "round_trips": statistics.median(startups) / options.round_trip,
            "requests": statistics.median(requests)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--rates", default="100,500,1000", help="sessions a second (%(default)s)")
    parser.add_argument("--seconds", type=int, default=15, help="of each (%(default)s)")
    parser.add_argument("--round-trip", type=float, default=50, help="of the origin, in milliseconds (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/rtsp_startup.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    options.serve, options.gst_threads, options.pin = rtsp_capacity.SERVE, -1, None
    folder = TARGET / "bench/rtsp-media"
    for clip in ("V300", "V1024"):
        rtsp_capacity.make(clip, folder)
    results = {"signalling": [], "cold": cold(options, folder)}
    found = results["cold"]
    print(f"cold, origin at {options.round_trip:g} ms: first packet after {found['ms']:.0f} ms ({found['round_trips']:.1f} round trips; "
          f"worst {found['worst_ms']:.0f} ms), {found['requests']:.0f} origin requests with what is read ahead", flush=True)
    print(f"{'':10}{'asked/s':>9}{'started/s':>11}{'failed':>8}{'CPU ms':>8}  p50 / p95 of {', '.join(METHODS)}; p95 of all together at most")
    for rate in map(int, options.rates.split(",")):
        for name in ("millpond", "gst"):
            row = signalling(name, rate, options, folder)
            results["signalling"].append(row)
            each = ", ".join(f"{row['p50'][method]:.1f}/{row['p95'][method]:.1f}" for method in row["p95"])
            print(f"{name:10}{rate:9}{row['started']:11.1f}{row['failed']:8}{row['cpu_ms']:8.2f}  {each}; {sum(row['p95'].values()):.1f} ms", flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
