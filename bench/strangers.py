#!/usr/bin/env python3
"""Compares what players get of media files with the files: every packet, its bytes and its time, with ffmpeg as the judge.

Usage: strangers.py FOLDER [--bin FILE] [--only TEXT] [--json FILE]

Each file of FOLDER is served. ffmpeg reads each track of HLS (fMP4 and TS), DASH and RTSP, and the file itself, without decoding. The
packets must have the same bytes, and times within a millisecond. Tracks must begin at the same distance from each other. TS and RTSP have
parameter sets and delimiters in other places than files: of H.264 and HEVC, the slices are compared there, and of AAC the frames. RTSP plays in
real time: its first seconds are compared. The program exits with 1 where a file differs; a file that is refused with a reason is counted, and
is no fault.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import servers

# Seconds by which times may differ, and by which a clock of 90 kHz rounds.
TOLERANCE = 0.001
ROUNDING = 0.0006
# Muxers of Matroska round times of sound to milliseconds, some of them up and some down.
SOUND_TOLERANCE = 0.002
# ffmpeg's number for a packet without a time is far below this.
UNKNOWN = -1e6
# Packets that the end of a recording may cut: the last picture, and the last frames of sound.
CUT = 2
# Pictures by RTSP whose times are not compared: ffmpeg guesses decoding times, and moves the pictures that would precede theirs.
GUESSED = 8
PATIENCE = 120
# Seconds that are compared by RTSP.
SECONDS = 6
# Codecs that this version of ffmpeg receives by RTP.
BY_RTSP = {"avc1", "avc3", "hvc1", "hev1", "vp08", "vp09", "mp4a", "opus", "ac-3"}
# Filters of ffmpeg after which packets of all containers have the same bytes: slices of pictures, and AAC without ADTS.
FILTERS = {
    "avc1": "h264_mp4toannexb,filter_units=pass_types=1-5",
    "avc3": "h264_mp4toannexb,filter_units=pass_types=1-5",
    "hvc1": "hevc_mp4toannexb,filter_units=pass_types=0-31",
    "hev1": "hevc_mp4toannexb,filter_units=pass_types=0-31",
    "mp4a.40.2": "aac_adtstoasc",
    "mp4a.40.5": "aac_adtstoasc",
}


def run(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, timeout=PATIENCE)


def packets(url: str, specs: dict, *options: str, seconds: float = 0):
    """Returns, for each stream, (time, size, hash) of its packets in decoding order. `specs` has the filter of each stream, or none."""
    maps = [word for spec in specs for word in ("-map", spec)]
    maps += [word for number, use in enumerate(specs.values()) if use for word in (f"-bsf:{number}", use)]
    maps += ["-t", str(seconds)] if seconds else []
    done = run("ffmpeg", "-v", "error", "-nostdin", "-copyts", *options, "-i", url, *maps, "-c", "copy", "-copyinkf", "-f", "framehash",
               "-hash", "adler32", "-")
    found, bases = [[] for _ in specs], {}
    for line in done.stdout.decode().splitlines():
        if line.startswith("#tb "):
            number, base = line[4:].split(":")
            over, under = base.strip().split("/")
            bases[int(number)] = int(over) / int(under)
        elif line.count(",") >= 5 and not line.startswith("#"):
            fields = [field.strip() for field in line.split(",")]
            number = int(fields[0])
            found[number].append((int(fields[2]) * bases[number], int(fields[4]), fields[5]))
    return dict(zip(specs, found))


def media(url: str, spec: str, use: str) -> bytes:
    """Returns the bytes of all packets."""
    filters = ["-bsf:0", use] if use else []
    return run("ffmpeg", "-v", "error", "-nostdin", "-i", url, "-map", spec, *filters, "-c", "copy", "-copyinkf", "-f", "data", "-").stdout


def within(ours, theirs):
    """Returns the packets of a recording from the first of ours on. A recording may begin between key frames, and end within a picture."""
    began = next((n for n, packet in enumerate(theirs) if ours and packet[1:] == ours[0][1:]), 0)
    end = began + len(ours)
    return theirs[began:end] if len(theirs) - end <= CUT else theirs[began:]


def difference(ours, theirs, tolerance: float, guessed: int):
    """Returns what differs in bytes or times, and the distance of the first times. The times of the first packets may be guessed."""
    if not ours:
        return "no packets", 0.0
    timed = [(a[0], b[0]) for a, b in zip(ours, theirs) if min(a[0], b[0]) > UNKNOWN][guessed:]
    shift = timed[0][0] - timed[0][1] if timed else 0.0
    if [packet[1:] for packet in ours] != [packet[1:] for packet in theirs]:
        first = next((n for n, (a, b) in enumerate(zip(ours, theirs)) if a[1:] != b[1:]), min(len(ours), len(theirs)))
        return f"{len(ours)} packets, the file has {len(theirs)}; first other {first}", shift
    for number, (a, b) in enumerate(timed):
        if abs(a - b - shift) > tolerance + ROUNDING:
            return f"packet {number} at {a - shift:.4f} s, the file's at {b:.4f} s", shift
    return None, shift


def best(packets, streams: dict):
    """Returns the name of the stream that has most of these packets."""
    hashes = {packet[1:] for packet in packets or []}
    return max(streams, key=lambda name: sum(packet[1:] in hashes for packet in streams[name]), default=None)


class File:
    """A file, and what ffmpeg reads of it."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.known = {}

    def streams(self, kind: str, use: str) -> dict:
        """Returns the packets of all streams of a kind, after a filter."""
        if (kind, use) not in self.known:
            specs = [f"0:{kind}:{number}" for number in range(streams_of(str(self.path), kind))]
            read = packets(str(self.path), dict.fromkeys(specs, use)) if specs else {}
            self.known[kind, use] = {spec: found for spec, found in read.items() if found}
        return self.known[kind, use]


def hls(address: str, tracks: list, use: dict) -> dict:
    """Returns the packets of each track of HLS."""
    return {name: packets(f"{address}/{name}/index.m3u8", {"0:0": use[name]})["0:0"] for name, _ in tracks}


def hls_ts(address: str, tracks: list, use: dict) -> dict:
    """Returns the packets of each track of HLS in TS; None where the server says that the format can't have it.

    ffmpeg reads the joined segments: its reader of playlists gives the first two frames of sound one time, and recognizes no small segment.
    """
    read = {}
    for name, _ in tracks:
        try:
            playlist = fetched(f"{address}/ts/{name}/index.m3u8").decode()
        except urllib.error.HTTPError as error:
            if error.code >= 500:
                raise
            read[name] = None
            continue
        segments = [line for line in playlist.splitlines() if line and not line.startswith("#")]
        with tempfile.NamedTemporaryFile(suffix=".ts") as joined:
            for segment in segments:
                joined.write(fetched(urllib.parse.urljoin(f"{address}/ts/{name}/", segment)))
            joined.flush()
            read[name] = packets(joined.name, {"0:0": use[name]}, "-f", "mpegts")["0:0"]
    return read


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=PATIENCE) as reply:
        return reply.read()


def by_stream(url: str, tracks: list, use: dict, theirs: dict, at_once: bool, *options: str, seconds: float = 0) -> dict:
    """Returns the packets of each track of an address that has all of them: those of the stream that resembles it most."""
    read = {}
    for kind in "va":
        filters = [use[name] for name, _ in tracks if name[0] == kind]
        for number in range(streams_of(url, kind, *options) if filters else 0):
            read[f"0:{kind}:{number}"] = filters[min(number, len(filters) - 1)]
    parts = [read] if at_once else [{spec: filters} for spec, filters in read.items()]
    found = {spec: got for part in parts if part for spec, got in packets(url, part, *options, seconds=seconds).items()}
    of_kind = lambda kind: {spec: got for spec, got in found.items() if spec[2] == kind}
    return {name: found.get(best(theirs[name], of_kind(name[0])), []) for name, _ in tracks}


def compare(http: str, rtsp: str, path: pathlib.Path, tracks: list) -> dict:
    """Compares the tracks of one file with it in each output. Returns the faults by output and track; None where ffmpeg reads nothing."""
    file, faults = File(path), {}
    whole = {name: "" for name, _ in tracks}
    # The bytes of a recording in TS have the delimiters of TS in its file already.
    common = {name: next((use for prefix, use in FILTERS.items() if codec.startswith(prefix)), "") for name, codec in tracks}
    plain = common if is_recording(path) else whole
    if not any(file.streams(name[0], plain[name]) for name, _ in tracks):
        return None
    read = {"hls": (plain, hls(http, tracks, plain)), "ts": (common, hls_ts(http, tracks, common))}
    spec = {name: best(read["hls"][1][name], file.streams(name[0], plain[name])) for name, _ in tracks}
    theirs = {name: file.streams(name[0], common[name]).get(spec[name], []) for name, _ in tracks}
    listed = fetched(f"{http}/index.mpd").decode()
    shown = [(name, codec) for name, codec in tracks if f'<Representation id="{name}"' in listed]
    read["dash"] = plain, by_stream(f"{http}/index.mpd", shown, plain, read["hls"][1], False)
    # A session of RTSP has one track of pictures and one of sound.
    sent = [(name, codec) for name, codec in tracks if name in ("v1", "a1") and codec.split(".")[0] in BY_RTSP]
    if sent:
        options = "-rtsp_transport", "tcp", "-timeout", str(PATIENCE * 1_000_000)
        read["rtsp"] = common, by_stream(rtsp, sent, common, theirs, True, *options, seconds=SECONDS)
    alike = set()
    for output, (use, tracks_read) in read.items():
        shifts = {}
        for name, ours in tracks_read.items():
            expected = file.streams(name[0], use[name]).get(spec[name])
            if ours is None or not expected:
                continue
            is_sound = name[0] == "a"
            if is_recording(path):
                expected = within(ours, expected)
            if output == "rtsp" and ours and ours[-1][0] - max(ours[0][0], ours[GUESSED % len(ours)][0]) > SECONDS - 3:
                expected = expected[:len(ours)]
            guessed = GUESSED if output == "rtsp" and not is_sound and len(expected) > 2 * GUESSED else 0
            fault, shift = difference(ours, expected, SOUND_TOLERANCE if is_sound else TOLERANCE, guessed)
            if fault and ours and output == "hls" and (is_sound or is_recording(path)):
                # ffmpeg cuts some codecs, and both fields of a picture, into other packets. The bytes count, and when they begin.
                got, whole = media(f"{http}/{name}/index.m3u8", "0:0", use[name]), media(str(path), spec[name], use[name])
                if got and (got == whole or is_recording(path) and got in whole):
                    alike.add(name)
            if name in alike:
                fault = None
            if len(ours) > 1 and name not in alike:
                shifts[name] = shift
            if fault:
                faults[f"{output} {name}"] = fault
        apart = max(shifts.values(), default=0) - min(shifts.values(), default=0)
        if apart > TOLERANCE + ROUNDING:
            faults[f"{output} step"] = f"tracks are {1000 * apart:.1f} ms out of step: {shifts}"
    return faults


def is_recording(path: pathlib.Path) -> bool:
    """Whether a file is a transport stream."""
    return path.suffix.lower() in (".ts", ".m2ts", ".mts")


def streams_of(url: str, kind: str, *options: str) -> int:
    """Counts the streams of pictures or sound that ffmpeg finds."""
    done = run("ffprobe", "-v", "error", *options, "-select_streams", kind, "-show_entries", "stream=index", "-of", "json", url)
    return len(json.loads(done.stdout or "{}").get("streams", []))


def served(binary: str, folder: pathlib.Path, work: pathlib.Path):
    port, admin, rtsp = (servers.free_port() for _ in range(3))
    command = [binary, "serve", str(folder), "--http", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}", "--rtsp", f"127.0.0.1:{rtsp}",
               "--cache", str(work / "cache")]
    return servers.Server("millpond", command, port, work / "log"), f"rtsp://127.0.0.1:{rtsp}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--bin", default="target/release/millpond")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    files = sorted(path for path in args.folder.iterdir() if path.is_file() and args.only in path.name)
    results = {}
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
        server, rtsp = served(args.bin, args.folder, pathlib.Path(work))
        stack.enter_context(server)
        # RTSP plays in real time: most files wait.
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for path, result in zip(files, pool.map(lambda path: outcome(args.bin, server.url, rtsp, path), files)):
                results[path.name] = result
                print(f"{result['verdict']:8} {path.name} {result['told']}", flush=True)
    counts = collections.Counter(result["verdict"] for result in results.values())
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    return 1 if counts["differs"] or not counts["exact"] else 0


def outcome(binary: str, http: str, rtsp: str, path: pathlib.Path) -> dict:
    try:
        done = run(binary, "probe", "--json", str(path))
        if done.returncode:
            return {"verdict": "refused", "told": done.stderr.decode().strip()[-300:]}
        report = json.loads(done.stdout)
        name = urllib.parse.quote(path.name)
        faults = compare(f"{http}/{name}", f"{rtsp}/{name}", path, named(report))
    except (subprocess.TimeoutExpired, ValueError, KeyError, OSError) as error:
        return {"verdict": "differs", "told": f"{type(error).__name__}: {error}"}
    if faults is None:
        return {"verdict": "unread", "told": "ffmpeg reads no packets of pictures or sound that are compared"}
    codecs = " ".join(track["codec"] for track in report["tracks"])
    return {"verdict": "differs" if faults else "exact", "told": f"{faults}" if faults else codecs}


def named(report: dict) -> list:
    """Returns (name, codec parameter) of the tracks of pictures and sound."""
    codecs = {"v": [], "a": []}
    for track in report["tracks"]:
        # PCM and G.711 become FLAC in HLS and DASH: the packets are others.
        if (parameter := track["parameter"]) and not track["codec"].startswith(("PCM", "G.711")):
            codecs["v" if parameter[:2] in ("av", "hv", "he", "vp") else "a"].append(parameter)
    found = []
    for track in report["presentation"]["tracks"]:
        name = track["name"]
        if name[0] in "va":
            of_kind = codecs[name[0]]
            if of_kind:
                found.append((name, of_kind[min(int(name[1:]), len(of_kind)) - 1]))
    return found


if __name__ == "__main__":
    sys.exit(main())
