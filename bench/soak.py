#!/usr/bin/env python3
"""Some minutes of full load on a cache that is too small, and whether anything stays behind.

Films before nginx, a disk cache of a fifth of them; players that leave early at full speed, random ranges, and clients that
go away in the middle of a reply. Every few seconds the server's memory, descriptors, pins and requests under way are
written down; after the load they must be what they were after the first quarter of it, or fewer. Exits 1 where not.
"""

import argparse
import json
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import servers
from compare import TARGET
from thin_link import film, run

FILMS = 12


def site(folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    minute = folder / "minute.mp4"
    film(minute)
    for number in range(FILMS):
        path = folder / f"film-{number}.mp4"
        if not path.exists():
            run("ffmpeg", "-v", "error", "-stream_loop", 7, "-i", minute, "-c", "copy", "-movflags", "+faststart", "-y", path)


def leave_early(port: int, stop: threading.Event, counted: list):
    """Asks for a range and goes away after a part of the reply."""
    draw = random.Random(port)
    while not stop.is_set():
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                first = draw.randrange(0, 50 << 20)
                head = f"GET /film-{draw.randrange(FILMS)}.mp4 HTTP/1.1\r\nHost: a\r\nRange: bytes={first}-\r\n\r\n"
                client.sendall(head.encode())
                left = draw.randrange(0, 2 << 20)
                while left > 0 and (got := client.recv(65536)):
                    left -= len(got)
                counted[0] += 1
        except OSError:
            counted[1] += 1


def sample(server) -> dict:
    pid = server.process.pid
    status = Path(f"/proc/{pid}/status").read_text()
    field = lambda name: int(status.split(f"{name}:")[1].split()[0])
    told = server.metrics()
    return {
        "resident MB": field("VmRSS") / 1024, "threads": field("Threads"),
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "pinned": told["millpond_disk_pinned_bytes"], "in flight": told["millpond_origin_requests_in_flight"],
        "viewers": told["millpond_watched_tracks"], "evicted": told["millpond_disk_evictions_total"],
        "origin GB": told["millpond_origin_bytes_total"] / 1e9, "sent GB": told["millpond_place_sent_bytes_total"] / 1e9,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--minutes", type=float, default=5, help="of load (%(default)s)")
    options = parser.parse_args()
    work = TARGET / "bench/soak"
    shutil.rmtree(work / "cache", ignore_errors=True)
    site(work / "site")
    seconds = int(options.minutes * 60)
    with servers.nginx("origin", work / "site", work / "origin") as origin:
        with servers.Edge(options.server, origin.url, work, "--cache-size", "128MiB", "--memory", "96MiB") as server:
            loads = []
            for number in range(4):
                path, more = (f"film-{number}.mp4/ts/index.m3u8", ["--mean-watch", "0.3", "--start-within", "0.8"])
                if number == 3:
                    path, more = "film-3.mp4", ["--plain", "--ranges", "300000"]
                loads.append(subprocess.Popen(
                    [str(options.server), "load", f"{server.url}/{path}", "--clients", "12", "--pace", "fast", "--duration",
                     f"{seconds}s", "--json", str(work / f"load-{number}.json"), *more],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            stop, counted = threading.Event(), [0, 0]
            leavers = [threading.Thread(target=leave_early, args=(server.port, stop, counted)) for _ in range(6)]
            for leaver in leavers:
                leaver.start()
            began, samples = time.monotonic(), []
            print("   s " + "".join(f"{name:>13}" for name in sample(server)))
            while time.monotonic() - began < seconds:
                time.sleep(min(15, seconds / 10))
                samples.append(sample(server))
                print(f"{time.monotonic() - began:4.0f} " + "".join(f"{value:13.2f}" for value in samples[-1].values()), flush=True)
            stop.set()
            for part in [*leavers]:
                part.join()
            for load in loads:
                load.wait()
            time.sleep(8)
            after = sample(server)
            print("idle " + "".join(f"{value:13.2f}" for value in after.values()))
            errors = sum(sum(error["count"] for error in json.loads((work / f"load-{n}.json").read_text())["errors"]) for n in range(4))
            early = samples[len(samples) // 4]
            wrong = [name for name in ("pinned", "in flight", "viewers") if after[name] != 0]
            wrong += ["resident MB"] if samples[-1]["resident MB"] > early["resident MB"] * 1.15 + 10 else []
            wrong += ["descriptors"] if after["descriptors"] > early["descriptors"] else []
            wrong += ["panic"] if "panic" in (work / "output.log").read_text() else []
            wrong += ["errors"] if errors or counted[1] else []
            print(f"{counted[0]} clients left early, {errors + counted[1]} errors; " + (f"grew: {', '.join(wrong)}" if wrong else "nothing stayed behind"))
            sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
