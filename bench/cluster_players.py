#!/usr/bin/env python3
"""The node of a title is killed while the players of the page play it in Chromium: hls.js, dash.js, Shaka.

    bench/cluster_players.py MILLPOND [redirect] [steer] [proxy]

Two of three nodes stay; the page is asked of one of them. Needs etcd, ffmpeg, Chromium, node and `tests/players/node_modules`.
"""
import http.server
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from cluster_nodes import Etcd, cluster, title

ROOT = Path(__file__).resolve().parent.parent
# hls.js buffers 60 MB: of a title of 12 Mbit/s that is less than what plays after the kill.
MINUTES, KBITS, SECONDS = 3, 12_000, 80


class Killer(http.server.BaseHTTPRequestHandler):
    """Kills the node when it is asked for anything."""

    victim = None

    def do_GET(self):
        Killer.victim.kill()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def run(binary: Path, folder: Path, members: str, steering: str) -> int:
    with cluster(binary, f"films={folder / 'media'}", folder / steering, members, more=lambda name: ["--cluster-steering", steering]) as nodes:
        Killer.victim = nodes[nodes["a"].assigned("films/title.mp4")]
        stays = next(node for node in nodes.values() if node is not Killer.victim)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Killer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"{steering}: the node of the title is killed", flush=True)
        played = subprocess.run(["node", ROOT / "tests/players/failover.mjs", stays.url, "films/title.mp4",
                                 f"http://127.0.0.1:{server.server_address[1]}/", str(SECONDS)], check=False)
        server.shutdown()
        return played.returncode


def main():
    binary, modes = Path(sys.argv[1]).resolve(), sys.argv[2:] or ["redirect", "steer", "proxy"]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        title(folder / "media/title.mp4", MINUTES, KBITS)
        with Etcd(folder / "etcd") as etcd:
            failed = [mode for mode in modes if run(binary, folder, etcd.addresses, mode)]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
