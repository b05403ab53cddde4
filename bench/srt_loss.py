#!/usr/bin/env python3
"""SRT over a bad network: every picture that ffmpeg publishes must reach ffmpeg, encrypted, both over the same network.

    cargo build -p millpond -p millpond-link
    sudo bench/srt_loss.py --network delay=50ms,loss=5% --latency 500

The clip goes round and round from the second namespace to the server in the first one, and back to a viewer in the second one. The
viewer's pictures are compared with the clip's. Fails where a picture differs, or a packet was lost.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import netns
from compare import TARGET

SECRET = "a-long-secret"


def pictures(run, *given, count: int) -> list:
    """Hashes of the first pictures of an input."""
    words = ("ffmpeg", "-v", "error", "-nostdin", *given, "-map", "0:v", "-fps_mode", "passthrough", "-frames:v", count, "-f", "framemd5", "-")
    text = run(*[str(word) for word in words])
    return [line.rsplit(",", 1)[1].strip() for line in text.splitlines() if not line.startswith("#")]


def here(*words) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def clip(path: Path):
    """Ten seconds with B-frames, at 4 Mbit/s."""
    here("ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25", "-f", "lavfi", "-i", "sine",
         "-t", "10", "-c:v", "libx264", "-preset", "veryfast", "-b:v", "4M", "-g", "50", "-c:a", "aac", str(path))


def metrics(pair) -> dict:
    text = pair.a.run("curl", "-s", "http://127.0.0.1:8380/metrics").stdout
    return {name: float(value) for name, value in re.findall(r"^millpond_srt_(\w+)_total (\S+)$", text, re.M)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="delay=50ms,loss=5%", help="impairments of both directions")
    parser.add_argument("--latency", type=int, default=500, help="milliseconds")
    parser.add_argument("--pictures", type=int, default=1000)
    options = parser.parse_args()
    millpond = max((path for path in (TARGET / "release/millpond", TARGET / "debug/millpond") if path.exists()), key=lambda p: p.stat().st_mtime)
    with tempfile.TemporaryDirectory() as folder, netns.Pair(both=options.network) as pair:
        film, log = Path(folder) / "clip.mp4", Path(folder) / "log"
        clip(film)
        pair.a.start(millpond, "serve", "live=publish:", "--publish-open", "--srt", "0.0.0.0:9710", "--srt-latency", f"{options.latency}ms",
                     "--srt-passphrase", SECRET, "--cache", folder, log=log)
        time.sleep(3)
        base = f"srt://{pair.a.address}:9710?passphrase={SECRET}&pbkeylen=32&latency={options.latency * 1000}&streamid="
        pair.b.start("ffmpeg", "-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i", film, "-c", "copy", "-f", "mpegts",
                     f"{base}publish:live/cam")
        time.sleep(5)
        got = pictures(lambda *words: pair.b.run(*words, timeout=300).stdout, "-i", f"{base}read:live/cam", count=options.pictures)
        counts = metrics(pair)
        source = pictures(here, "-i", str(film), count=10_000)
        if not got or got[0] not in source:
            print(log.read_text()[-3000:])
            print("no picture of the clip arrived")
            return 1
        at = source.index(got[0])
        same = sum(picture == source[(at + index) % len(source)] for index, picture in enumerate(got))
        time.sleep(2)
        counts = {**metrics(pair), "pictures": len(got), "same": same}
        print(json.dumps({"network": options.network, "latency_ms": options.latency, **counts}, indent=1))
        return 0 if same == len(got) == options.pictures and counts["lost_packets"] == 0 == counts["dropped_packets"] else 1


if __name__ == "__main__":
    sys.exit(main())
