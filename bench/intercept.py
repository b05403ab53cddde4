#!/usr/bin/env python3
"""What passing connections on costs: a file of nginx through an edge that intercepts, beside an edge that only routes, and beside HAProxy with
TPROXY and splice where it is installed. Also the time of small requests.

Client, edge and server have a network namespace each. The ways take turns; medians are compared. `--link 1gbit` limits the server's link to
that rate. Needs root, nginx, curl, nftables.

    cargo build --release -p millpond
    bench/intercept.py --json result.json
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path

from compare import TARGET
from routed import SERVER, Routed, cpu_seconds, documented, run

NGINX = """
daemon off; master_process off; pid {work}/nginx.pid; error_log {work}/nginx.log;
events {{ worker_connections 1024; }}
http {{ access_log off; sendfile on; root {work}; server {{ listen 80; }} }}
"""


HAPROXY = """
global
    nbthread 1
    tune.pipesize 1048576
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    option splice-request
    option splice-response
frontend all
    bind 0.0.0.0:8081 transparent
    default_backend servers
backend servers
    source 0.0.0.0 usesrc client
    server any 0.0.0.0:0
"""
# Times of small requests in microseconds: on a connection each, and on one connection.
SMALL = """
import http.client, json, sys, time
def ask(connection):
    began = time.perf_counter()
    connection.request("GET", "/small.bin")
    assert len(connection.getresponse().read()) == 1000
    return (time.perf_counter() - began) * 1e6
def new():
    connection = http.client.HTTPConnection(sys.argv[1])
    took = ask(connection)
    connection.close()
    return took
kept = http.client.HTTPConnection(sys.argv[1])
new(), ask(kept)
count = int(sys.argv[2])
print(json.dumps({"new": [new() for _ in range(count)], "kept": [ask(kept) for _ in range(count)]}))
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


def ask(way: Routed, count: int) -> dict:
    """Medians and 99th percentiles of the times of small requests, in microseconds."""
    times = json.loads(run(*way.command("client", sys.executable, "-c", SMALL, SERVER, count)).stdout)
    return {f"{name}-{part}": statistics.quantiles(all, n=100)[at] for name, all in times.items() for part, at in (("p50", 49), ("p99", 98))}


def busy_seconds() -> float:
    """Time that the machine's processors were not idle (proc(5), stat)."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def haproxy(way: Routed):
    """Starts HAProxy with the same rules of the firewall."""
    run(*way.command("edge", "sh", "-c", documented("sh")))
    for name, text in (("rules.nft", documented("nft")), ("haproxy.cfg", HAPROXY)):
        (way.work / name).write_text(text)
    run(*way.command("edge", "nft", "-f", way.work / "rules.nft"))
    process = way.start("edge", "haproxy", "-db", "-q", "-f", way.work / "haproxy.cfg", log="haproxy.log")
    way.listens("edge", 8081)
    return process


def trial(way: Routed, name: str, options) -> dict:
    edge = {"direct": way.route, "haproxy": lambda: haproxy(way), "intercepted": lambda: way.intercept(options.bin)}[name]()
    busy, cpu = busy_seconds(), cpu_seconds(edge) if edge else 0
    gigabytes = options.connections * options.megabytes / 1000
    result = {"rate": fetch(way, options.connections, options.megabytes)}
    result["machine-seconds-per-gb"] = (busy_seconds() - busy) / gigabytes
    if edge:
        result["edge-seconds-per-gb"] = (cpu_seconds(edge) - cpu) / gigabytes
    result |= ask(way, options.requests)
    if name == "intercepted":
        passed = way.metrics()['millpond_intercepted_connections_total{outcome="passed"}']
        if passed < options.connections + options.requests:
            raise RuntimeError(f"{passed} connections were passed on")
    if edge:
        way.stop(edge)
        way.route()
    return result


def measure(options) -> dict:
    ways = ["direct", *(["haproxy"] if shutil.which("haproxy") else []), "intercepted"]
    trials = {name: [] for name in ways}
    with Routed(TARGET / "bench/intercept") as way:
        for file, size in (("file.bin", options.megabytes * 1_000_000), ("small.bin", 1000)):
            with (way.work / file).open("wb") as output:
                output.truncate(size)
        (way.work / "nginx.conf").write_text(NGINX.format(work=way.work))
        way.start("server", "nginx", "-c", way.work / "nginx.conf", "-p", way.work, log="nginx.err")
        way.listens("server", 80)
        if options.link:
            run(*way.command("server", "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", options.link, "burst", "4mb", "latency", "5ms"))
        # The file is in memory from now on.
        fetch(way, 1, options.megabytes)
        for number in range(options.trials):
            for name in ways:
                trials[name].append(trial(way, name, options))
            rates = ", ".join(f"{name} {trials[name][-1]['rate']:.0f} MB/s" for name in ways)
            print(f"{number + 1}: {rates}", flush=True)
    medians = {name: {key: statistics.median(one[key] for one in all) for key in all[0]} for name, all in trials.items()}
    ratios = {name: medians[name]["rate"] / medians["direct"]["rate"] for name in ways}
    return {"link": options.link or "none", "trials": trials, "medians": medians, "ratios": ratios}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="(%(default)s)")
    parser.add_argument("--megabytes", type=int, default=1000, help="length of the file (%(default)s)")
    parser.add_argument("--connections", type=int, default=2, help="downloads at a time (%(default)s)")
    parser.add_argument("--requests", type=int, default=300, help="small requests of each kind (%(default)s)")
    parser.add_argument("--trials", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--link", help="rate of the server's link, such as 1gbit: else as fast as memory")
    parser.add_argument("--json", type=Path, help="file of the result")
    options = parser.parse_args()
    result = measure(options)
    keys = ("rate", "edge-seconds-per-gb", "machine-seconds-per-gb", "new-p50", "new-p99", "kept-p50", "kept-p99")
    print("| way | MB/s | of direct | CPU s/GB: edge | machine | new connection, us: p50 | p99 | kept: p50 | p99 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, medians in result["medians"].items():
        rate, edge, machine, *times = (medians.get(key, 0) for key in keys)
        cells = [f"{rate:.0f}", f"{result['ratios'][name]:.2f}", f"{edge:.3f}", f"{machine:.3f}", *(f"{time:.0f}" for time in times)]
        print(f"| {name} | " + " | ".join(cells) + " |")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if result["ratios"]["intercepted"] >= 0.8 else 1


if __name__ == "__main__":
    sys.exit(main())
