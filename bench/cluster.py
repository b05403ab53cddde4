#!/usr/bin/env python3
"""A cluster of three nodes on an etcd of three members, all on the loopback.

    bench/cluster.py [once] [live] [killed] [moves] [overhead]

once      a crowd over all nodes plays a title that no node has: how often does the origin send it?
live      viewers at all nodes play one live stream: how many sessions does its source have?
killed    the node of a title is killed with SIGKILL under HTTP and RTSP viewers, and hls.js in Chromium where that is installed.
moves     a node joins four others, another one is killed: the share of 2,000 assets whose first node changes.
overhead  a hit by way of a redirect and by way of a home, beside a single server: time and CPU. Changes of keys that etcd gets in a
          second, by number of viewers.

As root it runs in a network namespace of its own, under cubic. Needs etcd and ffmpeg.
"""

import argparse
import http.client
import json
import os
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import cluster_nodes
from cluster_nodes import Etcd, Node, cluster, load, reported, wait_for
from compare import TARGET, TOP

WORK = TARGET / "bench/cluster"
TITLE = "films/title.mp4"
MANIFEST = f"{TITLE}/index.m3u8"


class Bench:
    """The options, an etcd and an origin."""

    def __init__(self, options, etcd: Etcd, origin: Node, size: int):
        self.options, self.etcd, self.origin, self.size = options, etcd, origin, size
        self.binary = options.server
        self.results = {}

    def nodes(self, part: str, place: str = "", names: str = "abc", more=lambda name: ()):
        place = place or f"films={self.origin.url}"
        return cluster(self.binary, place, WORK / part, self.etcd.addresses, names, more)

    def load(self, name: str, *arguments) -> tuple:
        report = WORK / f"{name}.json"
        return load(self.options.load or self.binary, report, *arguments), report

    def tell(self, part: str, row: dict):
        self.results.setdefault(part, []).append(row)
        print(f"{part}: " + ", ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()),
              flush=True)


def once(bench: Bench):
    with bench.nodes("once") as nodes:
        before = bench.origin.sum("millpond_http_response_bytes_total")
        share = bench.options.viewers // 3
        loads = [bench.load(f"once-{name}", node.url + "/" + MANIFEST, "--clients", share, "--ramp-up", "5s", "--duration", "40s",
                            "--start-within", 0.95) for name, node in nodes.items()]
        reports = [reported(*each) for each in loads]
        sent = bench.origin.sum("millpond_http_response_bytes_total") - before
        bench.tell("once", {
            "viewers": 3 * share, "title MB": bench.size / 1e6, "origin sent it": sent / bench.size,
            "viewers got MB": sum(report["bytes"] for report in reports) / 1e6,
            "errors": sum(error["count"] for report in reports for error in report["errors"]),
            "stalls": sum(report["stalls"]["count"] for report in reports),
            "redirects": sum(node.sum("millpond_cluster_redirects_total") for node in nodes.values()),
            "from homes": sum(node.sum("millpond_sibling_hits_total") for node in nodes.values()),
            "streams by node": [int(node.sum("millpond_http_response_bytes_total") / 1e6) for node in nodes.values()],
        })


def live(bench: Bench):
    place = f"cams=rtsp://127.0.0.1:{bench.origin.rtsp}/"
    with bench.nodes("live", place) as nodes:
        loads = []
        for name, node in nodes.items():
            loads.append(bench.load(f"live-{name}", f"{node.url}/cams/title.mp4/index.m3u8", "--live", "--clients", 20, "--duration", "25s"))
            loads.append(bench.load(f"live-rtsp-{name}", f"rtsp://127.0.0.1:{node.rtsp}/cams/title.mp4", "--transport", "tcp", "--clients",
                                    20, "--duration", "25s"))
        most = 0
        while any(process.poll() is None for process, _ in loads):
            most = max(most, bench.origin.metrics()["millpond_rtsp_playing"])
            time.sleep(0.5)
        reports = [reported(*each) for each in loads]
        bench.tell("live", {
            "HLS viewers": 60, "RTSP viewers": 60, "most sessions of the source": most,
            "segments and parts": sum(kind["requests"] for report in reports for kind in report.get("kinds", [])),
            "RTSP packets": sum(report["media"]["packets"] for report in reports if "media" in report),
            "failed": sum(each["count"] for report in reports for each in report.get("errors", []) + report.get("failures", [])),
        })


def killed(bench: Bench):
    steering = ["--cluster-steering", bench.options.steering] if bench.options.steering else []
    with bench.nodes("killed", more=lambda name: steering) as nodes:
        dead = nodes[nodes["a"].assigned(TITLE)]
        alive = [node for node in nodes.values() if node is not dead]
        # hls.js has up to half a minute ahead.
        seconds, at = 90, 20
        options = ["--ramp-up", "5s", "--duration", f"{seconds}s"]
        # It is the first viewer, and so plays from the node that dies.
        browser = chromium(alive[0])
        if browser:
            browser.stdout.readline()
        began = time.monotonic()
        # A hundred each, also of those whose first node is the one that dies.
        loads = {f"HTTP by {node.name}": bench.load(f"http-{node.name}", f"{node.url}/{MANIFEST}", "--clients", 100, *options)
                 for node in nodes.values()}
        loads |= {f"RTSP by {node.name}": bench.load(f"rtsp-{node.name}", f"rtsp://127.0.0.1:{node.rtsp}/{TITLE}", "--clients", 50,
                                                     "--transport", "tcp", *options) for node in alive}
        time.sleep(max(0.0, at - (time.monotonic() - began)))
        when = time.time() * 1e3
        dead.kill()
        killed_at = time.monotonic()
        wait_for("two nodes", lambda: all(len(node.taking()) == 2 for node in alive))
        bench.tell("killed", {"node": dead.name, "left the view after s": time.monotonic() - killed_at})
        for name, each in loads.items():
            bench.tell("killed", {"viewers": name} | (watched if name.startswith("HTTP") else resumed)(reported(*each)))
        if browser:
            bench.tell("killed", pictures(browser, when))


def watched(report: dict) -> dict:
    """What HTTP players saw."""
    errors = {error["kind"]: error["count"] for error in report["errors"]}
    return {"gave up": report["viewers"]["failed"], "stalls": report["stalls"]["count"], "longest stall s": report["stalls"].get("longest"),
            "to another server": report["switches"].get("servers"), "requests repeated": errors}


def resumed(report: dict) -> dict:
    """How many RTSP viewers lost their session, and how long until as many played again."""
    active = [(point["elapsed"], point["active"]) for point in report["timeline"]]
    full = max(number for _, number in active)
    fewer = [elapsed for elapsed, number in active if number < full and elapsed > 8 and elapsed < report["elapsed"] - 1]
    return {"lost": report["sessions"]["failed"], "started": report["sessions"]["started"],
            "fewer than all played for s": round(max(fewer) - min(fewer), 1) + 1 if fewer else 0,
            "failures": {failure["kind"]: failure["count"] for failure in report["failures"]}}


def chromium(node: Node) -> subprocess.Popen | None:
    """Starts hls.js on the title; nothing where there is no Chromium."""
    folder = TOP / "tests/players"
    if not Path(os.environ.get("CHROMIUM", "/usr/bin/chromium")).exists() or not (folder / "node_modules").exists():
        print("killed: no Chromium with playwright-core: hls.js is left out")
        return None
    command = ["node", str(folder / "faults.mjs"), node.url, TITLE, "hls"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def pictures(browser: subprocess.Popen, when: float) -> dict:
    """How long hls.js showed no new picture after the kill, and its faults."""
    output, _ = browser.communicate()
    found = json.loads(output.strip().splitlines()[-1])["hls"]
    shown = [time for time in found["shown"] if time >= when - 1000]
    gaps = [later - earlier for earlier, later in zip(shown, shown[1:])]
    played = (shown[-1] - when) / 1e3 if shown else 0.0
    return {"viewers": "hls.js", "longest gap between pictures ms": max(gaps, default=None), "played on for s": played, "faults": found["faults"]}


def moves(bench: Bench):
    paths, client = [f"films/{number}.mp4" for number in range(2000)], Client()
    place = f"films={bench.origin.url}"
    with bench.nodes("moves", names="abcd") as nodes:
        told = f"http://127.0.0.1:{nodes['a'].admin}/api/v1/cluster/assign?path="
        first = lambda: {path: json.loads(client.get(told + path))["candidates"][0]["name"] for path in paths}
        before = first()
        with Node(bench.binary, place, WORK / "moves/e", bench.etcd.addresses, "e") as joined:
            wait_for("five nodes", lambda: len(nodes["a"].taking()) == 5 and len(joined.taking()) == 5)
            after = first()
            moved = [path for path in paths if before[path] != after[path]]
            bench.tell("moves", {"a node joins four": "", "moved": len(moved) / len(paths), "over 1/5": 5 * len(moved) / len(paths),
                                 "of them to it": sum(after[path] == "e" for path in moved) / max(len(moved), 1)})
            nodes["b"].kill()
            began = time.monotonic()
            wait_for("four nodes", lambda: len(nodes["a"].taking()) == 4)
            left, last = time.monotonic() - began, first()
            moved = [path for path in paths if last[path] != after[path]]
            bench.tell("moves", {"one of five is killed": "", "moved": len(moved) / len(paths), "over 1/5": 5 * len(moved) / len(paths),
                                 "of them its own": sum(after[path] == "b" for path in moved) / max(len(moved), 1), "out of the view after s": left})


class Client:
    """Requests on kept connections, one after the other."""

    def __init__(self):
        self.open = {}

    def get(self, url: str) -> bytes:
        parts = urlsplit(url)
        connection = self.open.setdefault(parts.netloc, http.client.HTTPConnection(parts.netloc, timeout=30))
        connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""))
        reply = connection.getresponse()
        body = reply.read()
        if reply.status == 307:
            return self.get(reply.headers["Location"])
        if reply.status >= 300:
            raise RuntimeError(f"{url}: {reply.status}")
        return body


def redirected(bench: Bench, name: str, url: str, involved: list, count: int = 3000):
    """Times a manifest, with the CPU of all servers that are involved."""
    client = Client()
    for _ in range(50):
        client.get(url)
    cpu, began = sum(node.cpu_seconds() for node in involved), time.monotonic()
    for _ in range(count):
        client.get(url)
    took, cpu = time.monotonic() - began, sum(node.cpu_seconds() for node in involved) - cpu
    bench.tell("overhead", {"manifest": name, "ms": 1e3 * took / count, "CPU us": 1e6 * cpu / count})


def ranges(bench: Bench, name: str, url: str, involved: list):
    """Random ranges of 1 MiB of a large file, four clients, with the CPU of all servers that are involved."""
    cpu = sum(node.cpu_seconds() for node in involved)
    report = reported(*bench.load("ranges", url, "--plain", "--ranges", 1 << 20, "--pace", "fast", "--clients", 4, "--duration", "6s"))
    cpu = sum(node.cpu_seconds() for node in involved) - cpu
    total = report["kinds"][0]["total"]
    bench.tell("overhead", {"1 MiB": name, "MB/s": report["megabytes-per-second"],
                            "p50 ms": total["p50"], "p99 ms": total["p99"], "CPU ms/MB": 1e9 * cpu / max(report["bytes"], 1)})


def overhead(bench: Bench):
    place = f"films={bench.origin.url}"
    with bench.nodes("overhead") as nodes, Node(bench.binary, place, WORK / "alone", None, "alone") as alone:
        its = nodes[nodes["a"].assigned(TITLE)]
        other = next(node for node in nodes.values() if node is not its)
        mark = "?_millpond_node=x"
        redirected(bench, "single server", f"{alone.url}/{MANIFEST}", [alone])
        redirected(bench, "its node", f"{its.url}/{MANIFEST}{mark}", [*nodes.values()])
        redirected(bench, "by a redirect", f"{other.url}/{MANIFEST}", [*nodes.values()])
        length = (WORK / "media/large.bin").stat().st_size
        for node in (alone, *nodes.values()):
            node.warm("/films/large.bin", length)
        ranges(bench, "single server, cached", f"{alone.url}/films/large.bin", [alone])
        ranges(bench, "node, cached", f"{its.url}/films/large.bin", [*nodes.values()])
        small = ["--cache-size", "0", "--memory", "8MiB"]
        with Node(bench.binary, place, WORK / "overhead/d", bench.etcd.addresses, "d", "--cluster-roles", "dispenser", *small) as node:
            wait_for("four nodes", lambda: len(node.taking()) == 4)
            ranges(bench, "by way of homes", f"{node.url}/films/large.bin", [node, *nodes.values()])
        with Node(bench.binary, place, WORK / "uncached", None, "uncached", *small) as node:
            ranges(bench, "single server, origin each time", f"{node.url}/films/large.bin", [node, bench.origin])
        for viewers in (0, 30, 300, 900):
            puts(bench, nodes, viewers)


def puts(bench: Bench, nodes: dict, viewers: int):
    loads = [bench.load(f"puts-{name}", f"{node.url}/{MANIFEST}", "--clients", viewers // 3, "--ramp-up", "3s", "--duration", "26s",
                        "--start-within", 0.9) for name, node in nodes.items()] if viewers else []
    time.sleep(5)
    count = lambda: sum(node.sum("millpond_cluster_puts_total") for node in nodes.values())
    before = count()
    time.sleep(20)
    bench.tell("overhead", {"viewers": viewers, "puts a second": (count() - before) / 20})
    for each in loads:
        reported(*each)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"once": once, "live": live, "killed": killed, "moves": moves, "overhead": overhead}
    parser.add_argument("parts", nargs="*", choices=[[], *parts], help="all without any")
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--load", type=Path, help="binary of the viewers, where it is another one")
    parser.add_argument("--viewers", type=int, default=1000, help="of the crowd (%(default)s)")
    parser.add_argument("--steering", default="", help="cluster-steering of `killed`")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/cluster.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    cluster_nodes.alone()
    file = cluster_nodes.title(WORK / "media/title.mp4", 8, 900)
    large = WORK / "media/large.bin"
    if not large.exists():
        large.write_bytes(os.urandom(256 << 20))
    channels = ["--rtsp-channels", "title.mp4"]
    with Etcd(WORK / "etcd") as etcd, Node(options.server, str(file.parent), WORK / "origin", None, "origin", *channels) as origin:
        bench = Bench(options, etcd, origin, file.stat().st_size)
        for part in options.parts or parts:
            parts[part](bench)
        options.json.write_text(json.dumps(bench.results, indent=1))


if __name__ == "__main__":
    main()
