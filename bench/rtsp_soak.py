#!/usr/bin/env python3
"""A thousand RTSP sessions with random seeks, pauses and departures for some minutes, and whether anything stays behind.

Films before nginx, a disk cache that holds half of them; by UDP, and a tenth of the sessions by TCP. Every few seconds the server's memory,
descriptors, pins, sessions and nodes of its stream graph are written down; after the load they must be back where they were
before it: sessions, nodes and pins at none, descriptors at most a few more, memory at most what the caches may hold more.
Exits 1 where not.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import media
import rtsp_capacity
import servers
from compare import TARGET

FILMS = 20
MEMORY = 128


def sample(server) -> dict:
    pid = server.process.pid
    status = Path(f"/proc/{pid}/status").read_text()
    told, graph = server.metrics(), json.loads(server.told("/api/v1/graph"))
    return {
        "resident MB": int(status.split("VmRSS:")[1].split()[0]) / 1024,
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "pinned": told["millpond_disk_pinned_bytes"], "playing": told["millpond_rtsp_playing"],
        "nodes": len(graph["modules"]), "pipes": len(graph["pipes"]),
        "frames": told["millpond_rtp_frames_total"], "late": told["millpond_rtp_late_frames_total"],
        "dropped": told["millpond_rtp_dropped_frames_total"], "evicted": told["millpond_disk_evictions_total"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--minutes", type=float, default=10, help="of load (%(default)s)")
    parser.add_argument("--clients", type=int, default=1000, help="sessions at once (%(default)s)")
    options = parser.parse_args()
    work, site = TARGET / "bench/rtsp-soak", TARGET / "bench/rtsp-soak-site"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    rtsp_capacity.make("V300", TARGET / "bench/rtsp-media")
    media.titles(TARGET / "bench/rtsp-media/V300.mp4", site, FILMS)
    arguments = ["--cache-size", "64MiB", "--memory", f"{MEMORY}MiB"]
    with servers.nginx("origin", site, work) as origin, servers.Edge(options.server, origin.url, work, *arguments) as server:
        for number in range(1, FILMS + 1):
            server.get(f"/{number}.mp4/index.m3u8")
        time.sleep(2)
        before = sample(server)
        print("before:", {name: round(value, 1) for name, value in before.items()}, flush=True)
        load = [options.server, "load", f"rtsp://127.0.0.1:{server.rtsp}/{{1..{FILMS}}}.mp4", "--zipf", 0.8, "--watch", "60s",
                "--watch-distribution", "exponential", "--start-within", 0.8, "--seeks", 4, "--pauses", 2, "--ramp-up", "20s",
                "--arrivals", "poisson", "--duration", f"{int(options.minutes * 60)}s"]
        parts = {"udp": options.clients * 9 // 10, "tcp": options.clients // 10}
        loads = {
            transport: subprocess.Popen(
                [str(part) for part in [*load, "--clients", clients, "--transport", transport, "--json", work / f"{transport}.json"]],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for transport, clients in parts.items()
        }
        began = time.monotonic()
        while any(process.poll() is None for process in loads.values()):
            time.sleep(20)
            now = sample(server)
            print(f"{time.monotonic() - began:5.0f} s", {name: round(value, 1) for name, value in now.items()}, flush=True)
        for transport in parts:
            report = json.loads((work / f"{transport}.json").read_text())
            print(transport, json.dumps(report)[:1500])
        time.sleep(15)
        after = sample(server)
        print("after:", {name: round(value, 1) for name, value in after.items()})
    bad = [name for name in ("pinned", "playing", "nodes", "pipes") if after[name] != 0]
    bad += ["descriptors"] if after["descriptors"] > before["descriptors"] + 20 else []
    bad += ["resident MB"] if after["resident MB"] > before["resident MB"] + MEMORY else []
    print("left behind: " + (", ".join(bad) if bad else "nothing"))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
