#!/usr/bin/env python3
"""A cluster of three nodes on an etcd of three members, all on the loopback.

    bench/cluster.py MILLPOND [once] [killed] [overhead]

once      a flash crowd of VIEWERS (1000) over all nodes asks for a title that no node has: how often does the origin send it?
killed    the node of a title is killed with SIGKILL under 300 HTTP and 100 RTSP viewers.
overhead  the time of a manifest, asked of its node and of another one; changes of keys that etcd gets in a second.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

VIEWERS = int(os.environ.get("VIEWERS", "1000"))
SECONDS = 40
PORTS = iter(range(31000, 32000))
RUNNING = []


def start(*args, **more):
    process = subprocess.Popen([str(arg) for arg in args], stdout=subprocess.DEVNULL, **more)
    RUNNING.append(process)
    return process


def wait(what, is_so, limit=60):
    end = time.time() + limit
    while time.time() < end:
        try:
            if is_so():
                return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit(f"{what}: not within {limit} s")


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.read().decode()


def etcd(folder):
    clients, peers = ([f"http://127.0.0.1:{next(PORTS)}" for _ in range(3)] for _ in range(2))
    every = ",".join(f"m{n}={peer}" for n, peer in enumerate(peers))
    for n in range(3):
        start("etcd", "--name", f"m{n}", "--data-dir", f"{folder}/m{n}", "--listen-client-urls", clients[n],
              "--advertise-client-urls", clients[n], "--listen-peer-urls", peers[n],
              "--initial-advertise-peer-urls", peers[n], "--initial-cluster", every, stderr=subprocess.DEVNULL)
    for client in clients:
        port = int(client.rsplit(":", 1)[1])
        wait("etcd", lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None)
    return ",".join(clients)


class Server:
    def __init__(self, millpond, folder, *args):
        self.http, self.rtsp, self.admin = (next(PORTS) for _ in range(3))
        os.makedirs(folder)
        self.log = open(f"{folder}/log", "w")
        addresses = [f"--{flag}=127.0.0.1:{getattr(self, flag)}" for flag in ("http", "rtsp", "admin")]
        self.process = start(millpond, "serve", *args, *addresses, "--cache", folder, "--access-log=false",
                             stderr=self.log)
        wait("a server", lambda: fetch(f"http://127.0.0.1:{self.admin}/readyz"))

    def metric(self, name, label=""):
        lines = fetch(f"http://127.0.0.1:{self.admin}/metrics").splitlines()
        return sum(float(l.rsplit(" ", 1)[1]) for l in lines if l.startswith(name) and label in l)

    def url(self, path):
        return f"http://127.0.0.1:{self.http}/{path}"


def cluster(millpond, folder, members, origin):
    nodes = [Server(millpond, f"{folder}/{name}", f"films=http://127.0.0.1:{origin.http}", "--cluster", members,
                    "--node", name, "--cluster-prefix", f"/{os.path.basename(folder)}/") for name in "abc"]
    taking = lambda node: [n for n in json.loads(fetch(f"http://127.0.0.1:{node.admin}/cluster"))["nodes"]
                           if not n["draining"]]
    wait("three nodes", lambda: all(len(taking(node)) == 3 for node in nodes))
    return nodes


def load(millpond, *args):
    return subprocess.Popen([str(a) for a in (millpond, "load", *args)], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def owner(nodes, path):
    """The node of a path, by its explanation."""
    found = json.loads(fetch(f"http://127.0.0.1:{nodes[0].admin}/cluster/assign?path={path}"))
    return nodes["abc".index(found["candidates"][0]["name"])]


def once(millpond, folder, members, origin, title):
    nodes = cluster(millpond, folder, members, origin)
    before = origin.metric("millpond_http_response_bytes_total")
    loads = [load(millpond, "--clients", VIEWERS // 3, "--ramp-up", "5s", "--duration", f"{SECONDS}s", "--json", "-",
                  node.url("films/title.mp4/index.m3u8")) for node in nodes]
    reports = [each.communicate()[0] for each in loads]
    sent = origin.metric("millpond_http_response_bytes_total") - before
    served = [node.metric("millpond_http_response_bytes_total") / 1e6 for node in nodes]
    puts = sum(node.metric("millpond_cluster_puts_total") for node in nodes)
    print(f"once: {VIEWERS} viewers: the origin sent {sent / title:.3f} times the title; nodes sent "
          f"{', '.join(f'{mb:.0f}' for mb in served)} MB; redirects "
          f"{sum(n.metric('millpond_cluster_redirects_total') for n in nodes):.0f}; {puts:.0f} puts in {SECONDS} s")
    for text in reports:
        print("  " + text[-600:].replace("\n", "\n  "))
    return nodes


def killed(millpond, folder, members, origin):
    nodes = cluster(millpond, folder, members, origin)
    dead = owner(nodes, "films/title.mp4/index.m3u8")
    alive = [node for node in nodes if node is not dead]
    http = [load(millpond, "--clients", 150, "--ramp-up", "3s", "--duration", "30s",
                 node.url("films/title.mp4/index.m3u8")) for node in alive]
    rtsp = [load(millpond, "--clients", 50, "--ramp-up", "3s", "--duration", "30s", "--transport", "tcp",
                 f"rtsp://127.0.0.1:{node.rtsp}/films/title.mp4") for node in alive]
    time.sleep(15)
    dead.process.kill()
    began = time.time()
    known = lambda node: node.metric("millpond_cluster_nodes ") == 2
    wait("two nodes", lambda: all(known(node) for node in alive))
    print(f"killed: the others dropped the node after {time.time() - began:.1f} s")
    for name, each in [("HTTP", one) for one in http] + [("RTSP", one) for one in rtsp]:
        print(f"  {name}: " + each.communicate()[0][-1500:].replace("\n", "\n  "))


def overhead(millpond, folder, members, origin):
    nodes = cluster(millpond, folder, members, origin)
    path = "films/title.mp4/index.m3u8"
    its = owner(nodes, path)
    other = next(node for node in nodes if node is not its)

    def mean(url, count=300):
        fetch(url)
        began = time.perf_counter()
        for _ in range(count):
            fetch(url)
        return (time.perf_counter() - began) / count * 1e3

    direct, sent = mean(its.url(path) + "?_millpond_node=x"), mean(other.url(path))
    print(f"overhead: manifest from its node {direct:.2f} ms, by way of another node {sent:.2f} ms")
    before = sum(node.metric("millpond_cluster_puts_total") for node in nodes)
    time.sleep(20)
    after = sum(node.metric("millpond_cluster_puts_total") for node in nodes)
    print(f"overhead: {(after - before) / 20:.2f} puts a second of three idle nodes")


def main():
    millpond, parts = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["once", "killed", "overhead"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            media = f"{folder}/media"
            os.makedirs(media)
            subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25", "-t", str(SECONDS),
                            "-c:v", "libx264", "-preset", "ultrafast", "-b:v", "500k", "-minrate", "500k", "-maxrate",
                            "500k", "-bufsize", "500k", "-g", "50", "-movflags", "+faststart", "-x264-params",
                            "nal-hrd=cbr", f"{media}/title.mp4"], check=True)
            title = os.path.getsize(f"{media}/title.mp4")
            print(f"title: {title / 1e6:.1f} MB, {SECONDS} s")
            members = etcd(folder)
            origin = Server(millpond, f"{folder}/origin", media)
            for part in parts:
                first = len(RUNNING)
                run = {"once": once, "killed": killed, "overhead": overhead}[part]
                run(*[millpond, f"{folder}/{part}", members, origin] + ([title] if part == "once" else []))
                for process in RUNNING[first:]:
                    process.terminate()
        finally:
            for process in RUNNING:
                process.kill()


if __name__ == "__main__":
    main()
