"""Runs of the SProxy figures: a server before an origin behind a link, and RTSP viewers of one title each."""

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import media
import servers
import thin_causes
from papers.waiting import answers
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
            answers(self.link.address, 8000, self.link.origin)
            arguments = ["--workers", 1, "--prefetch", self.run.mode, "--slice", self.run.slice, "--cache-size", "256MiB",
                         "--log", "warn,millpond_store=trace", "--log-format", "json"]
            self.server = servers.Edge(self.bench.options.bin, self.link.url, self.work, *arguments, name=self.run.mode).__enter__()
        except BaseException:
            self.link.close()
            raise
        return self

    def __exit__(self, *_):
        self.server.stop()
        self.link.close()
        shutil.rmtree(self.work / "cache", ignore_errors=True)

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


def waits(log: str) -> dict:
    """Mean milliseconds from a viewer's need of a slice until the slice was there whole: of slices that were waited for, and of all.

    Also milliseconds from the first need until the last slice was there.
    """
    needed, complete = {}, {}
    for entry in thin_causes.lines(log):
        of = {"waiting": needed, "slice complete": complete}.get(entry.get("message"))
        if of is not None:
            of.setdefault((entry["path"], entry["index"]), entry["at"])
    missed = [1000 * (complete[slice_] - at) for slice_, at in needed.items() if complete.get(slice_, 0) > at]
    return {
        "miss": sum(missed) / len(missed) if missed else None, "handshake": sum(missed) / len(complete) if complete else None,
        "whole": 1000 * (max(complete.values()) - min(needed.values())) if needed and complete else None,
    }


def viewers(bench, number: int, site: Path, run: Run) -> dict:
    """Viewers that arrive by a Poisson process: startup, jitter, and the waits for slices."""
    with Site(bench, number, site, run) as at:
        report = at.play(f"{{1..{TITLES}}}.mp4", "--clients", run.viewers, "--arrivals", "poisson", "--ramp-up", f"{run.ramp}s", "--duration", f"{run.seconds}s")
        place = at.server.place()
    startup, jitter = report["startup"], report["media"]["jitter"]
    return {
        **run._asdict(), "startup": startup["mean"], "startup-p95": startup["p95"], "jitter": jitter["mean"], "late": report["media"]["late-percent"],
        **waits(at.server.log.read_text(errors="replace")), "origin": place["received-bytes"],
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
