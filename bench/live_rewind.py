#!/usr/bin/env python3
"""Whether players in Chromium rewind a live stream to the right picture: pause and go on, start over, jump by wall clock, and back.

A publisher burns the time into each picture. hls.js plays `index.m3u8?dvr` and dash.js `index.mpd?dvr`; a canvas reads the pictures'
times after each step. A picture may be off by a second. Exits 1 otherwise.

    npm ci --prefix tests/players
    bench/live_rewind.py --bin FILE --pause 60
"""

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

import live_clock
import servers
from compare import TARGET, TOP


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--pause", type=float, default=60, help="seconds that players pause (%(default)s)")
    parser.add_argument("--warm", type=float, default=12, help="seconds that the stream has run before players begin (%(default)s)")
    parser.add_argument("--players", default="hls-dvr,dash-dvr", help="(%(default)s)")
    options = parser.parse_args()
    work = TARGET / "bench/live-rewind"
    shutil.rmtree(work, ignore_errors=True)
    with servers.Edge(options.bin, "live=publish:", work, "--time-shift", "1h") as server:
        began = time.time()
        with live_clock.Publisher(f"rtsp://127.0.0.1:{server.rtsp}/live/clock", work / "ffmpeg.log"):
            time.sleep(options.warm)
            script = TOP / "tests/players/rewind.mjs"
            command = ["node", script, server.url, "live/clock", f"{options.pause:g}", round(1000 * began), options.players]
            ran = subprocess.run([str(word) for word in command], timeout=300 + options.pause)
    sys.exit(ran.returncode)


if __name__ == "__main__":
    main()
