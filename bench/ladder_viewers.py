#!/usr/bin/env python3
"""What viewers of a ladder see whose link becomes narrow and wide again: the ladder, beside its upper and its lower stream alone.

ffmpeg pushes one picture as two streams, 640x360 at 2 Mbit/s and 320x180 at 0.25 Mbit/s, with a key frame each second. The viewers read
`stream.mp4` of both, and of the ladder. After `--wide` seconds they read no more than `--rate` for `--narrow` seconds. The player
begins with the first picture, and holds `--buffer` seconds. A picture counts as shown where it arrived before its time. The picture
stands still where none is shown for more than a quarter of a second.

    cargo build -p millpond
    bench/ladder_viewers.py --bin target/debug/millpond
"""

import argparse
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import servers
from compare import TARGET

FPS = 25
STREAMS = [("hi", "640x360", "2000k"), ("lo", "320x180", "250k")]


def publisher(rtsp: int) -> subprocess.Popen:
    command = ["ffmpeg", "-v", "error", "-nostdin", "-re", "-f", "lavfi", "-i", f"testsrc2=size=640x360:rate={FPS},noise=alls=20:allf=t"]
    command += ["-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"]
    for name, size, rate in STREAMS:
        command += ["-map", "0:v", "-map", "1:a", "-s", size, "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", FPS]
        command += ["-sc_threshold", 0, "-pix_fmt", "yuv420p", "-b:v", rate, "-maxrate", rate, "-bufsize", rate, "-c:a", "aac", "-b:a", "48k"]
        command += ["-f", "rtsp", "-rtsp_transport", "tcp", f"rtsp://127.0.0.1:{rtsp}/live/door/{name}"]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)


def read(http: int, path: str, options, file: Path) -> list:
    """Reads a response into a file. Returns the length of the body and the time after each piece."""
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        link.connect(("127.0.0.1", http))
        link.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += link.recv(1)
        body, places, began = bytearray(), [], time.monotonic()
        credit, last = 0.0, began
        while (now := time.monotonic()) - began < options.wide + options.narrow + options.after:
            if options.wide <= now - began < options.wide + options.narrow:
                credit = min(credit + (now - last) * options.rate * 1e6 / 8, 8192)
                if credit < 4096:
                    last = now
                    time.sleep(0.005)
                    continue
            last = now
            piece = link.recv(4096)
            if not piece:
                break
            credit -= len(piece)
            body += piece
            places.append((len(body), time.monotonic() - began))
    file.write_bytes(body)
    return places


def judge(file: Path, places: list, options) -> dict:
    entries = "frame=pts_time,width,pkt_pos,pkt_size"
    probe = ["ffprobe", "-v", "fatal", "-select_streams", "v", "-show_entries", entries, "-of", "json", file]
    frames = json.loads(subprocess.run(probe, capture_output=True, check=True).stdout)["frames"]
    place, shown, widths = 0, [], []
    start = None
    for frame in frames:
        end = int(frame["pkt_pos"]) + int(frame["pkt_size"])
        while place + 1 < len(places) and places[place][0] < end:
            place += 1
        pts, arrival = float(frame["pts_time"]), places[place][1]
        start = arrival - pts if start is None else start
        if not widths or widths[-1][1] != frame["width"]:
            widths.append((round(start + pts, 1), frame["width"]))
        if arrival <= start + pts + options.buffer:
            shown.append((start + pts, frame["width"]))
    total = options.wide + options.narrow + options.after - options.buffer
    shown = [one for one in shown if one[0] < total]
    times = [0.0, *[at for at, _ in shown], total]
    gaps = [b - a for a, b in zip(times, times[1:]) if b - a > 0.25]
    large = sum(width == 640 for _, width in shown)
    return {"shown": 100 * len(shown) / (total * FPS), "large": 100 * large / (total * FPS), "still": 100 * sum(gaps) / total,
            "longest": max(gaps, default=0), "widths": widths}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--wide", type=float, default=10, help="seconds before the link becomes narrow (%(default)s)")
    parser.add_argument("--narrow", type=float, default=30, help="(%(default)s)")
    parser.add_argument("--after", type=float, default=25, help="seconds after it (%(default)s)")
    parser.add_argument("--rate", type=float, default=0.8, help="Mbit/s of the narrow link (%(default)s)")
    parser.add_argument("--buffer", type=float, default=3, help="seconds that the player holds (%(default)s)")
    options = parser.parse_args()
    work = TARGET / "bench/ladder-viewers"
    work.mkdir(parents=True, exist_ok=True)
    http, rtsp = servers.free_port(), servers.free_port()
    command = [options.bin, "serve", "live=publish:", "--http", f"127.0.0.1:{http}", "--rtsp", f"127.0.0.1:{rtsp}", "--admin", "127.0.0.1:0"]
    command += ["--access-log=false", "--cache", work / "cache"]
    server = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=open(work / "log", "w"))
    source = None
    try:
        time.sleep(2)
        source = publisher(rtsp)
        list_of = f"http://127.0.0.1:{http}/live/door/index.m3u8"
        for _ in range(100):
            try:
                if urllib.request.urlopen(list_of, timeout=10).read().count(b"#EXT-X-STREAM-INF") == 2:
                    break
            except OSError:
                pass
            time.sleep(0.2)
        results, threads = {}, []
        for name, path in [("the ladder", "door"), ("640x360 alone", "door/hi"), ("320x180 alone", "door/lo")]:
            def view(name=name, path=path):
                file = work / f"{path.replace('/', '-')}.mp4"
                places = read(http, f"/live/{path}/stream.mp4", options, file)
                results[name] = file, places

            threads.append(threading.Thread(target=view))
            threads[-1].start()
        for thread in threads:
            thread.join()
    finally:
        for process in (source, server):
            if process:
                process.terminate()
                process.wait()
    print("| stream | shown in time | of 640x360 | stands still | longest | changes, in seconds |\n|---|---|---|---|---|---|")
    for name in ("the ladder", "640x360 alone", "320x180 alone"):
        one = judge(*results[name], options)
        changes = ", ".join(f"{width} at {at}" for at, width in one["widths"])
        print(f"| {name} | {one['shown']:.1f} % | {one['large']:.1f} % | {one['still']:.1f} % | {one['longest']:.2f} s | {changes} |")


if __name__ == "__main__":
    sys.exit(main())
