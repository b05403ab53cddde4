#!/usr/bin/env python3
"""A transport stream file of gigabytes on S3: time to the first picture while the file is scanned, and the scan itself.

Usage: ts_scan.py [--server FILE] [--round-trip MS] [--size MB] [--quick]

Needs root. A sample is repeated to a file of that size, in an S3-compatible server that many milliseconds away. Printed are: requests, bytes on the wire and
seconds from the first request of the cold title to its media playlist, and to its first segment with sound; and requests, bytes and seconds to the playlist of
the whole file, when the scan has ended. A playlist is loaded as players load it: the multivariant one, then that of the video. All segments that were listed
during the scan are loaded again at its end. The program exits with 1 where the title did not begin before its scan ended, a listed segment is missing or
has other bytes later, or the whole playlist does not come. The file is deleted at the end. `--quick` takes 400 MB.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import servers
import storages
from compare import TARGET

SAMPLE = Path(__file__).resolve().parent.parent / "assets/sample/360p.mp4"
NUMBER = 8
NAME = "recording.ts"
# Seconds after which the scan counts as stuck.
PATIENCE = 1800


def recording(root: Path, megabytes: int) -> Path:
    """A file of that many megabytes. Null packets fill it up to 8 Mbit/s, as in a broadcast."""
    folder = root / storages.BUCKET
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    subprocess.run(["ffmpeg", "-v", "error", "-stream_loop", "-1", "-i", SAMPLE, "-map", "0:v", "-map", "0:a:0", "-c", "copy", "-muxrate", "8M",
                    "-t", str(megabytes), "-f", "mpegts", "-y", path], check=True)
    return path


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=300) as reply:
        return reply.read()


def received() -> int:
    return int(Path(f"/sys/class/net/ts{NUMBER}a/statistics/rx_bytes").read_text())


def requests(server) -> int:
    text = server.told("/metrics").decode()
    return int(sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("millpond_origin_requests_total")))


class Title:
    """The recording as a player sees it."""

    def __init__(self, server):
        self.server, self.url = server, f"{server.url}/{NAME}"

    def playlist(self) -> tuple:
        """The folder of the version, and the playlist of the video."""
        master = get(f"{self.url}/index.m3u8").decode()
        version = re.search(r"~[0-9a-f]+", master)[0]
        return version, get(f"{self.url}/{version}/v1/index.m3u8").decode()

    def segments(self, version: str, playlist: str) -> dict:
        """The hash of each listed segment of the video."""
        names = [line for line in playlist.splitlines() if line.endswith(".m4s")]
        return {name: hashlib.sha256(get(f"{self.url}/{version}/v1/{name}")).hexdigest() for name in names}


def measured(options, place: str, work: Path, size: int) -> list:
    """Prints the measurement; returns the faults that were found."""
    faults = []
    with servers.Edge(options.server, place, work, name="scan") as server:
        title = Title(server)
        began, before = time.monotonic(), (requests(server), received())

        def row(what: str):
            took, asked, wire = time.monotonic() - began, requests(server) - before[0], received() - before[1]
            print(f"{what:22} {took:8.3f} s {asked:6} requests {wire / 1e6:9.1f} MB on the wire", flush=True)

        version, first = title.playlist()
        row("playlist")
        get(f"{title.url}/{version}/v1/init.mp4")
        get(f"{title.url}/{version}/v1/1.m4s")
        get(f"{title.url}/{version}/a1/1.m4s")
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
        wire = received() - before[1]
        print(f"{listed} segments; {wire / size:.2f} bytes on the wire for each byte of the file")
        for name, digest in kept.items():
            body = get(f"{title.url}/{version}/v1/{name}")
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
