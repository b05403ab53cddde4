#!/usr/bin/env python3
"""Throughput of 1, 2 and 3 nodes, each held to an equal small share of a processor by a cgroup.

Needs root, a writable cgroup hierarchy of version 1 (cpu) or 2, etcd and ffmpeg. Players at full speed ask for titles that the nodes
have in their caches, at all nodes alike, and follow redirects. The figure is bytes that the nodes send, beside as many times what a
server alone sends with the same share. Throttled is the share of the periods in which the kernel held a node back: near 1, or the
players are the limit.
"""

import argparse
import contextlib
import json
import time
from pathlib import Path

import cluster_nodes
from cluster_nodes import Etcd, Node, cluster, load, reported
from compare import TARGET

WORK = TARGET / "bench/cluster-scale"
TITLES = 24


class Share:
    """A cgroup that gives a process a share of one processor. Use it in a `with`."""

    ONE, TWO = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")

    def __init__(self, name: str, share: float, period: int = 20_000):
        self.is_one = (self.ONE / "cpu.cfs_quota_us").exists()
        self.folder = (self.ONE if self.is_one else self.TWO) / f"millpond-bench-{name}"
        self.folder.mkdir(exist_ok=True)
        if self.is_one:
            (self.folder / "cpu.cfs_period_us").write_text(str(period))
            (self.folder / "cpu.cfs_quota_us").write_text(str(int(period * share)))
        else:
            (self.folder / "cpu.max").write_text(f"{int(period * share)} {period}")

    def hold(self, pid: int):
        (self.folder / "cgroup.procs").write_text(str(pid))

    def periods(self) -> tuple:
        """Periods so far, and those in which it was held back."""
        found = dict(line.split() for line in (self.folder / "cpu.stat").read_text().splitlines())
        return int(found["nr_periods"]), int(found["nr_throttled"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A group with processes can't be removed.
        for pid in (self.folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (self.folder.parent / "cgroup.procs").write_text(pid)
        self.folder.rmdir()


def measure(options, nodes: list) -> dict:
    """What nodes send together, each with its share."""
    for number in range(1, TITLES + 1):
        for node in nodes:
            node.get(f"/films/{number}.mp4")
    with contextlib.ExitStack() as stack:
        shares = [stack.enter_context(Share(node.name, options.share)) for node in nodes]
        for node, share in zip(nodes, shares):
            for pid in node.pids():
                share.hold(pid)
        loads = []
        for number in range(1, TITLES + 1):
            report, node = WORK / f"load-{number}.json", nodes[number % len(nodes)]
            arguments = [f"{node.url}/films/{number}.mp4/index.m3u8", "--pace", "fast", "--clients", options.clients * len(nodes),
                         "--duration", f"{options.seconds + 12}s"]
            loads.append((load(options.load or options.server, report, *arguments), report))
        time.sleep(8)
        count = lambda: [node.sum("millpond_http_response_bytes_total") for node in nodes]
        cpu = lambda: [node.cpu_seconds() for node in nodes]
        before, used, periods, began = count(), cpu(), [share.periods() for share in shares], time.monotonic()
        time.sleep(options.seconds)
        after, cpus, ended, took = count(), cpu(), [share.periods() for share in shares], time.monotonic() - began
        reports = [reported(*each) for each in loads]
        held = [(later[1] - earlier[1]) / max(later[0] - earlier[0], 1) for earlier, later in zip(periods, ended)]
        return {
            "MB/s": [(late - early) / took / 1e6 for early, late in zip(before, after)],
            "cpu": [(late - early) / took for early, late in zip(used, cpus)], "throttled": held,
            "errors": sum(error["count"] for report in reports for error in report["errors"]),
        }


def tell(name: str, row: dict, base: float | None, nodes: int):
    rate = sum(row["MB/s"])
    ratio = f"{rate / base / nodes:.3f} of {nodes} servers" if base else ""
    each = lambda values, digits: " ".join(f"{value:.{digits}f}" for value in values)
    print(f"{name:14} {rate:8.1f} MB/s ({each(row['MB/s'], 1)}), cores {each(row['cpu'], 3)}, throttled {each(row['throttled'], 2)}, "
          f"errors {row['errors']} {ratio}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--load", type=Path, help="binary of the players, where it is another one")
    parser.add_argument("--share", type=float, default=0.08, help="of a processor, for each node (%(default)s)")
    parser.add_argument("--clients", type=int, default=2, help="players of each of 24 titles, for each node (%(default)s)")
    parser.add_argument("--seconds", type=float, default=15, help="of each measurement (%(default)s)")
    parser.add_argument("--mbps", type=int, default=20_000,
                        help="cluster-mbps of the nodes: more than they can send, or starts are refused (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/cluster-scale.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    cluster_nodes.alone()
    first = cluster_nodes.title(WORK / "media/1.mp4", 1, 900)
    for number in range(2, TITLES + 1):
        if not (path := first.with_name(f"{number}.mp4")).exists():
            path.hardlink_to(first)
    results = {}
    more = ["--workers", "1"]
    with Etcd(WORK / "etcd") as etcd, Node(options.server, str(first.parent), WORK / "origin", None, "origin") as origin:
        place = f"films={origin.url}"
        with Node(options.server, place, WORK / "alone", None, "alone", *more) as alone:
            results["alone"] = measure(options, [alone])
        base = sum(results["alone"]["MB/s"])
        tell("a server alone", results["alone"], None, 1)
        for count in (1, 2, 3):
            arguments = lambda name: [*more, "--cluster-mbps", options.mbps]
            with cluster(options.server, place, WORK / f"of-{count}", etcd.addresses, "abc"[:count], arguments) as nodes:
                row = results[f"{count} nodes"] = measure(options, [*nodes.values()])
            tell(f"{count} nodes", row, base, count)
    options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
