#!/usr/bin/env python3
"""Cold objects: millpond beside Debian's nginx (proxy_cache and slice) and Varnish, before one origin.

The origin's first byte is 20 ms late. Each server has its cache emptied before each case. Counted is what the origin
was asked for; timed are the first byte and the whole. `--crowd N` adds N clients on one cold object at once.
"""

import argparse
import hashlib
import json
import multiprocessing
import random
import shutil
import socket
import sys
import threading
import time
import urllib.parse
from pathlib import Path

import measure
import servers
from compare import TARGET

SIZE = 200 << 20
DELAY = 0.020
TOP = Path(__file__).resolve().parent


def fetch(url: str, first=None, last=None, digest=None) -> tuple:
    """Seconds to the first byte of the body, to its end, and its length."""
    parts = urllib.parse.urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        span = "" if first is None else f"Range: bytes={first}-{last}\r\n"
        began = time.monotonic()
        connection.sendall(f"GET {parts.path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{span}\r\n".encode())
        buffer = bytearray(1 << 20)
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(4096)
        head, body = head.split(b"\r\n\r\n", 1)
        if head.split(b" ")[1] not in (b"200", b"206"):
            raise RuntimeError(f"{url}: {head[:200]!r}")
        begun = time.monotonic() - began if body else None
        length = len(body)
        if digest:
            digest.update(body)
        while count := connection.recv_into(buffer):
            begun = begun or time.monotonic() - began
            length += count
            if digest:
                digest.update(memoryview(buffer)[:count])
        return begun, time.monotonic() - began, length


class Asked:
    """What the origin was asked for since a moment."""

    def __init__(self, log: Path):
        self.log = log
        self.seen = len(log.read_text().splitlines())

    def __call__(self) -> tuple:
        lines = [line.split(" ") for line in self.log.read_text().splitlines()[self.seen:]]
        spans = [span.split("-") for method, _, span in lines if method == "GET"]
        return len(lines), sum(int(last) - int(first) + 1 for first, last in spans)


def varnish(origin: str, work: Path):
    work.mkdir(parents=True, exist_ok=True)
    port = servers.free_port()
    shutil.rmtree(work / "name", ignore_errors=True)
    command = [
        "varnishd", "-F", "-n", str(work / "name"), "-a", f"127.0.0.1:{port}", "-b", origin.removeprefix("http://"),
        "-s", "malloc,1G", "-t", "3600",
    ]
    return servers.Server("varnish", command, port, work / "output.log")


def crowd_client(arguments):
    url, count, known = arguments
    results = []

    def one():
        digest = hashlib.sha256()
        try:
            _, took, length = fetch(url, digest=digest)
            results.append((took, length, digest.hexdigest() == known))
        except (OSError, RuntimeError, IndexError) as error:
            results.append((0, 0, False))
            print(error, file=sys.stderr)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--rounds", type=int, default=5, help="of each case (%(default)s)")
    parser.add_argument("--crowd", type=int, default=0, help="clients on one cold object of 200 MB (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/cold.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    work = TARGET / "bench/cold"
    site = work / "site"
    site.mkdir(parents=True, exist_ok=True)
    noise = random.Random(1)
    blocks = [noise.randbytes(1 << 20) for _ in range(SIZE >> 20)]
    names = [f"film-{number}.bin" for number in range(options.rounds * 3 + 1)]
    for name in names:
        if not (site / name).exists():
            (site / names[0]).write_bytes(b"".join(blocks)) if name == names[0] else (site / name).hardlink_to(site / names[0])
    known = hashlib.sha256(b"".join(blocks)).hexdigest()
    log, port = work / "origin.log", servers.free_port()
    origin = f"http://127.0.0.1:{port}"
    command = [sys.executable, str(TOP / "slow_origin.py"), str(site), str(port), str(DELAY), str(log)]
    serve = f"serve {{media}} --http 127.0.0.1:{{port}} --admin 127.0.0.1:0 --rtsp 127.0.0.1:0 --workers 1 --access-log=false --cache {work}/millpond/cache"
    shutil.rmtree(work / "millpond", ignore_errors=True)
    results = {}
    with (
        measure.congestion_control("cubic"),
        servers.Server("origin", command, port, work / "origin.output"),
        servers.millpond(options.server, serve, origin, work / "millpond") as ours,
        servers.nginx_cache("nginx", origin, work / "nginx") as nginx,
        varnish(origin, work / "varnish") as other,
    ):
        for server in (ours, nginx, other):
            results[server.name] = cases(server, names, log, options.rounds)
        show(results)
        if options.crowd:
            results["crowd"] = crowd(ours, f"/{names[-1]}", log, options.crowd, known)
    options.json.write_text(json.dumps(results, indent=1))


def cases(server, names: list, log: Path, rounds: int) -> dict:
    whole, middle, fifty = [], [], []
    for number in range(rounds):
        asked = Asked(log)
        first, took, length = fetch(f"{server.url}/{names[number * 3]}")
        assert length == SIZE, length
        whole.append((first, took, *asked()))
        asked = Asked(log)
        at = 100 << 20
        first, took, length = fetch(f"{server.url}/{names[number * 3 + 1]}", at, at + (1 << 20) - 1)
        assert length == 1 << 20, length
        time.sleep(0.3)
        middle.append((first, took, *asked()))
        asked = Asked(log)
        fifty.append((*together(f"{server.url}/{names[number * 3 + 2]}", 50), *asked()))
    median = lambda rows: [sorted(column)[len(rows) // 2] for column in zip(*rows)]
    return {"whole": median(whole), "middle": median(middle), "fifty": median(fifty)}


def together(url: str, count: int) -> tuple:
    """The slowest of many who ask for one range at once: first byte, whole."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(fetch(url, 50 << 20, (51 << 20) - 1))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == count and all(length == 1 << 20 for _, _, length in results)
    return max(first for first, _, _ in results), max(took for _, took, _ in results)


def show(results: dict):
    titles = {"whole": "200 MB whole", "middle": "1 MB in the middle", "fifty": "50 clients on 1 MB"}
    for case, title in titles.items():
        print(f"{title:22}{'first byte ms':>14}{'whole ms':>11}{'requests':>10}{'MB from the origin':>20}")
        for name, result in results.items():
            first, took, requests, sent = result[case]
            print(f"  {name:20}{first * 1e3:14.1f}{took * 1e3:11.1f}{requests:10}{sent / 1e6:20.1f}")


def crowd(server, path: str, log: Path, count: int, known: str) -> dict:
    asked = Asked(log)
    processes = 2
    began = time.monotonic()
    with multiprocessing.Pool(processes) as pool:
        batches = pool.map(crowd_client, [(server.url + path, count // processes, known)] * processes)
    results = [result for batch in batches for result in batch]
    right = sum(1 for _, length, same in results if length == SIZE and same)
    requests, sent = asked()
    took = time.monotonic() - began
    print(f"{count} clients on a cold 200 MB object: {right} right by their hash, in {took:.0f} s; "
          f"origin: {requests} requests, {sent / SIZE:.3f} times the object")
    return {"clients": count, "right": right, "seconds": took, "requests": requests, "sent": sent}


if __name__ == "__main__":
    main()
