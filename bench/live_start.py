#!/usr/bin/env python3
"""How soon viewers of a running live stream get media: millpond beside MediaMTX, both before the same source.

The source is a channel of another millpond. While a crowd of viewers plays the stream, probes come one after another. Each takes
the time from its request for media (GET, or PLAY) to the first bytes of media, and from its connection on. MediaMTX has no long
responses by HTTP, so only RTSP is compared. It is measured where `--mediamtx` names its program.

With `--cold` nobody else plays: each probe opens the stream at the source, and closes it. Probes of the source itself take turns with it.

    cargo build --release -p millpond -p millpond-lab
    bench/live_start.py --mediamtx FOLDER/mediamtx
"""

import argparse
import contextlib
import re
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import servers
from compare import TARGET, conclude, ratio
from live_fanout import MEDIAMTX, OFF, source
from rtsp_capacity import CLIPS, Rtsp, make

GOAL_MS = 5.0
# Beyond the source's own start.
COLD_GOAL_MS = 100.0


def edge(name: str, upstream: Rtsp, options, work: Path) -> Rtsp:
    """A server under test, with the port of its HTTP."""
    port, http = servers.free_port(), servers.free_port()
    if name == "millpond":
        command = [options.bin, "serve", f"cams=rtsp://127.0.0.1:{upstream.port}/", "--http", f"127.0.0.1:{http}", "--admin", "127.0.0.1:0"]
        command += ["--rtsp", f"127.0.0.1:{port}", "--access-log=false", "--cache", work / "cache", "--source-transport", "tcp"]
        command += ["--linger", "0s"] if options.cold else []
    else:
        rtp = 2 * (servers.free_port() // 2)
        config = work / "mediamtx.yml"
        config.write_text(MEDIAMTX.format(port=port, rtp=rtp, rtcp=rtp + 1, off=OFF, source=upstream.port))
        command = [options.mediamtx, config]
    server = Rtsp(name, [str(word) for word in command], port, work / f"{name}.log")
    server.http = http
    return server


@contextlib.contextmanager
def crowd(server: Rtsp, way: str, options):
    """Viewers that play all the time."""
    if way == "rtsp":
        command = [options.bin, "load", f"rtsp://127.0.0.1:{server.port}/cams/{options.clip}.mp4", "--transport", "tcp"]
        command += ["--clients", str(options.viewers), "--ramp-up", "2s", "--duration", "1h"]
    else:
        command = ["curl", "-sN", "--parallel", "--parallel-max", "300", "--parallel-immediate"]
        for _ in range(options.viewers):
            command += ["-o", "/dev/null", f"http://127.0.0.1:{server.http}/cams/{options.clip}.mp4/stream.{way}"]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(options.settle)
        yield
    finally:
        process.kill()
        process.wait()


def until(link: socket.socket, buffer: bytes, end: bytes) -> tuple:
    """What comes up to `end`, and what was read behind it."""
    while end not in buffer:
        more = link.recv(65536)
        if not more:
            raise ConnectionError(f"closed after {buffer[-200:]!r}")
        buffer += more
    head, _, rest = buffer.partition(end)
    return head, rest


def by_http(server: Rtsp, way: str, options) -> tuple:
    """Seconds from GET and from the connection to the first bytes of a long response's body."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", server.http), timeout=10) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        asked = time.perf_counter()
        link.sendall(f"GET /cams/{options.clip}.mp4/stream.{way} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        head, rest = until(link, b"", b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode())
        if not rest and not link.recv(65536):
            raise ConnectionError("closed without media")
        now = time.perf_counter()
    return now - asked, now - began


def by_rtsp(server: Rtsp, options, way: str = "rtsp") -> tuple:
    """Seconds from PLAY and from the connection to the first packet on the connection. The way `source` asks the source itself."""
    url = f"rtsp://127.0.0.1:{server.port}/{'' if way == 'source' else 'cams/'}{options.clip}.mp4"
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        rest, number, session = b"", 0, ""

        def ask(method: str, to: str, fields: str = "") -> str:
            nonlocal rest, number
            number += 1
            link.sendall(f"{method} {to} RTSP/1.0\r\nCSeq: {number}\r\n{session}{fields}\r\n".encode())
            head, rest = until(link, rest, b"\r\n\r\n")
            if b" 200 " not in head.split(b"\r\n")[0]:
                raise ConnectionError(f"{method}: {head.decode()}")
            return head.decode()

        head = ask("DESCRIBE", url, "Accept: application/sdp\r\n")
        length = int(re.search(r"(?im)^content-length:\s*(\d+)", head)[1])
        while len(rest) < length:
            rest += link.recv(65536)
        text, rest = rest[:length].decode(), rest[length:]
        base = re.search(r"(?im)^content-base:\s*(\S+)", head)
        base = (base[1] if base else url).rstrip("/")
        for place, part in enumerate(text.split("\nm=")[1:]):
            control = re.search(r"(?m)^a=control:(\S+)", part)[1]
            track = control if control.startswith("rtsp:") else f"{base}/{control}"
            fields = f"Transport: RTP/AVP/TCP;unicast;interleaved={2 * place}-{2 * place + 1}\r\n"
            found = re.search(r"(?im)^session:\s*([^;\s]+)", ask("SETUP", track, fields))
            session = f"Session: {found[1]}\r\n"
        number += 1
        asked = time.perf_counter()
        link.sendall(f"PLAY {url} RTSP/1.0\r\nCSeq: {number}\r\n{session}Range: npt=0-\r\n\r\n".encode())
        # A packet may come before the reply.
        if not rest.startswith(b"$"):
            rest = rest or link.recv(65536)
        if not rest.startswith(b"$"):
            _, rest = until(link, rest, b"\r\n\r\n")
            rest = rest or link.recv(65536)
        now = time.perf_counter()
        if not rest.startswith(b"$"):
            raise ConnectionError(f"no packet: {rest[:60]!r}")
    return now - asked, now - began


def percentiles(seconds: list) -> tuple:
    """Median and 99th percentile in milliseconds."""
    ordered = sorted(1000 * second for second in seconds)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


def trial(name: str, way: str, options) -> dict:
    work = TARGET / "bench/live-start"
    work.mkdir(parents=True, exist_ok=True)
    asked, connected = [], []
    with source(options, work) as upstream, edge(name, upstream, options, work) as server, crowd(server, way, options):
        for _ in range(options.probes):
            times = by_rtsp(server, options) if way == "rtsp" else by_http(server, way, options)
            asked.append(times[0])
            connected.append(times[1])
            time.sleep(options.pause)
    return {"server": name, "way": way, "asked": percentiles(asked), "connected": percentiles(connected)}


def cold(options) -> dict:
    """Times from the connection to the first media of a stream that nobody else plays, beside those of the source itself."""
    work = TARGET / "bench/live-start"
    work.mkdir(parents=True, exist_ok=True)
    make(options.clip, options.media)
    times = {way: [] for way in ("source", "rtsp", "mp4", "ts")}
    with source(options, work) as upstream, edge("millpond", upstream, options, work) as server:
        for _ in range(options.cold):
            for way, of in times.items():
                probe = by_http(server, way, options) if way in ("mp4", "ts") else by_rtsp(server if way == "rtsp" else upstream, options, way)
                of.append(probe[1])
                # The stream is torn down at its source.
                time.sleep(0.3)
    results = {way: percentiles(of) for way, of in times.items()}
    print("| way | p50, ms | p99, ms | more than the source, p50 and p99 | goal |\n|---|---|---|---|---|")
    for way, (half, tail) in results.items():
        more = half - results["source"][0], tail - results["source"][1]
        goal = "" if way == "source" else "met" if max(more) <= COLD_GOAL_MS else "missed"
        print(f"| {way} | {half:.1f} | {tail:.1f} | {more[0]:.1f}, {more[1]:.1f} | {goal} |")
    return {"cold": results}


def run(options) -> dict:
    if options.cold:
        return cold(options)
    make(options.clip, options.media)
    trials = [("millpond", way) for way in ("mp4", "ts", "rtsp")] + ([("mediamtx", "rtsp")] if options.mediamtx else [])
    results = []
    for _ in range(options.rounds):
        for name, way in trials:
            results.append(one := trial(name, way, options))
            print(f"{name:9} {way:5} p50 {one['asked'][0]:.2f} p99 {one['asked'][1]:.2f} ms", flush=True)
    print(f"\nFirst media of a running stream with {options.viewers} viewers, in milliseconds (medians of {options.rounds} rounds)")
    print("\n| server | way | from the request, p50 and p99 | from the connection, p50 and p99 | goal |")
    print("|---|---|---|---|---|")
    tails = {}
    for name, way in trials:
        own = [one for one in results if (one["server"], one["way"]) == (name, way)]
        of = lambda key, place: statistics.median(one[key][place] for one in own)  # noqa: E731
        tails[name, way] = of("asked", 1)
        goal = "met" if tails[name, way] <= GOAL_MS else "missed"
        shown = "RTSP" if way == "rtsp" else f"stream.{way}"
        print(f"| {name} | {shown} | {of('asked', 0):.2f}, {of('asked', 1):.2f} | {of('connected', 0):.2f}, {of('connected', 1):.2f} | {goal} |")
    if options.mediamtx:
        more = ratio(tails["mediamtx", "rtsp"], tails["millpond", "rtsp"])
        print(f"p99 by RTSP: MediaMTX takes {more:.1f} times as long")
    return {"results": results}


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--mediamtx", type=Path, help="MediaMTX's binary")
    parser.add_argument("--viewers", type=int, default=100, help="(%(default)s)")
    parser.add_argument("--cold", type=int, help="viewers of each way that open the source, instead of the crowd")
    parser.add_argument("--probes", type=int, default=300, help="viewers that are timed in each trial (%(default)s)")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two probes (%(default)s)")
    parser.add_argument("--clip", choices=list(CLIPS), default="V1024", help="(%(default)s)")
    parser.add_argument("--media", type=Path, default=TARGET / "bench/rtsp-media", help="where clips are kept (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--settle", type=float, default=6, help="seconds between the crowd's start and the first probe (%(default)s)")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for the run (%(default)s)")
    default = TARGET / "bench/live_start.json"
    parser.add_argument("--json", type=Path, nargs="?", const=default, help=f"write all figures too ({default})")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(conclude(parse(sys.argv[1:]), run))
