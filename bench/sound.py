#!/usr/bin/env python3
"""FLAC of PCM and G.711: processor time and size, beside ffmpeg's encoder and, where it is installed, `flac`.

Usage: sound.py [--server FILE] [--minutes N] [--rounds N]

The sound of the bundled sample is repeated and written as G.711, and as PCM of 16 and 24 bits, in MP4 (`.mov`) and in Matroska. Millpond serves
each file; all init and media segments of the sound are requested once a round, with `Cache-Control: no-cache`, so that each is made anew. The
time of the server includes reading, HTTP and sending. ffmpeg and flac read the same file, with one thread, and write a file of FLAC. All
programs take turns in one run. The output is a table: medians of processor seconds for an hour of sound, and megabytes of it. The program
exits with 1 where a segment or FLAC is missing.
"""

import argparse
import re
import resource
import shutil
import statistics
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import servers
from compare import TARGET, TOP

SAMPLE = TOP / "assets/sample/360p.mp4"
SOUNDS = {
    "g711": ("G.711, mono, 8 kHz", "pcm_mulaw", 8000, 1),
    "pcm16": ("PCM, 16 bits, stereo, 48 kHz", "pcm_s16le", 48000, 2),
    "pcm24": ("PCM, 24 bits, stereo, 48 kHz", "pcm_s24le", 48000, 2),
}
CONTAINERS = {"mov": "MP4", "mkv": "Matroska"}


@dataclass
class Cost:
    """Cost of an hour of a sound."""

    seconds: float
    """Processor seconds."""
    megabytes: float


def files(folder: Path, minutes: int):
    """Writes the files that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (_, codec, rate, channels) in SOUNDS.items():
        for container in CONTAINERS:
            path = folder / f"{name}.{container}"
            if not path.exists():
                part = folder / f"part.{container}"
                subprocess.run(["ffmpeg", "-v", "error", "-stream_loop", "-1", "-i", SAMPLE, "-map", "0:a:0", "-t", str(60 * minutes),
                                "-ar", str(rate), "-ac", str(channels), "-c:a", codec, "-y", part], check=True)
                part.rename(path)


def get(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"Cache-Control": "no-cache"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return reply.read()


def served(server, asset: str, hours: float) -> Cost:
    """The cost of all segments of a sound."""
    master = get(f"{server.url}/{asset}/index.m3u8").decode()
    if "fLaC" not in master:
        sys.exit(f"{asset} has no FLAC: {master}")
    base = f"{server.url}/{asset}/{re.search(r'~[0-9a-f]+', master)[0]}/a1"
    lines = get(f"{base}/index.m3u8").decode().splitlines()
    before = server.cpu_seconds()
    size = len(get(f"{base}/init.mp4")) + sum(len(get(f"{base}/{line}")) for line in lines if line.endswith(".m4s"))
    return Cost((server.cpu_seconds() - before) / hours, size / 1e6 / hours)


def encoded(command: list, out: Path, hours: float) -> Cost:
    """The cost of a program that writes a file."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(spent / hours, out.stat().st_size / 1e6 / hours)


def peers(path: Path, work: Path) -> dict:
    """Commands of other encoders, by the words of a column."""
    out = work / "peer.flac"
    commands = {}
    for level in (0, 5):
        commands[f"ffmpeg, level {level}"] = ["ffmpeg", "-v", "error", "-nostdin", "-threads", "1", "-i", path, "-c:a", "flac",
                                              "-compression_level", str(level), "-y", out]
    if shutil.which("flac"):
        wav = work / f"{path.stem}.wav"
        if not wav.exists():
            subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-c:a", "pcm_s24le" if path.stem == "pcm24" else "pcm_s16le", "-y", wav], check=True)
        for level in (0, 5):
            commands[f"flac, level {level}"] = ["flac", "--totally-silent", f"-{level}", "-f", "-o", out, wav]
    return {name: (command, out) for name, command in commands.items()}


def median(costs: list) -> str:
    seconds = statistics.median(cost.seconds for cost in costs)
    return f"{seconds:.1f} s, {costs[0].megabytes:.0f} MB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--minutes", type=int, default=10, help="minutes of each file")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folder, work = TARGET / f"bench/sound-{options.minutes}", TARGET / f"bench/sound-work-{options.minutes}"
    work.mkdir(parents=True, exist_ok=True)
    files(folder, options.minutes)
    hours = options.minutes / 60
    costs = {}
    with servers.Edge(options.server, str(folder), work, name="sound") as server:
        # Indexes are read before anything is measured.
        for name in SOUNDS:
            for container in CONTAINERS:
                get(f"{server.url}/{name}.{container}/index.m3u8")
        for _ in range(options.rounds):
            for name in SOUNDS:
                for container, words in CONTAINERS.items():
                    costs.setdefault((name, f"Millpond, of {words}"), []).append(served(server, f"{name}.{container}", hours))
                for words, (command, out) in peers(folder / f"{name}.mov", work).items():
                    costs.setdefault((name, words), []).append(encoded(command, out, hours))
    columns = list(dict.fromkeys(words for _, words in costs))
    print(f"| an hour of | as stored | {' | '.join(columns)} |")
    print("|---" * (2 + len(columns)) + "|")
    for name, (words, *_) in SOUNDS.items():
        stored = (folder / f"{name}.mov").stat().st_size / 1e6 / hours
        print(f"| {words} | {stored:.0f} MB | {' | '.join(median(costs[name, column]) for column in columns)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
