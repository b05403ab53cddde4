"""Runs of the SProxy figures: a server before an origin behind a link, and RTSP viewers of one title each."""

import json
import shutil
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import media
import servers
from thin_link import Link

# The first number of our network namespaces, beside those of the other benches.
FIRST_LINK = 212
# Titles of a site: many, so that hardly two viewers have the same one.
TITLES = 2000
CLIP_KBPS, CLIP_SECONDS = 112, 120
NEAR_MBPS, FAR_MBPS, FAR_MS = 100, 10, 120


class Run(NamedTuple):
    """The settings of one run."""

    mode: str
    slice: str
    viewers: int
    mbps: float
    """Bandwidth of the origin's link, headers included."""
    round_trip: float
    """Round trip of that link, in milliseconds."""
    kbps: float = CLIP_KBPS
    ramp: float = 3
    seconds: float = 12
    """Length of the run, arrivals included."""


def clip(folder: Path, kbps: float, seconds: int) -> Path:
    """A clip of pictures at a rate, with a key frame every two seconds."""
    path = folder / f"{kbps:g}k-{seconds}s.mp4"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{path.stem}.part"
        media.ffmpeg(
            "-f", "lavfi", "-i", "testsrc2=s=192x144:r=15,noise=alls=8:allf=t", "-t", min(seconds, 120), "-an", "-c:v", "libx264", "-profile:v", "baseline",
            "-preset", "veryfast", "-pix_fmt", "yuv420p", "-g", 30, "-keyint_min", 30, "-sc_threshold", 0, "-b:v", f"{kbps}k", "-minrate", f"{kbps}k",
            "-maxrate", f"{kbps}k", "-bufsize", f"{kbps}k", "-movflags", "+faststart", "-f", "mp4", part,
        )
        if seconds > 120:
            longer = folder / f"{path.stem}.longer"
            media.ffmpeg("-stream_loop", seconds // 120 - 1, "-i", part, "-c", "copy", "-t", seconds, "-movflags", "+faststart", "-f", "mp4", longer)
            longer.rename(part)
        part.rename(path)
    return path


def answers(address: str, port: int = 8000, seconds: float = 20):
    """Waits until something listens at an address."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((address, port), 1).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the origin at {address}:{port} does not answer: {error}") from error
            time.sleep(0.05)


class Site:
    """An origin behind a link of its own, and a server before it with an empty cache. Use it in a `with`."""

    def __init__(self, bench, number: int, site: Path, run: Run):
        self.bench, self.run = bench, run
        self.work = bench.work / f"sproxy-{number}"
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.link = Link(FIRST_LINK + number, run.mbps * 1e6, site, self.work, run.round_trip, limits="")

    def __enter__(self):
        try:
            answers(self.link.address)
            arguments = ["--workers", 1, "--prefetch", self.run.mode, "--slice", self.run.slice, "--cache-size", "1GiB", "--log", "warn"]
            self.server = servers.Edge(self.bench.options.bin, self.link.url, self.work, *arguments, name=self.run.mode).__enter__()
        except BaseException:
            self.link.close()
            raise
        return self

    def __exit__(self, *_):
        self.server.stop()
        self.link.close()

    def play(self, path: str, *arguments) -> dict:
        """The report of some RTSP viewers."""
        load = [self.bench.options.bin, "load", f"rtsp://127.0.0.1:{self.server.rtsp}/{path}", *arguments, "--json", "-"]
        done = subprocess.run([str(part) for part in load], capture_output=True, text=True, timeout=300)
        if not done.stdout:
            raise RuntimeError(f"millpond load gave no report: {done.stderr[-500:]}")
        report = json.loads(done.stdout)
        if report["sessions"]["failed"] or not report["sessions"]["started"]:
            raise RuntimeError(f"{report['sessions']['failed']} of {report['sessions']['started']} sessions failed: {report['failures']}\n{self.server.tail()}")
        return report


def viewers(bench, number: int, site: Path, run: Run) -> dict:
    """Viewers that arrive by a Poisson process: startup, jitter, and the waits for slices."""
    with Site(bench, number, site, run) as at:
        report = at.play(f"{{1..{TITLES}}}.mp4", "--clients", run.viewers, "--arrivals", "poisson", "--ramp-up", f"{run.ramp}s", "--duration", f"{run.seconds}s")
        counted = at.server.metrics()
        place = at.server.place()
    waits, missed = (counted.get(f"millpond_slice_miss_duration_seconds_{name}", 0) for name in ("sum", "count"))
    looked = counted["millpond_slice_hits_total"] + counted["millpond_slice_misses_total"]
    startup, jitter = report["startup"], report["media"]["jitter"]
    return {
        **run._asdict(), "startup": startup["mean"], "startup-p95": startup["p95"], "jitter": jitter["mean"], "late": report["media"]["late-percent"],
        "miss": 1000 * waits / missed if missed else None, "handshake": 1000 * waits / looked if looked else None, "origin": place["received-bytes"],
    }


def all_of(bench, site: Path, runs: list, at_once: int = 4) -> list:
    """Some runs, a few at once, each with a link and a server of its own."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda pair: viewers(bench, pair[0] % 24, site, pair[1]), enumerate(runs)))


def titles(bench, kbps: float = CLIP_KBPS, seconds: int = CLIP_SECONDS) -> Path:
    """A folder of many titles that are one clip."""
    site = bench.work / f"titles-{kbps:g}k"
    media.titles(clip(bench.work / "clips", kbps, seconds), site, TITLES)
    return site
