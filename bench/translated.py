#!/usr/bin/env python3
"""What translated viewers cost: HTTP viewers of intercepted RTSP streams on one core, beside nginx that sends a file at the same rate.

The RTSP server is a millpond with channels, which knows nothing of the edge. Client, edge and server have a network namespace each. The
edge, and nginx, have one core and one worker; viewers.c and the RTSP server have the others. A fragment is late where its end comes more
than 100 ms behind its time. nginx limits each connection to the bit rate of the clip. Needs root, nginx, ffmpeg, cc, nftables.

    cargo build --release -p millpond
    bench/translated.py --json result.json
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from compare import TARGET
from routed import SERVER, Routed, cpu_seconds
from rtsp_capacity import make

NGINX = """
daemon off; master_process off; pid {work}/nginx.pid; error_log {work}/nginx.log;
worker_rlimit_nofile 8192;
events {{ worker_connections 8192; }}
http {{ access_log off; sendfile on; server {{ listen 80; root {work}; limit_rate {rate}; }} }}
"""


def watch(way: Routed, process: subprocess.Popen, path: str, options) -> dict:
    """Viewers of a server, whose CPU is measured while all of them watch."""
    command = way.command("client", "taskset", "-c", options.others, way.work / "viewers", SERVER, 80, options.viewers, options.streams,
                          options.seconds, options.settle, 100, path)
    viewers = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    time.sleep(options.settle)
    began, cpu = time.monotonic(), cpu_seconds(process)
    time.sleep(options.seconds - 1)
    cpu, elapsed = cpu_seconds(process) - cpu, time.monotonic() - began
    output, _ = viewers.communicate(timeout=60)
    result = json.loads(output)
    result["cpu-share"] = cpu / elapsed
    result["mbit-per-viewer"] = result["bytes"] * 8 / 1e6 / result["seconds"] / options.viewers
    return result


def translated(way: Routed, options, folder: Path) -> dict:
    channels = ",".join(f"c{number}={options.clip}.mp4" for number in range(options.streams))
    server = way.start("server", "taskset", "-c", options.others, options.bin, "serve", folder, "--rtsp", "0.0.0.0:554", "--rtsp-channels",
                       channels, "--cache", way.work / "upstream", "--access-log=false", log="upstream.log")
    way.listens("server", 554)
    edge = way.intercept(options.bin, "--workers", "1")
    subprocess.run(["taskset", "-a", "-p", "-c", options.core, str(edge.pid)], check=True, capture_output=True)
    result = watch(way, edge, "/c%d", options)
    way.stop(edge)
    way.stop(server)
    way.route()
    return result


def nginx(way: Routed, options, folder: Path) -> dict:
    file = way.work / "file.bin"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 30)
    rate = round(options.rate * 1e6 / 8)
    (way.work / "nginx.conf").write_text(NGINX.format(work=way.work, rate=rate))
    server = way.start("server", "taskset", "-c", options.core, "nginx", "-c", way.work / "nginx.conf", "-p", way.work, log="nginx.err")
    way.listens("server", 80)
    result = watch(way, server, "/file.bin", options)
    way.stop(server)
    return result


def measure(options) -> dict:
    folder = options.media.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    make(options.clip, folder)
    results = {"translated": [], "nginx": []}
    with Routed(TARGET / "bench/translated") as way:
        source = Path(__file__).with_name("viewers.c")
        subprocess.run(["cc", "-O2", "-o", way.work / "viewers", source], check=True)
        for _ in range(options.trials):
            result = translated(way, options, folder)
            results["translated"].append(result)
            # The clip's own rate, so that both send the same.
            options.rate = result["mbit-per-viewer"]
            results["nginx"].append(nginx(way, options, folder))
            for name, values in results.items():
                print(f"{name}: {values[-1]}", flush=True)
    share = {name: statistics.median(value["cpu-share"] for value in values) for name, values in results.items()}
    late = statistics.median(value["late"] for value in results["translated"])
    return {"trials": results, "cpu-share": share, "ratio": share["translated"] / share["nginx"], "late": late}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="(%(default)s)")
    parser.add_argument("--media", type=Path, default=TARGET / "bench/rtsp-media", help="where clips are kept (%(default)s)")
    parser.add_argument("--clip", default="V1024", help="of rtsp_capacity.py (%(default)s)")
    parser.add_argument("--viewers", type=int, default=1000, help="(%(default)s)")
    parser.add_argument("--streams", type=int, default=100, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="steady part of each trial (%(default)s)")
    parser.add_argument("--settle", type=float, default=12, help="seconds before it; viewers come in the first half (%(default)s)")
    parser.add_argument("--core", default="0", help="core of the edge and of nginx (%(default)s)")
    parser.add_argument("--others", default="1", help="cores of all else (%(default)s)")
    parser.add_argument("--trials", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--json", type=Path, help="file of the result")
    options = parser.parse_args()
    result = measure(options)
    share = result["cpu-share"]
    each = {name: value / options.viewers * 1e6 for name, value in share.items()}
    print(f"{options.viewers} viewers of {options.streams} streams: {share['translated']:.0%} of a core, late fragments {result['late']:.0f}; "
          f"a viewer {each['translated']:.0f} us a second, nginx {each['nginx']:.0f}, ratio {result['ratio']:.2f}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if result["late"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
