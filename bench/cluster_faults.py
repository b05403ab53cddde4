#!/usr/bin/env python3
"""Faults of etcd and of networks under a cluster of three nodes, while viewers play; and a rolling restart.

    bench/cluster_faults.py [member] [leader] [all] [etcd-cut] [sibling-cut] [rolling]

member       one member of etcd is killed, and comes back
leader       the leader of etcd is killed, and comes back
all          all members are killed for a minute
etcd-cut     one node gets no packet from etcd for half a minute
sibling-cut  one node gets no packet from the other nodes for half a minute
rolling      the nodes are restarted one after the other by SIGTERM

Each member of etcd, each node and the origin is a machine of its own: a network namespace at one bridge. Needs root, etcd, nft and
ffmpeg. During each fault

- readers ask all nodes for manifests and segments of many titles. Each body must be that of a single server;
- players (`millpond load`) play titles by HTTP and RTSP;
- every tenth of a second each node is asked which node serves each title: how long does nobody alive have one?
"""

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from cluster_nodes import load, reported, title, wait_for
from compare import TARGET

WORK = TARGET / "bench/cluster-faults"
NETWORK = "10.91.0"
LEASE = 5
TITLES = [f"films/title-{number}.mp4" for number in range(12)]
# Segments of each title.
SEGMENTS = 20


def run(*command, check: bool = True) -> str:
    return subprocess.run([str(part) for part in command], check=check, capture_output=True, text=True).stdout


class Machine:
    """A namespace with one address, and one program that can be killed and started again."""

    def __init__(self, number: int, name: str):
        self.name, self.address, self.space = name, f"{NETWORK}.{number}", f"cf{number}"
        run("ip", "netns", "del", self.space, check=False)
        run("ip", "link", "del", f"cfv{number}", check=False)
        run("ip", "netns", "add", self.space)
        run("ip", "link", "add", f"cfv{number}", "type", "veth", "peer", "name", "eth0", "netns", self.space)
        run("ip", "link", "set", f"cfv{number}", "master", "cfbr", "up")
        for words in (("link", "set", "lo", "up"), ("addr", "add", f"{self.address}/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
            run("ip", "-n", self.space, *words)
        self.process, self.command = None, []

    def start(self, *command):
        self.command = ["ip", "netns", "exec", self.space, *(str(part) for part in command)]
        with (WORK / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def again(self):
        """Starts the same program again."""
        self.start(*self.command[4:])

    def end(self, how=signal.SIGKILL):
        if self.process:
            self.process.send_signal(how)
            self.process.wait()

    def cut(self, others: list):
        """Drops all packets from other machines."""
        rules = "; ".join(f"add rule ip cut in ip saddr {other.address} drop" for other in others)
        text = f"add table ip cut; add chain ip cut in {{ type filter hook input priority 0; }}; {rules}"
        run("ip", "netns", "exec", self.space, "nft", text)

    def join(self):
        run("ip", "netns", "exec", self.space, "nft", "delete table ip cut", check=False)

    def close(self):
        self.end()
        run("ip", "netns", "del", self.space, check=False)


class Node(Machine):
    """A server; a node of the cluster where it has members."""

    def serve(self, binary: Path, words: list, members: str = ""):
        """Starts the server with places and settings."""
        more = ["--cluster", members, "--node", self.name, "--cluster-lease", f"{LEASE}s"] if members else []
        self.start(binary, "serve", *words, *more, "--http", f"{self.address}:8080", "--rtsp", f"{self.address}:8554", "--admin",
                   f"{self.address}:8380", "--admin-hosts", "*", "--cache", WORK / self.name, "--access-log=false")

    @property
    def url(self) -> str:
        return f"http://{self.address}:8080"

    def told(self, path: str) -> bytes:
        return get(f"http://{self.address}:8380{path}")

    def sees(self) -> list:
        return sorted(node["name"] for node in json.loads(self.told("/api/v1/cluster"))["nodes"] if not node["draining"])

    def standing(self) -> str:
        """How it stands with etcd, and its own membership."""
        found = json.loads(self.told("/api/v1/cluster"))
        return f"{found['etcd']['state']}, {found['membership']}"

    def owner(self, path: str) -> str:
        found = json.loads(self.told(f"/api/v1/cluster/assign?path={path}"))["candidates"]
        return found[0]["name"] if found else ""


def get(url: str, seconds: float = 10) -> bytes:
    """Gets a URL, by way of redirects. Returns its body."""
    return got(url, seconds)[1]


def got(url: str, seconds: float = 10) -> tuple:
    """As `get`, with the URL that answered."""
    for _ in range(3):
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=seconds)
        with contextlib.closing(connection):
            connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""))
            reply = connection.getresponse()
            if reply.status in (302, 307):
                url = urljoin(url, reply.headers["Location"])
                continue
            body = reply.read()
            if reply.status != 200:
                raise OSError(f"{url}: {reply.status}")
            return url, body
    raise OSError(f"{url}: too many redirects")


class Readers(threading.Thread):
    """Reads random segments by random nodes, and compares them with those of a single server."""

    def __init__(self, nodes: list, known: dict, number: int):
        super().__init__(daemon=True)
        self.nodes, self.known, self.random = nodes, known, random.Random(number)
        self.ends = threading.Event()
        self.read, self.wrong, self.failed, self.longest, self.retried = 0, [], [], 0.0, 0

    def run(self):
        while not self.ends.wait(0.02):
            path, number = self.random.choice(TITLES), self.random.randrange(1, SEGMENTS + 1)
            began = time.monotonic()
            # A player has several addresses, and asks its first URL again where a node has gone.
            for node in self.random.sample(self.nodes, len(self.nodes)):
                try:
                    url, _ = got(f"{node.url}/{path}/index.m3u8")
                    _, body = got(urljoin(url, f"v1/{number}.m4s"))
                    break
                except (OSError, http.client.HTTPException) as error:
                    self.retried += 1
                    last = error
            else:
                self.failed.append(f"{path}: {last}")
                continue
            self.read += 1
            self.longest = max(self.longest, time.monotonic() - began)
            if hashlib.sha256(body).digest() != self.known[path, number]:
                self.wrong.append(f"{url} {number}")


class Owners(threading.Thread):
    """Asks the nodes which one serves each title: the longest time for which the owner is one that does not run."""

    def __init__(self, nodes: list):
        super().__init__(daemon=True)
        self.nodes, self.ends, self.longest, self.since = nodes, threading.Event(), 0.0, {}

    def run(self):
        while not self.ends.wait(0.1):
            alive = [node for node in self.nodes if node.process.poll() is None]
            for node in alive:
                for path in TITLES[:4]:
                    try:
                        owner = node.owner(path)
                    except (OSError, http.client.HTTPException, KeyError, ValueError):
                        continue
                    now, key = time.monotonic(), (node.name, path)
                    if owner in {other.name for other in alive}:
                        self.since.pop(key, None)
                    else:
                        self.longest = max(self.longest, now - self.since.setdefault(key, now))


class Scene:
    """The machines, and what single server and cluster have in common."""

    def __init__(self, binary: Path):
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        run("ip", "link", "del", "cfbr", check=False)
        run("ip", "link", "add", "cfbr", "type", "bridge")
        run("ip", "addr", "add", f"{NETWORK}.254/24", "dev", "cfbr")
        run("ip", "link", "set", "cfbr", "up")
        self.binary = binary
        self.etcd = [Machine(11 + n, f"m{n}") for n in range(3)]
        self.origin, self.alone = Node(10, "origin"), Node(9, "alone")
        self.nodes = [Node(21 + n, name) for n, name in enumerate("abc")]

    def machines(self) -> list:
        return [*self.etcd, self.origin, self.alone, *self.nodes]

    def places(self) -> list:
        """Places and settings of each node."""
        return [f"films={self.origin.url}"]

    def start(self):
        film = title(TARGET / "bench/cluster-faults.mp4", 2, 600)
        media = WORK / "media"
        media.mkdir()
        for number, path in enumerate(TITLES):
            # Each title has bytes of its own: a free box of another number at its end.
            content = film.read_bytes() + b"\0\0\0\x0cfree" + number.to_bytes(4, "big")
            (media / Path(path).name).write_bytes(content)
        members = ",".join(f"{member.name}=http://{member.address}:2380" for member in self.etcd)
        for member in self.etcd:
            client, peer = f"http://{member.address}:2379", f"http://{member.address}:2380"
            member.start("etcd", "--name", member.name, "--data-dir", WORK / member.name, "--listen-client-urls", client,
                         "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                         "--initial-cluster", members)
        self.origin.serve(self.binary, [media])
        wait_for("the origin", lambda: self.origin.told("/readyz"))
        self.clients = ",".join(f"http://{member.address}:2379" for member in self.etcd)
        wait_for("etcd", lambda: all(json.loads(get(f"{url}/health"))["health"] == "true" for url in self.clients.split(",")))
        self.alone.serve(self.binary, [f"films={self.origin.url}"])
        for node in self.nodes:
            node.serve(self.binary, self.places(), self.clients)
        wait_for("all nodes", self.whole)
        self.known = {}
        for path in TITLES:
            for number in range(1, SEGMENTS + 1):
                body = get(f"{self.alone.url}/{path}/v1/{number}.m4s")
                self.known[path, number] = hashlib.sha256(body).digest()

    def whole(self) -> bool:
        """Whether all nodes are members that see each other."""
        return all(node.sees() == ["a", "b", "c"] and node.standing() == "following, member" for node in self.nodes)

    def leader(self) -> Machine:
        """The leader of etcd."""
        table = json.loads(run("etcdctl", "--endpoints", self.clients, "endpoint", "status", "-w", "json"))
        leads = next(row["Endpoint"] for row in table if row["Status"]["leader"] == row["Status"]["header"]["member_id"])
        return next(member for member in self.etcd if member.address in leads)

    def close(self):
        for machine in self.machines():
            machine.close()
        run("ip", "link", "del", "cfbr", check=False)


def member(scene: Scene, dead: Machine | None = None):
    dead = dead or next(member for member in scene.etcd if member is not scene.leader())
    dead.end()
    time.sleep(20)
    dead.again()
    time.sleep(10)


def leader(scene: Scene):
    member(scene, scene.leader())


def everything(scene: Scene):
    for dead in scene.etcd:
        dead.end()
    time.sleep(60)
    print("all: before they come back:", [node.standing() for node in scene.nodes])
    for dead in scene.etcd:
        dead.again()
    time.sleep(15)


def etcd_cut(scene: Scene):
    scene.nodes[0].cut(scene.etcd)
    time.sleep(30)
    print("etcd-cut: the node:", scene.nodes[0].standing(), "; seen by another one:", scene.nodes[1].sees())
    scene.nodes[0].join()
    time.sleep(15)


def sibling_cut(scene: Scene):
    scene.nodes[0].cut(scene.nodes[1:])
    time.sleep(30)
    print("sibling-cut: seen by the others:", scene.nodes[1].sees())
    scene.nodes[0].join()
    time.sleep(10)


def rolling(scene: Scene):
    for node in scene.nodes:
        began = time.monotonic()
        node.process.send_signal(signal.SIGTERM)
        node.process.wait()
        ended = time.monotonic()
        node.again()
        wait_for("the node is back", lambda: all(one.sees() == ["a", "b", "c"] for one in scene.nodes))
        print(f"rolling: {node.name} ended after {ended - began:.1f} s with {node.process.poll() or 0}, was back after "
              f"{time.monotonic() - ended:.1f} s", flush=True)
        time.sleep(5)


PARTS = {"member": member, "leader": leader, "all": everything, "etcd-cut": etcd_cut, "sibling-cut": sibling_cut, "rolling": rolling}


def trial(scene: Scene, name: str, options) -> dict:
    """A fault under readers and players, and what they saw."""
    readers = [Readers(scene.nodes, scene.known, number) for number in range(4)]
    owners = Owners(scene.nodes)
    seconds = {"all": 85, "rolling": options.rolling}.get(name, 55)
    loads = {}
    for node in scene.nodes:
        for kind, url, more in (("http", f"{node.url}/{TITLES[0]}/index.m3u8", ()),
                                ("rtsp", f"rtsp://{node.address}:8554/{TITLES[1]}", ("--transport", "tcp"))):
            report = WORK / f"{name}-{kind}-{node.name}.json"
            command = ["--clients", options.clients, "--ramp-up", "2s", "--duration", f"{seconds}s", *more]
            loads[kind, node.name] = load(options.server, report, url, *command), report
    for thread in (*readers, owners):
        thread.start()
    time.sleep(5)
    PARTS[name](scene)
    wait_for("all follow etcd", lambda: all(node.standing() == "following, member" for node in scene.nodes))
    for thread in (*readers, owners):
        thread.ends.set()
        thread.join()
    reports = {key: reported(*each) for key, each in loads.items()}
    plays = [report for (kind, _), report in reports.items() if kind == "http"]
    streams = [report for (kind, _), report in reports.items() if kind == "rtsp"]
    return {
        "bodies read": sum(reader.read for reader in readers), "wrong": [wrong for reader in readers for wrong in reader.wrong],
        "failed": [failed for reader in readers for failed in reader.failed],
        "asked another node": sum(reader.retried for reader in readers),
        "longest manifest and segment s": round(max(reader.longest for reader in readers), 2),
        "longest without an owner s": round(owners.longest, 2),
        "HTTP players": len(plays) * options.clients, "gave up": sum(report["viewers"]["failed"] for report in plays),
        "stalls": sum(report["stalls"]["count"] for report in plays),
        "HTTP errors": {error["kind"]: error["count"] for report in plays for error in report["errors"]},
        "RTSP players": len(streams) * options.clients, "lost": sum(report["sessions"]["failed"] for report in streams),
        "sessions begun": sum(report["sessions"]["started"] for report in streams),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all without any")
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--clients", type=int, default=10, help="players by each protocol at each node (%(default)s)")
    parser.add_argument("--rolling", type=int, default=150, help="seconds for which players play in `rolling` (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/cluster-faults.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    if os.geteuid():
        raise SystemExit("bench/cluster_faults.py needs root, for namespaces")
    scene = Scene(options.server)
    results = {}
    try:
        scene.start()
        for name in options.parts or PARTS:
            results[name] = trial(scene, name, options)
            print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in results[name].items()), flush=True)
    finally:
        scene.close()
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
