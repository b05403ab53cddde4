#!/usr/bin/env python3
"""Compares what players get of media files with the files: every packet, its bytes and its time, with ffmpeg as the judge.

Usage: strangers.py FOLDER [--bin FILE] [--only TEXT] [--json FILE]

Each file of FOLDER is served. ffmpeg reads each track of HLS (fMP4 and TS), DASH and RTSP, and the file itself, without decoding. The
packets must have the same bytes, and times within a millisecond. Tracks must begin at the same distance from each other. The program exits
with 1 where a file differs; a file that is refused with a reason is counted, and is no fault.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

import servers

# Seconds by which times may differ, and by which a clock of 90 kHz rounds.
TOLERANCE = 0.001
ROUNDING = 0.0006
PATIENCE = 120


def run(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, timeout=PATIENCE)


def packets(url: str, spec: str, *options: str):
    """Returns (time, size, hash) of each packet in decoding order; None where there is no such stream."""
    done = run("ffmpeg", "-v", "error", "-nostdin", "-copyts", *options, "-i", url, "-map", spec, "-c", "copy", "-f", "framehash",
               "-hash", "adler32", "-")
    found, base = [], None
    for line in done.stdout.decode().splitlines():
        if line.startswith("#tb 0:"):
            over, under = line.split(":")[1].strip().split("/")
            base = int(over) / int(under)
        elif not line.startswith("#") and base:
            fields = [field.strip() for field in line.split(",")]
            found.append((int(fields[2]) * base, int(fields[4]), fields[5]))
    return found or None


def media(url: str, spec: str, *options: str) -> str:
    """Returns a hash of the bytes of all packets."""
    done = run("ffmpeg", "-v", "error", "-nostdin", *options, "-i", url, "-map", spec, "-c", "copy", "-f", "data", "-")
    return hashlib.md5(done.stdout).hexdigest()


def difference(ours, theirs):
    """Returns what differs in bytes, and the distance of the first times."""
    if not ours:
        return "no packets", 0.0
    shift = ours[0][0] - theirs[0][0]
    if [packet[1:] for packet in ours] != [packet[1:] for packet in theirs]:
        first = next((n for n, (a, b) in enumerate(zip(ours, theirs)) if a[1:] != b[1:]), min(len(ours), len(theirs)))
        return f"{len(ours)} packets, the file has {len(theirs)}; first other {first}", shift
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if abs(a[0] - b[0] - shift) > TOLERANCE + ROUNDING:
            return f"packet {number} at {a[0] - shift:.4f} s, the file's at {b[0]:.4f} s", shift
    return None, shift


def best(ours, streams):
    """Returns the stream of the file that a track is made of: the one with most of its packets."""
    hashes = {packet[1:] for packet in ours or []}
    return max(streams, key=lambda stream: sum(packet[1:] in hashes for packet in stream[1]))


def compare(address: str, path: pathlib.Path, tracks: list) -> dict:
    """Compares the tracks of one file with it. Returns a fault, or nothing, for each track."""
    outcome, shifts, known = {}, {}, {}
    for name in tracks:
        kind = name[0]
        if kind not in known:
            count = streams_of(path, kind)
            known[kind] = [(f"0:{kind}:{number}", packets(str(path), f"0:{kind}:{number}")) for number in range(count)]
            known[kind] = [stream for stream in known[kind] if stream[1]]
        if not known[kind]:
            outcome[name] = "ffmpeg reads no packets of the file"
            continue
        url = f"{address}/{name}/index.m3u8"
        ours = packets(url, "0:0")
        spec, theirs = best(ours, known[kind])
        fault, shift = difference(ours, theirs)
        if fault and kind == "a" and ours and media(url, "0:0") == media(str(path), spec):
            # ffmpeg cuts some codecs into other packets. The bytes count, and when they begin.
            fault = None
        shifts[name] = shift
        outcome[name] = fault
    if shifts and max(shifts.values()) - min(shifts.values()) > TOLERANCE + ROUNDING:
        outcome["step"] = f"tracks are {1000 * (max(shifts.values()) - min(shifts.values())):.1f} ms out of step: {shifts}"
    return outcome


def streams_of(path: pathlib.Path, kind: str) -> int:
    """Counts the streams of pictures or sound that ffmpeg finds."""
    done = run("ffprobe", "-v", "error", "-select_streams", kind, "-show_entries", "stream=index", "-of", "csv=p=0", str(path))
    return len(done.stdout.split())


def served(binary: str, folder: pathlib.Path, work: pathlib.Path):
    port, admin, rtsp = (servers.free_port() for _ in range(3))
    command = [binary, "serve", str(folder), "--http", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}", "--rtsp", f"127.0.0.1:{rtsp}",
               "--cache", str(work / "cache")]
    return servers.Server("millpond", command, port, work / "log")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--bin", default="target/release/millpond")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    files = sorted(path for path in args.folder.iterdir() if path.is_file() and args.only in path.name)
    results = {}
    with tempfile.TemporaryDirectory() as work, served(args.bin, args.folder, pathlib.Path(work)) as server:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for path, result in zip(files, pool.map(lambda path: outcome(args.bin, server.url, path), files)):
                results[path.name] = result
                print(f"{result['verdict']:8} {path.name} {result['told']}", flush=True)
    counts = collections.Counter(result["verdict"] for result in results.values())
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    return 1 if counts["differs"] or not counts["exact"] else 0


def outcome(binary: str, url: str, path: pathlib.Path) -> dict:
    try:
        done = run(binary, "probe", "--json", str(path))
        if done.returncode:
            return {"verdict": "refused", "told": done.stderr.decode().strip()[-300:]}
        report = json.loads(done.stdout)
        names = [track["name"] for track in report["presentation"]["tracks"] if track["name"][0] in "va"]
        faults = compare(f"{url}/{urllib.parse.quote(path.name)}", path, names)
    except (subprocess.TimeoutExpired, ValueError, KeyError) as error:
        return {"verdict": "differs", "told": f"{type(error).__name__}: {error}"}
    found = {name: fault for name, fault in faults.items() if fault}
    codecs = " ".join(track["codec"] for track in report["tracks"])
    return {"verdict": "differs" if found else "exact", "told": f"{found}" if found else codecs}


if __name__ == "__main__":
    sys.exit(main())
