#!/usr/bin/env python3
"""TFRC beside TCP: the share of an RTSP viewer of Millpond at a bottleneck of 10 Mbit/s, beside one and four flows of cubic.

    cargo build --release -p millpond -p millpond-lab -p millpond-link
    bench/fairness.py

Two namespaces are joined by millpond-link. On one side `millpond serve --rtsp-rate-control tfrc` sends a clip of 20 Mbit/s, twice what
fits, and TCP senders send all they can. On the other side `millpond load` plays the clip and reports often, and the TCP flows are
read. The share is the viewer's rate over the mean of the TCP flows, without the first seconds. Exits 1 where a share is not
within 0.5 to 1.5. Needs root and ffmpeg.
"""

import argparse
import json
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import media
import netns
import svg
from compare import TARGET

WORK = TARGET / "bench/fairness"
RTSP, TCP = 8554, 5201
# Seconds at the beginning that do not count.
BEGINNING = 10
# Bits a second of the clip: all pictures are key frames, so that dropping some leaves no gap.
RATE = 20_000_000


def clip(seconds: int) -> Path:
    """Pictures of equal size, by filler data, so that the stream is above the bottleneck all the time."""
    minute, file = WORK / "minute.mp4", WORK / f"site/{seconds}.mp4"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        media.ffmpeg(
            "-f", "lavfi", "-i", "testsrc2=s=320x240:r=25", "-t", 20, "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p",
            "-g", 1, "-bf", 0, "-b:v", RATE, "-minrate", RATE, "-maxrate", RATE, "-bufsize", RATE // 10,
            "-x264-params", "nal-hrd=cbr:filler=1", minute,
        )
        media.ffmpeg("-stream_loop", -1, "-i", minute, "-t", seconds, "-c", "copy", "-movflags", "+faststart", file)
    return file


def send(count: int):
    """Sends to each of some connections all that it takes."""
    listener = socket.create_server(("0.0.0.0", TCP))
    connections = [listener.accept()[0] for _ in range(count)]
    block = bytes(65536)
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        connection.setblocking(False)
    while True:
        for connection in connections:
            try:
                connection.send(block)
            except BlockingIOError:
                pass
        time.sleep(0.002)


def receive(count: int, seconds: float, file: Path):
    """Reads connections, and writes the bytes that each of them brought in each second."""
    connections = [socket.create_connection((netns.ADDRESSES[0], TCP)) for _ in range(count)]
    for connection in connections:
        connection.setblocking(False)
    rows, row, start = [], [0] * count, time.monotonic()
    while (now := time.monotonic() - start) < seconds:
        while now >= len(rows) + 1:
            rows.append(row)
            row = [0] * count
        for place, connection in enumerate(connections):
            try:
                row[place] += len(connection.recv(1 << 20))
            except BlockingIOError:
                pass
        time.sleep(0.005)
    file.write_text(json.dumps(rows))


def measure(flows: int, options) -> dict:
    """Rates in bit/s, second by second, of the viewer and of the TCP flows."""
    name = f"{flows}-{options.delay}ms-{options.queue}ms"
    file = clip(options.seconds + 20)
    impairments = f"rate={options.mbps}Mbit,queue={options.queue}ms"
    with netns.Pair(both=f"delay={options.delay}ms", ab=impairments, seed=options.seed) as pair:
        pair.a.start(
            options.bin, "serve", file.parent, "--rtsp", f"0.0.0.0:{RTSP}", "--http", "127.0.0.1:8080", "--admin", "127.0.0.1:8380",
            "--rtsp-rate-control", options.rule, log=WORK / f"{name}.serve.log",
        )
        pair.b.wait_for(pair.a.address, RTSP)
        pair.a.start(sys.executable, __file__, "--send", flows, log=WORK / f"{name}.send.log")
        time.sleep(1)
        brought = WORK / f"{name}.tcp.json"
        reader = pair.b.start(
            sys.executable, __file__, "--receive", flows, "--seconds", options.seconds, "--out", brought, log=WORK / f"{name}.receive.log",
        )
        url = f"rtsp://{pair.a.address}:{RTSP}/{file.name}"
        command = ("load", url, "--clients", 1, "--once", "--watch", f"{options.seconds}s", "--reports", f"{options.reports}ms", "--json", "-")
        told = pair.b.run(options.bin, *command, check=False)
        reader.wait(60)
        metrics = pair.a.run("curl", "-s", "http://127.0.0.1:8380/metrics", check=False).stdout
    (WORK / f"{name}.metrics").write_text(metrics)
    report = json.loads(told.stdout)
    (WORK / f"{name}.json").write_text(told.stdout)
    viewer = [1e6 * second["megabits-per-second"] for second in report["timeline"]]
    tcp = [[8 * bytes_ for bytes_ in row] for row in json.loads(brought.read_text())]
    return {"viewer": viewer, "tcp": tcp, "lost": report["media"]["lost"], "packets": report["media"]["packets"]}


def judge(flows: int, found: dict, options) -> dict:
    viewer, tcp = found["viewer"][BEGINNING:], found["tcp"][BEGINNING : len(found["viewer"])]
    each = [statistics.mean(row[place] for row in tcp) for place in range(flows)]
    rate = statistics.mean(viewer)
    variation = lambda values: statistics.pstdev(values) / statistics.mean(values)
    return {
        "flows": flows,
        "viewer": rate,
        "tcp": each,
        "share": rate / statistics.mean(each),
        "used": (rate + sum(each)) / (options.mbps * 1e6),
        "variation": (variation(viewer), statistics.mean(variation([row[place] for row in tcp]) for place in range(flows))),
        "lost": found["lost"] / max(found["packets"], 1),
    }


def draw(flows: int, found: dict, out: Path):
    length = min(len(found["viewer"]), len(found["tcp"]))
    series = {"RTP by UDP, TFRC": [rate / 1e6 for rate in found["viewer"][:length]]}
    for place in range(flows):
        series[f"TCP cubic {place + 1}"] = [row[place] / 1e6 for row in found["tcp"][:length]]
    points = [str(second) if second % 10 == 0 else "" for second in range(length)]
    svg.lines(out / f"fairness-{flows}.svg", f"TFRC beside {flows} flows of cubic", "Mbit/s in each second", points, series)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond")
    parser.add_argument("--flows", default="1,4", help="numbers of TCP flows")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--mbps", type=int, default=10)
    parser.add_argument("--delay", type=int, default=20, help="milliseconds in each direction")
    parser.add_argument("--queue", type=int, default=100, help="milliseconds of the bottleneck's queue")
    parser.add_argument("--reports", type=int, default=50, help="milliseconds between two reports of the viewer")
    parser.add_argument("--rule", default="tfrc", help="rtsp-rate-control")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=WORK)
    parser.add_argument("--send", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--receive", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send:
        return send(options.send)
    if options.receive:
        return receive(options.receive, options.seconds, options.out)
    is_fair = True
    print("| TCP flows | TFRC Mbit/s | TCP Mbit/s, each | share | link used | variation TFRC, TCP | RTP lost |\n|---|---|---|---|---|---|---|")
    for flows in map(int, options.flows.split(",")):
        found = measure(flows, options)
        result = judge(flows, found, options)
        draw(flows, found, options.out)
        each = ", ".join(f"{rate / 1e6:.2f}" for rate in result["tcp"])
        variation = ", ".join(f"{value:.2f}" for value in result["variation"])
        print(
            f"| {flows} | {result['viewer'] / 1e6:.2f} | {each} | {result['share']:.2f} | {100 * result['used']:.0f} % | {variation} "
            f"| {100 * result['lost']:.2f} % |", flush=True,
        )
        is_fair &= 0.5 <= result["share"] <= 1.5
    if not is_fair:
        sys.exit("a share is out of 0.5 to 1.5")


if __name__ == "__main__":
    main()
