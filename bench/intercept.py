#!/usr/bin/env python3
"""What passing connections on costs: a file of nginx through an edge that intercepts, beside an edge that only routes.

Client, edge and server have a network namespace each. The two ways take turns; medians are compared. Needs root, nginx, curl, nftables.

    cargo build --release -p millpond
    bench/intercept.py --json result.json
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from compare import TARGET
from routed import SERVER, Routed, cpu_seconds, run

NGINX = """
daemon off; master_process off; pid {work}/nginx.pid; error_log {work}/nginx.log;
events {{ worker_connections 1024; }}
http {{ access_log off; sendfile on; root {work}; server {{ listen 80; }} }}
"""


def fetch(way: Routed, count: int, megabytes: int) -> float:
    """Megabytes a second of `count` downloads at a time."""
    url = f"http://{SERVER}/file.bin"
    command = ["curl", "-sS", "--parallel", "--parallel-immediate", "--parallel-max", count, "-w", "%{size_download}\\n"]
    for _ in range(count):
        command += ["-o", "/dev/null", url]
    began = time.monotonic()
    sizes = [int(size) for size in run(*way.command("client", *command)).stdout.split()]
    seconds = time.monotonic() - began
    if sizes != [megabytes * 1_000_000] * count:
        raise RuntimeError(f"sizes of {SERVER}: {sizes}")
    return sum(sizes) / 1e6 / seconds


def measure(options) -> dict:
    results = {"direct": [], "intercepted": [], "cpu-seconds-per-gb": []}
    with Routed(TARGET / "bench/intercept") as way:
        with (way.work / "file.bin").open("wb") as file:
            file.truncate(options.megabytes * 1_000_000)
        (way.work / "nginx.conf").write_text(NGINX.format(work=way.work))
        way.start("server", "nginx", "-c", way.work / "nginx.conf", "-p", way.work, log="nginx.err")
        way.listens("server", 80)
        for number in range(options.trials):
            way.route()
            results["direct"].append(fetch(way, options.connections, options.megabytes))
            edge = way.intercept(options.bin)
            cpu = cpu_seconds(edge)
            rate = fetch(way, options.connections, options.megabytes)
            cpu = cpu_seconds(edge) - cpu
            results["intercepted"].append(rate)
            results["cpu-seconds-per-gb"].append(cpu / (options.connections * options.megabytes / 1000))
            passed = way.metrics()['millpond_intercepted_connections_total{outcome="passed"}']
            if passed < options.connections:
                raise RuntimeError(f"{passed} connections were passed on")
            way.stop(edge)
            print(f"{number + 1}: " + ", ".join(f"{name} {values[-1]:.2f}" for name, values in results.items()), flush=True)
    medians = {name: statistics.median(values) for name, values in results.items()}
    ratio = medians["intercepted"] / medians["direct"]
    return {"trials": results, "medians": medians, "ratio": ratio}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="(%(default)s)")
    parser.add_argument("--megabytes", type=int, default=1000, help="length of the file (%(default)s)")
    parser.add_argument("--connections", type=int, default=2, help="downloads at a time (%(default)s)")
    parser.add_argument("--trials", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--json", type=Path, help="file of the result")
    options = parser.parse_args()
    result = measure(options)
    medians = result["medians"]
    print(f"direct {medians['direct']:.0f} MB/s, intercepted {medians['intercepted']:.0f} MB/s, ratio {result['ratio']:.2f} (at least 0.8); "
          f"edge {medians['cpu-seconds-per-gb']:.3f} CPU seconds per GB")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if result["ratio"] >= 0.8 else 1


if __name__ == "__main__":
    sys.exit(main())
