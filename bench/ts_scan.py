#!/usr/bin/env python3
"""A transport stream file of gigabytes on S3: time to the first picture while the file is scanned, and the scan itself.

Usage: ts_scan.py [--server FILE] [--round-trip MS] [--size MB] [--quick]

Needs root. The sample is repeated to a file of SIZE megabytes, in an S3-compatible server at a round trip of MS. The program prints seconds, requests and
bytes on the wire from the first request of the cold title to three points: its media playlist, its first segments of pictures and sound, and the playlist of
the whole file, when the scan has ended. Playlists are loaded as players load them: the multivariant playlist, then the playlist of the video. The segments
of the first playlist, at most 30, are loaded again at the end. The program exits with 1 where the title does not begin before its scan ends, a listed
segment is missing or has other bytes later, or the playlist of the whole file does not arrive. The file is deleted at the end. `--quick` takes 400 MB.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import servers
import storages
from compare import TARGET

SAMPLE = Path(__file__).resolve().parent.parent / "assets/sample/360p.mp4"
NUMBER = 8
NAME = "recording.ts"
# Seconds after which a reply counts as missing, and those after which the scan counts as stuck.
REPLY = 300
PATIENCE = 1800


def recording(root: Path, megabytes: int) -> Path:
    """A file of that many megabytes. Null packets fill it up to 8 Mbit/s, as in a broadcast."""
    folder = root / storages.BUCKET
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    subprocess.run(["ffmpeg", "-v", "error", "-stream_loop", "-1", "-i", SAMPLE, "-map", "0:v", "-map", "0:a:0", "-c", "copy", "-muxrate", "8M",
                    "-t", str(megabytes), "-f", "mpegts", "-y", path], check=True)
    return path


class Title:
    """The recording as a player sees it."""

    def __init__(self, server):
        self.server = server

    def get(self, path: str) -> bytes:
        return self.server.get(f"/{NAME}/{path}", REPLY)

    def playlist(self) -> tuple:
        """The folder of the version, and the playlist of the video."""
        master = self.get("index.m3u8").decode()
        version = re.search(r"~[0-9a-f]+", master)[0]
        return version, self.get(f"{version}/v1/index.m3u8").decode()

    def segments(self, version: str, playlist: str) -> dict:
        """The hash of each listed segment of the video."""
        names = [line for line in playlist.splitlines() if line.endswith(".m4s")]
        return {name: hashlib.sha256(self.get(f"{version}/v1/{name}")).hexdigest() for name in names}


def measured(options, place: str, work: Path, size: int) -> list:
    """Prints the measurement; returns the faults that were found."""
    faults = []
    with servers.Edge(options.server, place, work, name="scan") as server:
        title = Title(server)
        began, before = time.monotonic(), (server.origin_requests(), storages.received(NUMBER))

        def row(what: str):
            took, asked, wire = time.monotonic() - began, server.origin_requests() - before[0], storages.received(NUMBER) - before[1]
            print(f"{what:22} {took:8.3f} s {asked:6} requests {wire / 1e6:9.1f} MB on the wire", flush=True)

        version, first = title.playlist()
        row("playlist")
        for path in ("v1/init.mp4", "v1/1.m4s", "a1/1.m4s"):
            title.get(f"{version}/{path}")
        row("first segment")
        if "ENDLIST" in first:
            faults.append("the first playlist is that of the whole file: the title did not begin before its scan ended")
        kept = title.segments(version, "\n".join(first.splitlines()[:60]))
        playlist, listed = first, first.count("#EXTINF")
        while "ENDLIST" not in playlist:
            if time.monotonic() - began > PATIENCE:
                return [*faults, f"no end of the playlist after {PATIENCE} s"]
            time.sleep(1)
            now, playlist = title.playlist()
            if now != version:
                faults.append(f"the version changed from {version} to {now}")
                version = now
            if playlist.count("#EXTINF") < listed:
                faults.append(f"the playlist went back from {listed} segments to {playlist.count('#EXTINF')}")
            listed = playlist.count("#EXTINF")
        row("whole playlist")
        wire = storages.received(NUMBER) - before[1]
        print(f"{listed} segments; {wire / size:.2f} bytes on the wire for each byte of the file")
        for name, digest in kept.items():
            body = title.get(f"{version}/v1/{name}")
            if hashlib.sha256(body).hexdigest() != digest:
                faults.append(f"segment {name} has other bytes after the scan")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--round-trip", type=int, default=50, help="milliseconds to the storage")
    parser.add_argument("--size", type=int, default=4000, help="megabytes of the file")
    parser.add_argument("--quick", action="store_true", help="a file of 400 MB")
    options = parser.parse_args()
    root, work = TARGET / "bench/ts-scan", TARGET / "bench/ts-scan-work"
    # A cache of an earlier run would answer without a scan.
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    path = recording(root, 400 if options.quick else options.size)
    try:
        size = path.stat().st_size
        print(f"{size / 1e6:.0f} MB, S3, round trip of {options.round_trip} ms")
        with storages.started(storages.Storage("s3", options.round_trip), NUMBER, root, work / "storage") as place:
            faults = measured(options, place, work, size)
    finally:
        path.unlink()
        shutil.rmtree(work, ignore_errors=True)
    for fault in faults:
        print(f"FAULT: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
