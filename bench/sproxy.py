#!/usr/bin/env python3
"""The SProxy paper's workload through the real server and an nginx origin, beside the simulator.

The trace of `simulate --preset sproxy` is made small and quick (bytes divided by --shrink, times by --speed), played by
`load --trace` in real time, and by `simulate --trace` with the same cache, slices and mode. All settings run at once,
each with a server and an empty cache of its own. Prints what the origin sent and what was sent for ahead in vain, both
ways, and the ratios; missing 5 % is no error.
"""

import argparse
import json
import shutil
import subprocess
import threading
import time
from pathlib import Path

import servers
from compare import TARGET


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def site(trace: Path, folder: Path):
    """Files as long as the objects of the trace."""
    folder.mkdir(parents=True, exist_ok=True)
    for line in trace.read_text().splitlines()[1:]:
        _, name, length, *_ = line.split(",")
        path = folder / name
        if not path.exists() or path.stat().st_size != int(length):
            with path.open("wb") as file:
                file.truncate(int(length))


def measure(options, origin, trace: Path, mode: str, cache: str, results: dict):
    work = TARGET / f"bench/sproxy/{mode}-{cache}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    arguments = ["--workers", 1, "--prefetch", mode, "--cache-size", cache, "--memory", "64MiB", "--slice", options.slice,
                 "--policy", options.policy]
    with servers.Edge(options.server, origin.url, work, *arguments, name=mode) as server:
        report = work / "report.json"
        subprocess.run([options.server, "load", server.url, "--trace", trace, "--block", options.block, "--json", report],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        counters = server.place()
    outcome = work / "simulated.json"
    run(options.server, "simulate", "--trace", trace, "--mode", mode, "--slice", options.slice, "--cache", cache, "--policy",
        options.policy, "--bandwidth", "1GB", "--delay", "1ms", "--json", outcome)
    results[mode, cache] = json.loads(report.read_text()), counters, json.loads(outcome.read_text())[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--shrink", default="8", help="divides all bytes (%(default)s)")
    parser.add_argument("--speed", default="360", help="divides all times (%(default)s)")
    parser.add_argument("--slice", default="64KiB", help="(%(default)s)")
    parser.add_argument("--block", default="16KiB", help="bytes of a viewer's request (%(default)s)")
    parser.add_argument("--policy", default="stream", help="(%(default)s)")
    parser.add_argument("--modes", default="on-demand,half,window,active", help="(%(default)s)")
    parser.add_argument("--caches", default="32MiB", help="(%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/sproxy.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    folder = TARGET / "bench/sproxy"
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / "trace.csv"
    run(options.server, "simulate", "--preset", "sproxy", "--shrink", options.shrink, "--speed", options.speed, "--save", trace)
    site(trace, folder / "site")
    settings = [(mode, cache) for cache in options.caches.split(",") for mode in options.modes.split(",")]
    results, threads = {}, []
    with servers.nginx("origin", folder / "site", folder / "nginx") as origin:
        for mode, cache in settings:
            threads.append(threading.Thread(target=measure, args=(options, origin, trace, mode, cache, results)))
            threads[-1].start()
        for thread in threads:
            thread.join()
    print(f"{'mode':10} {'cache':>8} | {'server MB':>10} {'simulated':>10} {'ratio':>6} | {'false MB':>9} {'simulated':>10} | "
          f"{'startup ms':>10} {'stalls':>6}")
    for mode, cache in settings:
        if (mode, cache) not in results:
            print(f"{mode:10} {cache:>8} | failed")
            continue
        report, real, simulated = results[mode, cache]
        server, should = real["received-bytes"], simulated["server-bytes"]
        print(f"{mode:10} {cache:>8} | {server / 1e6:10.1f} {should / 1e6:10.1f} {server / should:6.3f} | "
              f"{real['prefetched-unused-bytes'] / 1e6:9.2f} {simulated['false-prefetch-bytes'] / 1e6:10.2f} | "
              f"{report['startup']['p50']:10.2f} {report['stalls']:6}")
    options.json.write_text(json.dumps([[*key, *value] for key, value in results.items()], indent=1))


if __name__ == "__main__":
    main()
