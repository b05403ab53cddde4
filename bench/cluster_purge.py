#!/usr/bin/env python3
"""Time until all nodes of a cluster have purged a file, and the bytes that they give then.

An etcd of three members, nodes with small caches, and an origin of this program, which replaces the bytes of a file under the same
entity tag. In each round one node is stopped (SIGSTOP) before the purge and goes on after it. Each node is then asked for the file.
The program fails where a node gives bytes of before. Needs etcd; 30 nodes take about 3 GiB of memory.
"""

import argparse
import contextlib
import http.server
import json
import os
import signal
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cluster_nodes
from cluster_nodes import Etcd, cluster
from compare import TARGET

WORK = TARGET / "bench/cluster-purge"
LENGTH = 2 << 20


class Origin(http.server.ThreadingHTTPServer):
    """One file, whose entity tag never changes. Use it in a `with`."""

    daemon_threads = True

    def __init__(self):
        self.content = b""
        super().__init__(("127.0.0.1", 0), Replies)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def publish(self, number: int):
        self.content = bytes([number % 256]) * LENGTH


class Replies(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        content, (first, last) = self.server.content, (0, LENGTH - 1)
        asked = self.headers.get("Range")
        if asked:
            first, last = (int(part or last) for part in asked.removeprefix("bytes=").split("-"))
            last = min(last, LENGTH - 1)
        self.send_response(206 if asked else 200)
        self.send_header("ETag", '"the same"')
        self.send_header("Content-Length", str(last + 1 - first))
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{LENGTH}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[first:last + 1])

    do_HEAD = do_GET


def purge(node) -> tuple:
    """Purges the file by one node: the reply, and how long it took."""
    body = json.dumps({"path": "films/film.bin"}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{node.admin}/api/v1/cluster/purge", body, {"Content-Type": "application/json"})
    began = time.monotonic()
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply), time.monotonic() - began


def given(node) -> int:
    """The number of the bytes that a node gives; -1 where they are mixed."""
    with urllib.request.urlopen(f"{node.url}/films/film.bin", timeout=60) as reply:
        body = reply.read()
    return body[0] if len(body) == LENGTH and body == body[:1] * LENGTH else -1


def applied(node) -> dict:
    """The last purge of each node, as one of them knows it."""
    return {found["name"]: found["purged"] for found in json.loads(node.told("/api/v1/cluster"))["nodes"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--nodes", type=int, default=30, help="number of nodes (%(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="number of purges (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/cluster-purge.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    cluster_nodes.alone()
    names = [f"n{number:02}" for number in range(options.nodes)]
    # A node that is stopped stays in the view.
    small = ["--workers", 1, "--memory", "64MiB", "--cache-size", "64MiB", "--cluster-lease", "60s"]
    rows, faults = [], 0
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(Origin())
        etcd = stack.enter_context(Etcd(WORK / "etcd"))
        place = f"films=http://127.0.0.1:{origin.server_address[1]}"
        nodes = stack.enter_context(cluster(options.server, place, WORK / "nodes", etcd.addresses, names, lambda name: small))
        pool = stack.enter_context(ThreadPoolExecutor(len(names)))
        origin.publish(0)
        list(pool.map(given, nodes.values()))
        for number in range(1, options.rounds + 1):
            by, away = nodes[names[number % len(names)]], nodes[names[(number + 1) % len(names)]]
            # All up: the time until all have confirmed.
            origin.publish(2 * number - 1)
            reply, took = purge(by)
            wrong = [node.name for node, found in zip(nodes.values(), pool.map(given, nodes.values())) if found != 2 * number - 1]
            # One stopped: the others confirm, and it gives nothing old when it goes on.
            os.kill(away.process.pid, signal.SIGSTOP)
            origin.publish(2 * number)
            try:
                partly, _ = purge(by)
            finally:
                os.kill(away.process.pid, signal.SIGCONT)
            began = time.monotonic()
            back = given(away)
            waited = time.monotonic() - began
            cluster_nodes.wait_for("the node that was away", lambda: applied(by)[away.name] == partly["epoch"])
            late = [node.name for node, found in zip(nodes.values(), pool.map(given, nodes.values())) if found != 2 * number]
            row = {
                "seconds": took, "missing": reply["missing"], "wrong": wrong, "away": away.name, "missing-then": partly["missing"],
                "first-request-seconds": waited, "wrong-then": late + ([away.name] if back != 2 * number else []),
            }
            rows.append(row)
            faults += len(row["wrong"]) + len(row["wrong-then"])
            print(f"purge {number}: {took * 1000:5.0f} ms, {len(reply['confirmed'])} of {len(names)} confirmed; {away.name} away: its first "
                  f"request took {waited * 1000:.0f} ms; {faults} nodes gave old bytes so far", flush=True)
    times = sorted(row["seconds"] for row in rows)
    print(f"{len(names)} nodes: median {times[len(times) // 2] * 1000:.0f} ms, longest {times[-1] * 1000:.0f} ms")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(rows, indent=1))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
