#!/usr/bin/env python3
"""What one live stream costs with many RTSP viewers: millpond beside MediaMTX and ZLMediaKit, all before the same source.

The source is a channel of another millpond. Millpond and MediaMTX open it when the first viewer comes, ZLMediaKit before. `millpond
load` is the client of all; a packet is late where it comes more than 100 ms behind its schedule. Servers take turns; medians are
compared. A peer is measured where its option names its program. ZLMediaKit passes packets on as they come (`directProxy`), and makes
no other formats of them.

    cargo build --release -p millpond -p millpond-lab
    bench/live_fanout.py --mediamtx FOLDER/mediamtx --zlmediakit FOLDER/MediaServer
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

import measure
import servers
from compare import TARGET, conclude, ratio
from rtsp_capacity import CLIPS, Rtsp, make, process_seconds

MEDIAMTX = """
logLevel: warn
rtspAddress: 127.0.0.1:{port}
rtpAddress: 127.0.0.1:{rtp}
rtcpAddress: 127.0.0.1:{rtcp}
rtspTransports: [udp, tcp]
{off}
paths:
  "~^cams/(.+)$":
    source: rtsp://127.0.0.1:{source}/$G1
    sourceOnDemand: yes
    rtspTransport: tcp
"""
OFF = "\n".join(f"{name}: no" for name in ("rtmp", "hls", "webrtc", "srt", "moq"))

ZLMEDIAKIT = """
[api]
secret={secret}
[protocol]
enable_hls=0
enable_hls_fmp4=0
enable_mp4=0
enable_rtmp=0
enable_ts=0
enable_fmp4=0
enable_rtsp=1
add_mute_audio=0
rtsp_demand=0
[http]
port={http}
sslport=0
[rtmp]
port=0
sslport=0
[rtp_proxy]
port=0
[rtc]
port=0
tcpPort=0
icePort=0
iceTcpPort=0
signalingPort=0
signalingSslPort=0
[srt]
port=0
[onvif]
port=0
[shell]
port=0
[rtsp]
port={port}
sslport=0
directProxy=1
lowLatency=0
"""
PEERS = {"mediamtx": "MediaMTX", "zlmediakit": "ZLMediaKit"}
SECRET = "a-secret-for-tests"


def source(options, work: Path) -> Rtsp:
    """A server whose channel is the live stream."""
    port, admin = servers.free_port(), servers.free_port()
    folder = options.media.resolve()
    command = [options.bin, "serve", folder, "--http", "127.0.0.1:0", "--admin", f"127.0.0.1:{admin}", "--rtsp", f"127.0.0.1:{port}"]
    command += ["--access-log=false", "--cache", work / "source-cache", "--rtsp-channels", f"{options.clip}.mp4"]
    server = Rtsp("source", [str(word) for word in command], port, work / "source.log")
    server.admin = admin
    return server


def edge(name: str, upstream: Rtsp, options, work: Path) -> Rtsp:
    """A server under test."""
    port = servers.free_port()
    if name == "millpond":
        command = [options.bin, "serve", f"cams=rtsp://127.0.0.1:{upstream.port}/", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        command += ["--rtsp", f"127.0.0.1:{port}", "--access-log=false", "--cache", work / "cache", "--source-transport", "tcp"]
    elif name == "zlmediakit":
        http, config = servers.free_port(), work / "zlmediakit.ini"
        config.write_text(ZLMEDIAKIT.format(secret=SECRET, http=http, port=port))
        server = Rtsp(name, [str(word) for word in (options.zlmediakit, "-c", config, "-l", "3")], port, work / f"{name}.log")
        server.http = http
        return server
    else:
        rtp = 2 * (servers.free_port() // 2)
        config = work / "mediamtx.yml"
        config.write_text(MEDIAMTX.format(port=port, rtp=rtp, rtcp=rtp + 1, off=OFF, source=upstream.port))
        command = [options.mediamtx, config]
    return Rtsp(name, [str(word) for word in command], port, work / f"{name}.log")


def pull(server: Rtsp, upstream: Rtsp, options):
    """Has ZLMediaKit open the source, and waits until it has its tracks."""
    base = f"http://127.0.0.1:{server.http}/index/api"
    path = {"secret": SECRET, "vhost": "__defaultVhost__", "app": "cams", "stream": f"{options.clip}.mp4"}
    ask = lambda name, **more: json.load(urllib.request.urlopen(f"{base}/{name}?{urllib.parse.urlencode({**path, **more})}", timeout=20))  # noqa: E731
    answer = ask("addStreamProxy", url=f"rtsp://127.0.0.1:{upstream.port}/{options.clip}.mp4", rtp_type="0")
    if answer["code"] != 0:
        raise RuntimeError(f"ZLMediaKit does not open the source: {answer}")
    deadline = time.monotonic() + 20
    while not ask("isMediaOnline", schema="rtsp").get("online"):
        if time.monotonic() > deadline:
            raise RuntimeError(f"ZLMediaKit has no stream after 20 s:\n{server.tail()}")
        time.sleep(0.1)


def playing(server: Rtsp) -> int:
    """Sessions that a millpond plays."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{server.admin}/metrics", timeout=5).read().decode()
    return sum(int(float(line.split()[-1])) for line in text.splitlines() if line.startswith("millpond_rtsp_playing"))


def trial(name: str, transport: str, options) -> dict:
    ramp = options.viewers / options.arrivals
    steady = ramp + options.settle
    total = steady + options.seconds
    work = TARGET / "bench/live-fanout"
    work.mkdir(parents=True, exist_ok=True)
    with source(options, work) as upstream, edge(name, upstream, options, work) as server:
        if name == "zlmediakit":
            pull(server, upstream, options)
        began = time.monotonic()
        url = f"rtsp://127.0.0.1:{server.port}/cams/{options.clip}.mp4"
        command = [options.bin, "load", url, "--transport", transport, "--json", "-", "--clients", str(options.viewers)]
        command += ["--ramp-up", f"{round(ramp * 1000)}ms", "--duration", f"{round(total * 1000)}ms"]
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            time.sleep(max(0.0, began + steady - time.monotonic()))
            before = server.cpu_seconds(), measure.machine_seconds(), process_seconds(process.pid), time.monotonic()
            time.sleep(max(0.0, began + total - 1 - time.monotonic()))
            memory, sessions = server.memory(), playing(upstream)
            after = server.cpu_seconds(), measure.machine_seconds(), process_seconds(process.pid), time.monotonic()
            report = json.loads(process.communicate(timeout=60)[0])
        finally:
            process.kill()
            process.wait()
    cpu, _, generator, wall = (b - a for a, b in zip(before, after))
    window = [step for step in report["timeline"] if steady < step["elapsed"] <= total - 0.5]
    packets = sum(step["packets-per-second"] for step in window) or 1
    return {
        "server": name,
        "transport": transport,
        "active": statistics.mean(step["active"] for step in window),
        "failed": report["sessions"]["failed"],
        "late": sum(step["packets-per-second"] * step["late-percent"] for step in window) / packets,
        "lost": report["media"]["lost-percent"],
        "cpu": 100 * cpu / wall,
        "generator": 100 * generator / wall,
        "memory": memory / 1e6,
        "startup": [report["startup"][point] for point in ("p50", "p99")],
        "sessions": sessions,
        "why": "; ".join(f"{failure['count']} x {failure['kind']}" for failure in report["failures"][:2]),
    }


def run(options) -> dict:
    make(options.clip, options.media)
    names = ["millpond"] + [peer for peer in PEERS if getattr(options, peer)]
    results = []
    for _ in range(options.rounds):
        for transport in options.transports.split(","):
            for name in names:
                one = trial(name, transport, options)
                results.append(one)
                print(
                    f"{name:10} {transport} {options.viewers} viewers: {one['active']:.0f} active, {one['failed']} failed, {one['late']:.2f} % late, "
                    f"{one['lost']:.2f} % lost, CPU {one['cpu']:.1f} %, {one['memory']:.0f} MB, first packet p50 {one['startup'][0]:.1f} "
                    f"p99 {one['startup'][1]:.1f} ms, generator {one['generator']:.0f} %, {one['sessions']} upstream  {one['why']}",
                    flush=True,
                )
    print("\n| server | transport | viewers | late | lost | CPU a viewer | memory | first packet, p50 and p99 | upstream sessions |")
    print("|---|---|---|---|---|---|---|---|---|")
    for transport in options.transports.split(","):
        costs = {}
        for name in names:
            own = [one for one in results if (one["server"], one["transport"]) == (name, transport)]
            of = lambda key: statistics.median(one[key] for one in own)  # noqa: E731
            costs[name] = of("cpu") / max(1, of("active"))
            p50, p99 = (statistics.median(one["startup"][place] for one in own) for place in (0, 1))
            print(f"| {name} | {transport} | {of('active'):.0f} | {of('late'):.2f} % | {of('lost'):.2f} % | {costs[name]:.4f} % | "
                  f"{of('memory'):.0f} MB | {p50:.1f}, {p99:.1f} ms | {of('sessions'):.0f} |")
        for peer in names[1:]:
            print(f"CPU a viewer, {transport}: {PEERS[peer]} takes {ratio(costs[peer], costs['millpond']):.1f} times as much")
    return {"results": results}


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    for peer, title in PEERS.items():
        parser.add_argument(f"--{peer}", type=Path, help=f"{title}'s binary")
    parser.add_argument("--viewers", type=int, default=1000, help="(%(default)s)")
    parser.add_argument("--transports", default="udp,tcp", help="(%(default)s)")
    parser.add_argument("--clip", choices=list(CLIPS), default="V1024", help="(%(default)s)")
    parser.add_argument("--media", type=Path, default=TARGET / "bench/rtsp-media", help="where clips are kept (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=15, help="steady part of each trial (%(default)s)")
    parser.add_argument("--settle", type=float, default=5, help="seconds between arrivals and steady part (%(default)s)")
    parser.add_argument("--arrivals", type=float, default=100, help="viewers that arrive in a second (%(default)s)")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for the run (%(default)s)")
    default = TARGET / "bench/live_fanout.json"
    parser.add_argument("--json", type=Path, nargs="?", const=default, help=f"write all figures too ({default})")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(conclude(parse(sys.argv[1:]), run))
