#!/usr/bin/env python3
"""What viewers of a live stream see whose link is narrower than the stream: blind dropping, dropping of what is needed least, and HLS.

Needs root. Each viewer has a link of its own (a network namespace behind `tc tbf`), of 0.7 and 0.85 of the stream's rate. The stream is
a channel; the player begins with the first picture, and holds `--buffer` seconds. A picture counts as shown where it arrived
before its time and all pictures that it refers to have arrived. The picture stands still where none is shown for more than a
quarter of a second. HLS is played by reading all segments in their order.

    cargo build -p millpond
    bench/slow_viewers.py --bin target/debug/millpond
"""

import argparse
import hashlib
import json
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from urllib.parse import urljoin

TOP = Path(__file__).resolve().parent
SECONDS = 60
RATE = 25
GROUP = 50


def run(*command, check=True):
    return subprocess.run([str(part) for part in command], check=check, capture_output=True, text=True)


def film(path: Path):
    """A minute at about 1.1 Mbit/s, with B-pictures of which two of three are needed by no other."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        run("ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=size=640x360:rate={RATE}:duration={SECONDS}",
            "-f", "lavfi", "-i", f"sine=duration={SECONDS}", "-vf", "noise=alls=20:allf=t", "-c:v", "libx264", "-preset",
            "veryfast", "-b:v", "1000k", "-maxrate", "1000k", "-bufsize", "1000k", "-g", GROUP, "-bf", "3",
            "-x264-params", "scenecut=0:b-adapt=0", "-c:a", "aac", "-b:a", "96k", "-movflags", "+faststart", "-y", path)


# Media as the viewers get it.


def units(sample: bytes):
    """NAL units behind lengths of four bytes."""
    at = 0
    while at + 4 <= len(sample):
        length = struct.unpack_from(">I", sample, at)[0]
        yield sample[at + 4 : at + 4 + length]
        at += 4 + length


def identity(nals) -> str:
    """A hash of a picture's slices."""
    return hashlib.md5(b"".join(nal for nal in nals if nal and nal[0] & 31 in (1, 5))).hexdigest()


def boxes(data: bytes, at=0, end=None):
    end = len(data) if end is None else end
    while at + 8 <= end:
        size, kind = struct.unpack_from(">I4s", data, at)
        if size < 8:
            return
        yield kind, at + 8, min(at + size, end)
        at += size


def samples(moof: bytes, mdat: bytes):
    """The samples of a fragment, whose data offsets count from the beginning of `moof`."""
    for kind, at, end in boxes(moof, 8):
        if kind != b"traf":
            continue
        default = 0
        for kind, at, stop in list(boxes(moof, at, end)):
            flags = struct.unpack_from(">I", moof, at)[0] & 0xFFFFFF
            if kind == b"tfhd":
                skip = at + 8 + (8 if flags & 1 else 0) + (4 if flags & 2 else 0) + (4 if flags & 8 else 0)
                default = struct.unpack_from(">I", moof, skip)[0] if flags & 16 else 0
            elif kind == b"trun":
                count, place = struct.unpack_from(">I", moof, at + 4)[0], at + 8
                offset = 8
                if flags & 1:
                    offset, place = struct.unpack_from(">i", moof, place)[0] - len(moof), place + 4
                place += 4 if flags & 4 else 0
                for _ in range(count):
                    size = default
                    place += 4 if flags & 0x100 else 0
                    if flags & 0x200:
                        size, place = struct.unpack_from(">I", moof, place)[0], place + 4
                    place += (4 if flags & 0x400 else 0) + (4 if flags & 0x800 else 0)
                    yield mdat[offset : offset + size]
                    offset += size


class Fragments:
    """Fragmented MP4 as it arrives."""

    def __init__(self):
        self.data, self.moof = b"", None

    def push(self, data: bytes):
        self.data += data
        while len(self.data) >= 8:
            size, kind = struct.unpack_from(">I4s", self.data, 0)
            if len(self.data) < size:
                return
            box, self.data = self.data[:size], self.data[size:]
            if kind == b"moof":
                self.moof = box
            elif kind == b"mdat" and self.moof:
                yield from samples(self.moof, box)


# Viewers: each writes a line for each picture, with its time of arrival.


def told(sample: bytes):
    try:
        print(time.time(), identity(units(sample)), flush=True)
    except (struct.error, IndexError):
        pass


def view_stream(url: str, ends: float):
    host, _, path = url.removeprefix("http://").partition("/")
    address, _, port = host.partition(":")
    connection = socket.create_connection((address, int(port)))
    connection.sendall(f"GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(4096)
    fragments, data = Fragments(), data.partition(b"\r\n\r\n")[2] or connection.recv(16384)
    while time.time() < ends and data:
        for sample in fragments.push(data):
            told(sample)
        data = connection.recv(16384)


def view_hls(url: str, ends: float):
    read = lambda path: urllib.request.urlopen(path, timeout=60).read()  # noqa: E731
    text = read(url).decode()
    media = [line for line in text.splitlines() if line and not line.startswith("#")][:1]
    media += [line.split('URI="')[1].split('"')[0] for line in text.splitlines() if line.startswith("#EXT-X-MEDIA:TYPE=AUDIO")][:1]
    # Names of segments begin with `..`, which urllib sends as it is.
    media = [urljoin(url, path) for path in media]
    seen = {path: None for path in media}
    while time.time() < ends:
        for path in media:
            lines = [line for line in read(path).decode().splitlines() if line and not line.startswith("#")]
            # It begins three segments before the end.
            at = lines.index(seen[path]) + 1 if seen[path] in lines else (max(0, len(lines) - 3) if seen[path] is None else 0)
            for line in lines[at : at + 1]:
                data = read(urljoin(path, line))
                seen[path] = line
                for sample in Fragments().push(data):
                    told(sample)
        time.sleep(0.05)


def view_rtsp(url: str, ends: float):
    address, _, port = url.removeprefix("rtsp://").partition("/")[0].partition(":")
    connection = socket.create_connection((address, int(port)))
    stream, number, session = connection.makefile("rb"), 0, ""

    def ask(method: str, path: str, more=""):
        nonlocal number, session
        number += 1
        connection.sendall(f"{method} {path} RTSP/1.0\r\nCSeq: {number}\r\n{session}{more}\r\n".encode())
        length = 0
        for line in iter(stream.readline, b"\r\n"):
            name, _, value = line.decode().partition(":")
            if name.lower() == "session":
                session = f"Session: {value.strip().split(';')[0]}\r\n"
            if name.lower() == "content-length":
                length = int(value)
        return stream.read(length).decode()

    description = ask("DESCRIBE", url, "Accept: application/sdp\r\n")
    controls = [line.split(":", 1)[1] for line in description.splitlines() if line.startswith("a=control:")]
    controls = [control for control in controls if control != "*" and not control.endswith("/")][:2]
    for place, control in enumerate(controls):
        path = control if control.startswith("rtsp:") else url + "/" + control
        ask("SETUP", path, f"Transport: RTP/AVP/TCP;unicast;interleaved={2 * place}-{2 * place + 1}\r\n")
    ask("PLAY", url + "/")
    nals, part = [], b""
    while time.time() < ends:
        head = stream.read(4)
        if len(head) < 4:
            return
        packet = stream.read(struct.unpack(">H", head[2:])[0])
        if head[1] != 0:
            continue
        payload = packet[12:]
        kind = payload[0] & 31
        if kind == 28:
            if payload[1] & 128:
                part = bytes([payload[0] & 0xE0 | payload[1] & 31])
            part += payload[2:]
            if payload[1] & 64:
                nals.append(part)
        elif kind == 24:
            at = 1
            while at + 2 <= len(payload):
                length = struct.unpack_from(">H", payload, at)[0]
                nals.append(payload[at + 2 : at + 2 + length])
                at += 2 + length
        else:
            nals.append(payload)
        if packet[1] & 128:
            print(time.time(), identity(nals), flush=True)
            nals = []


VIEWERS = {"stream": view_stream, "hls": view_hls, "rtsp": view_rtsp}


# What they saw.


def source(path: Path) -> tuple[dict, list]:
    """Numbers of the pictures of a film, in the order of decoding, by their identities; and their presentation times, whether
    others refer to them, and whether they are key pictures."""
    stream = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-map", "0:v", "-c", "copy", "-movflags",
                             "+frag_every_frame+empty_moov+default_base_moof", "-f", "mp4", "-"], check=True, capture_output=True).stdout
    times = run("ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time", "-of", "csv=p=0", path).stdout
    numbers, pictures = {}, []
    for sample, pts in zip(Fragments().push(stream), times.splitlines()):
        slices = [nal for nal in units(sample) if nal[0] & 31 in (1, 5)]
        numbers[identity(slices)] = len(pictures)
        pictures.append((float(pts.strip(",")), any(nal[0] & 0x60 for nal in slices), slices[0][0] & 31 == 5))
    return numbers, pictures


def judge(lines: list, numbers: dict, pictures: list, options) -> dict:
    count, arrivals, last = len(pictures), {}, None
    for line in lines:
        at, name = line.split()
        if name not in numbers:
            continue
        number = numbers[name]
        if last is None:
            place = number
        else:
            # Laps follow each other.
            place = min((last - last % count + lap * count + number for lap in (-1, 0, 1)), key=lambda other: abs(other - last - 1))
        last = max(place, last or 0)
        arrivals.setdefault(place, float(at))
    if not arrivals:
        return {"shown": 0, "still": 100, "longest": 0, "pictures": 0}
    first = min(arrivals)
    time_of = lambda place: place // count * count / RATE + pictures[place % count][0]  # noqa: E731
    start = arrivals[first]
    due = lambda place: start + time_of(place) - time_of(first) + options.buffer  # noqa: E731
    skip = int(options.settle * RATE)
    end = first + int((options.seconds - options.buffer) * RATE)
    is_whole, shown = False, []
    for place in range(first, end):
        _, is_needed, is_key = pictures[place % count]
        came = place in arrivals
        if is_key:
            is_whole = came
        elif is_needed:
            is_whole = is_whole and came
        if is_whole and came and arrivals[place] <= due(place) and place >= first + skip:
            shown.append(time_of(place))
    shown.sort()
    total = (end - first - skip) / RATE
    edges = [time_of(first + skip), *shown, time_of(first + skip) + total]
    gaps = [b - a for a, b in zip(edges, edges[1:]) if b - a > 0.25]
    return {"shown": 100 * len(shown) / (total * RATE), "still": 100 * sum(gaps) / total, "longest": max(gaps, default=0),
            "pictures": len(arrivals)}


class Link:
    """A namespace behind a token bucket."""

    def __init__(self, number: int, rate: float):
        self.name, self.near, far = f"slow{number}", f"sl{number}a", f"sl{number}b"
        self.address = f"10.78.{number}.1"
        self.close()
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.near, "type", "veth", "peer", "name", far, "netns", self.name)
        run("ip", "addr", "add", f"{self.address}/24", "dev", self.near)
        run("ip", "link", "set", self.near, "up")
        run("ip", "-n", self.name, "addr", "add", f"10.78.{number}.2/24", "dev", far)
        run("ip", "-n", self.name, "link", "set", far, "up")
        # Packets of one segment: a bucket of 4000 bytes lets no others pass.
        run("ip", "link", "set", self.near, "gso_max_segs", 1)
        run("tc", "qdisc", "add", "dev", self.near, "root", "tbf", "rate", f"{int(rate)}bit", "burst", 4000, "latency", "200ms")

    def close(self):
        run("ip", "netns", "del", self.name, check=False)
        run("ip", "link", "del", self.near, check=False)


def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("", 0))
        return any_port.getsockname()[1]


class Server:
    def __init__(self, options, drop: str, work: Path):
        self.http, self.rtsp = free_port(), free_port()
        command = [options.bin, "serve", work / "media", "--http", f"0.0.0.0:{self.http}", "--admin", "127.0.0.1:0", "--rtsp",
                   f"0.0.0.0:{self.rtsp}", "--rtsp-channels", "film.mp4", "--cache", work / f"cache-{drop}", "--access-log=false",
                   *([] if drop == "any" else ["--drop", drop]), *options.serve.split()]
        log = open(work / f"{drop}.log", "w")
        self.process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log)

    def wait(self):
        for port in (self.http, self.rtsp):
            for _ in range(200):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)

    def close(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TOP.parent / "target/release/millpond")
    parser.add_argument("--rates", default="0.7,0.85", help="rates of the links, as parts of the stream's")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=10, help="seconds at the beginning that don't count")
    parser.add_argument("--buffer", type=float, default=3, help="seconds that the player holds")
    parser.add_argument("--drops", default="blind,least-needed", help="rules of dropping (setting `drop`)")
    parser.add_argument("--serve", default="", help="other options of the servers")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--view", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.view:
        kind, url, seconds = options.view
        return VIEWERS[kind](url, time.time() + float(seconds))
    work = TOP.parent / "target/bench/slow-viewers"
    path = work / "media/film.mp4"
    film(path)
    numbers, pictures = source(path)
    rate = path.stat().st_size * 8 / SECONDS
    drops = options.drops.split(",")
    servers = {drop: Server(options, drop, work) for drop in drops}
    results, number = [], 1
    try:
        for server in servers.values():
            server.wait()
        for factor in map(float, options.rates.split(",")):
            views = [(kind, drop) for kind in ("stream", "rtsp") for drop in drops] + [("hls", drops[-1])]
            threads, row = [], []
            for kind, drop in views:
                # Headers of TCP and IP take 4 %.
                link, server = Link(number, rate * factor * 1.04), servers[drop]
                number += 1
                http = f"http://{link.address}:{server.http}/film.mp4"
                url = {"stream": f"{http}/stream.mp4", "hls": f"{http}/live/index.m3u8",
                       "rtsp": f"rtsp://{link.address}:{server.rtsp}/film.mp4"}[kind]
                command = ["ip", "netns", "exec", link.name, sys.executable, __file__, "--view", kind, url, str(options.seconds + 5)]

                def view(command=command, link=link, kind=kind, drop=drop):
                    got = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds * 3)
                    link.close()
                    (work / f"{kind}-{drop}-{factor}.txt").write_text(got.stdout + got.stderr)
                    found = judge(got.stdout.splitlines(), numbers, pictures, options)
                    row.append({"rate": factor, "way": kind, "drop": "-" if kind == "hls" else drop, **found})

                threads.append(threading.Thread(target=view))
                threads[-1].start()
            for thread in threads:
                thread.join()
            results += sorted(row, key=lambda one: (one["way"], one["drop"]))
    finally:
        for server in servers.values():
            server.close()
    print("| link | way | dropping | shown in time and whole | stands still | longest |")
    print("|---|---|---|---|---|---|")
    for one in results:
        print(f"| {one['rate']} | {one['way']} | {one['drop']} | {one['shown']:.1f} % | {one['still']:.1f} % | {one['longest']:.2f} s |")
    if options.json:
        options.json.write_text(json.dumps({"bits-per-second": rate, "results": results}, indent=1))


if __name__ == "__main__":
    main()
