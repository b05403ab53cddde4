#!/usr/bin/env python3
"""Whether players of a live stream get exactly what its source sent, by every way in and every way out.

Sources: gst-rtsp-server, live555 and MediaMTX, whose streams are fetched, and ffmpeg that pushes by RTSP over TCP and UDP, by RTMP, by PUT as MPEG-TS and as
fragmented MP4, and sends MPEG-TS by UDP. All outputs of one stream
are recorded at the same time. Pictures must decode to those of the clip, from a key frame on, without a hole; coded frames of sound must be
those of the clip. Times of the same frame may differ by a millisecond between outputs, apart from a constant. With `--loss`, sources are
fetched by UDP through a relay that loses packets: each coded frame whose packets all came through must be there. Exits 1 otherwise.

    bench/live_exact.py --mediamtx FOLDER/mediamtx --live555 FOLDER/live555MediaServer
    bench/live_exact.py --loss 1 --seconds 30 --live555 FOLDER/live555MediaServer
    bench/live_exact.py --sources push-tcp,push-udp --ppm 200 --seconds 3600    # a source whose clock is fast, for an hour
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import lossy
import media
import servers
from compare import TARGET
from rtsp_capacity import GST, Rtsp

SOURCES = ["gst", "live555", "mediamtx", "push-tcp", "push-udp", "push-rtmp", "put-ts", "put-mp4", "udp"]
OUTPUTS = ["rtsp-tcp", "rtsp-udp", "hls", "ll-hls", "hls-ts", "dash", "stream.mp4", "stream.ts"]
# Those that play the clip from its beginning for each session, by UDP where that is asked.
LOSSY = ["gst", "live555"]
# Names of the outputs that ffmpeg reads by HTTP.
LISTS = {"hls": "index.m3u8", "hls-ts": "ts/index.m3u8", "dash": "index.mpd"}
# How ffmpeg pushes, by source.
PUSHES = {
    "push-tcp": ["-f", "rtsp", "-rtsp_transport", "tcp"],
    "push-udp": ["-f", "rtsp", "-rtsp_transport", "udp"],
    "push-rtmp": ["-f", "flv"],
    "put-ts": ["-f", "mpegts", "-method", "PUT"],
    "put-mp4": ["-f", "mp4", "-movflags", "frag_keyframe+empty_moov+default_base_moof", "-method", "PUT"],
    "udp": ["-f", "mpegts"],
}
# Frames between key frames.
GROUP = 50
# Pictures at most that are sent behind later ones.
REORDERED = 4
# Seconds that times of one frame may differ by between two outputs.
APART = 0.001
MEDIAMTX = """
logLevel: warn
rtspAddress: 127.0.0.1:{port}
rtspTransports: [tcp]
rtmp: no
hls: no
webrtc: no
srt: no
moq: no
paths:
  all_others:
"""


@dataclass
class Recorded:
    """Frames of an output by track: times in seconds and hashes."""

    video: list = field(default_factory=list)
    audio: list = field(default_factory=list)
    fault: str = ""


def make(path: Path):
    """A minute of pictures that are all different, B-frames, AAC of noise."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        media.ffmpeg(
            "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25,noise=alls=6:allf=t", "-f", "lavfi", "-i", "anoisesrc=r=48000:seed=1:a=0.1", "-t", 60,
            "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-bf", 2, "-g", GROUP, "-keyint_min", GROUP, "-sc_threshold", 0,
            "-b:v", "400k", "-c:a", "aac", "-b:a", "96k", "-movflags", "+faststart", path,
        )
    # What live555 reads.
    if not path.with_suffix(".mkv").exists():
        media.ffmpeg("-i", path, "-c", "copy", path.with_suffix(".mkv"))


def hashes(*arguments, is_ts: bool = False, is_coded: bool = False) -> Recorded:
    """Hashes of decoded pictures and of coded frames of sound that ffmpeg reads, those of transport streams without their ADTS headers.
    `is_coded` has the slices of pictures hashed instead."""
    pictures = ["-fps_mode", "passthrough", "-enc_time_base:v", "1:90000"]
    if is_coded:
        pictures = ["-c:v", "copy", "-bsf:v", "h264_mp4toannexb,filter_units=pass_types=1-5"]
    command = ["ffmpeg", "-v", "error", "-nostdin", "-copyts", *map(str, arguments), "-map", "0:v?", "-map", "0:a?", *pictures]
    command += ["-c:a", "copy", *(["-bsf:a", "aac_adtstoasc"] if is_ts else []), "-f", "framemd5", "-"]
    ran = subprocess.run(command, capture_output=True, text=True)
    found, bases, kinds = Recorded(), {}, {}
    for line in ran.stdout.splitlines():
        if base := re.match(r"#tb (\d+): (\d+)/(\d+)", line):
            bases[base[1]] = int(base[2]) / int(base[3])
        elif kind := re.match(r"#media_type (\d+): (\w+)", line):
            kinds[kind[1]] = kind[2]
        elif not line.startswith("#"):
            # Side data follows the hash.
            track, _, pts, _, _, digest = [cell.strip() for cell in line.split(",")][:6]
            getattr(found, kinds[track]).append((int(pts) * bases[track], digest))
    if not found.video and not found.audio:
        found.fault = f"nothing recorded: {ran.stderr[-200:].strip()}"
    return found


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as reply:
        return reply.read()


def listed(text: str, known: set, begins: bool) -> tuple:
    """Address of the init segment of a playlist, its parts that are not known yet, and the query of the next reload."""
    found = re.findall(r'EXT-X-PART:.*URI="([^"]+)"(.*)', text)
    if begins:
        # From the last key frame on; every part of sound begins with one.
        keys = [n for n, (_, rest) in enumerate(found) if "INDEPENDENT" in rest]
        known.update(uri for uri, _ in found[: keys[-1]])
    segments = re.findall(r"(?m)^[^#\n]+\.m4s$", text)
    number = int(re.search(r"MEDIA-SEQUENCE:(\d+)", text)[1]) + len(segments)
    opened = text.rsplit(".m4s\n", 1)[-1] if segments else text
    query = f"?_HLS_msn={number}&_HLS_part={opened.count('#EXT-X-PART:')}"
    new = [uri for uri, _ in found if uri not in known]
    return re.search(r'EXT-X-MAP:URI="([^"]+)"', text)[1], new, query


def ll_hls(base: str, name: str, end: float, file):
    """The parts of a track by Low-Latency HLS, joined behind their init segment."""
    known, query = set(), ""
    while time.monotonic() < end:
        text = fetch(f"{base}/{name}/index.m3u8{query}").decode()
        init, new, query = listed(text, known, not query)
        if not file.tell():
            file.write(fetch(f"{base}/{name}/{init}"))
        for uri in new:
            known.add(uri)
            file.write(fetch(f"{base}/{name}/{uri}"))


def joined(base: str, seconds: float, work: Path, is_coded: bool) -> Recorded:
    """Both tracks by Low-Latency HLS."""
    found, end = Recorded(), time.monotonic() + seconds

    def track(name: str, kind: str):
        try:
            path = work / f"ll-hls-{name}.mp4"
            with path.open("wb") as file:
                ll_hls(base, name, end, file)
            frames = getattr(hashes("-i", path, is_coded=is_coded), kind)
            # The end may lack pictures that are shown before others already sent.
            setattr(found, kind, frames[:-REORDERED] if kind == "video" else frames)
        except (OSError, TypeError, IndexError, ValueError) as error:
            found.fault = f"{name}: {error!r}"

    threads = [threading.Thread(target=track, args=of) for of in (("v1", "video"), ("a1", "audio"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def record(output: str, server, path: str, seconds: float, work: Path, is_coded: bool) -> Recorded:
    base, rtsp = f"{server.url}/{path}", f"rtsp://127.0.0.1:{server.rtsp}/{path}"
    limit = ("-t", seconds)
    if output.startswith("rtsp"):
        return hashes("-rtsp_transport", output.removeprefix("rtsp-"), *limit, "-i", rtsp, is_coded=is_coded)
    if output == "ll-hls":
        return joined(base, seconds, work, is_coded)
    is_ts = output in ("hls-ts", "stream.ts")
    return hashes(*limit, "-i", f"{base}/{LISTS.get(output, output)}", is_ts=is_ts, is_coded=is_coded)


@contextlib.contextmanager
def pushing(clip: Path, url: str, how: list, log: Path, ppm: float):
    """ffmpeg that plays the clip round and round, with a clock that is fast by `ppm`."""
    rate = f"{1 + ppm / 1e6:.6f}"
    command = ["ffmpeg", "-v", "error", "-nostdin", "-readrate", rate, "-stream_loop", -1, "-i", clip, "-c", "copy", *how, url]
    with log.open("wb") as output:
        process = subprocess.Popen([str(word) for word in command], stdout=output, stderr=output)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def source(name: str, clip: Path, options, work: Path):
    """A server with the stream of a source; gives the server, the stream's path, and the relay in between where there is one."""
    with contextlib.ExitStack() as stack:
        if name in PUSHES:
            sender = f"udp://127.0.0.1:{servers.free_port()}"
            place, path = (f"live={sender}", "live") if name == "udp" else ("live=publish:", f"live/{clip.stem}")
            rtmp = f"127.0.0.1:{servers.free_port()}"
            server = stack.enter_context(servers.Edge(options.bin, place, work, *(["--rtmp", rtmp] if name == "push-rtmp" else [])))
            addresses = {"push-rtmp": f"rtmp://{rtmp}/{path}", "push": f"rtsp://127.0.0.1:{server.rtsp}/{path}", "put": f"{server.url}/{path}", "udp": f"{sender}?pkt_size=1316"}
            stack.enter_context(pushing(clip, addresses.get(name) or addresses[name.split("-")[0]], PUSHES[name], work / "push.log", options.ppm))
            time.sleep(2)
            yield server, path, None
            return
        port = servers.free_port()
        if name == "live555":
            # It has no setting for its port.
            port = 554 if os.geteuid() == 0 else 8554
            command, path = ["env", "-C", str(clip.parent), str(options.live555)], f"{clip.stem}.mkv"
        elif name == "gst":
            command = ["/usr/bin/python3", str(GST), str(clip.parent), "--port", str(port), "--sound"]
            path = clip.name
        else:
            config = work / "mediamtx.yml"
            config.write_text(MEDIAMTX.format(port=port))
            command, path = [str(options.mediamtx), str(config)], clip.stem
        stack.enter_context(Rtsp(name, command, port, work / f"{name}.log"))
        if name == "mediamtx":
            stack.enter_context(pushing(clip, f"rtsp://127.0.0.1:{port}/{path}", PUSHES["push-tcp"], work / "push.log", options.ppm))
            time.sleep(2)
        relay = stack.enter_context(lossy.Relay(port, options.loss, options.seed)) if options.loss else None
        place = f"cams=rtsp://127.0.0.1:{relay.port if relay else port}/"
        # What is lost stays lost: the frames that arrive whole are compared.
        more = ["--source-transport", "udp", "--source-retransmission", "false"] if relay else ["--source-transport", "tcp"]
        server = stack.enter_context(servers.Edge(options.bin, place, work, *more))
        yield server, f"cams/{path}", relay


def unrolled(track: list, reference: list, is_video: bool) -> tuple:
    """Times of a track's frames by their places in a source that plays round and round, and what is wrong with them."""
    places = {digest: place for place, (_, digest) in enumerate(reference)}
    found = [places.get(digest) for _, digest in track]
    if not found:
        return {}, "no frames"
    if None in found:
        return {}, f"frame {found.index(None)} of {len(found)} is not of the source"
    holes = [n for n, (a, b) in enumerate(zip(found, found[1:])) if b != (a + 1) % len(reference)]
    if holes:
        return {}, f"{found[holes[0]]} is followed by {found[holes[0] + 1]} ({len(holes)} holes)"
    if is_video and found[0] % GROUP:
        return {}, f"begins with picture {found[0]}, not a key frame"
    return {found[0] + n: at for n, (at, _) in enumerate(track)}, ""


def differences(one: dict, other: dict, length: int) -> list:
    """Differences between the times of the same frames. Both begin within half of the source's length."""
    if not one or not other:
        return []
    shift = round((min(other) - min(one)) / length) * length
    return [at - other[place + shift] for place, at in one.items() if place + shift in other]


def check(name: str, clip: Path, reference: Recorded, options) -> bool:
    work = TARGET / f"bench/live-exact/{name}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    outputs = options.outputs.split(",")
    recorded = dict.fromkeys(outputs)
    with source(name, clip, options, work) as (server, path, relay):
        fetch(f"{server.url}/{path}/v1/index.m3u8")
        time.sleep(options.warm)
        def one(output):
            recorded[output] = record(output, server, path, options.seconds, work, bool(relay))
        threads = [threading.Thread(target=one, args=(output,)) for output in outputs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return judge_loss(name, recorded, relay) if relay else judge(name, recorded, reference)


def judge_loss(name: str, recorded: dict, relay) -> bool:
    """Whether each output has all frames that came through the relay."""
    sent, fine = relay.frames(), True
    print(f"{name:9} {'{} of {} packets are lost'.format(*relay.lost())}", flush=True)
    for output, found in recorded.items():
        wrong, counts = [found.fault] if found.fault else [], {}
        for track, frames in sent.items():
            counts[track], fault = lossy.judge([hashed for _, hashed in getattr(found, track)], frames)
            wrong += [f"{track}: {fault}"] if fault else []
        fine &= not wrong
        print(f"{name:9} {output:11} {counts['video']:4} whole pictures {counts['audio']:4} of sound: {'; '.join(wrong) or 'ok'}", flush=True)
    return fine


def judge(name: str, recorded: dict, reference: Recorded) -> bool:
    """Whether each output has the clip, at the same times."""
    fine, first = True, None
    for output, found in recorded.items():
        wrong, times = [found.fault] if found.fault else [], {}
        for track in ("video", "audio"):
            times[track], fault = unrolled(getattr(found, track), getattr(reference, track), track == "video")
            wrong += [f"{track}: {fault}"] if fault else []
        note = "the clock of the others"
        if first:
            apart = [each for track in times for each in differences(times[track], first[track], len(getattr(reference, track)))]
            spread = max(apart) - min(apart) if apart else 0
            note = f"times within {1000 * spread:.2f} ms ({len(apart)} frames)"
            wrong += ["times differ"] if spread > APART else [] if apart else ["no frame is the same"]
        elif not wrong:
            first = times
        fine &= not wrong
        print(f"{name:9} {output:11} {len(found.video):4} pictures {len(found.audio):4} of sound, {note}: {'; '.join(wrong) or 'ok'}", flush=True)
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--mediamtx", type=Path, help="MediaMTX's binary; without it that source is left out")
    parser.add_argument("--live555", type=Path, help="live555's media server; without it that source is left out")
    parser.add_argument("--sources", default=",".join(SOURCES), help="(%(default)s)")
    parser.add_argument("--outputs", default=",".join(OUTPUTS), help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=15, help="recorded of each output (%(default)s)")
    parser.add_argument("--ppm", type=float, default=0, help="what the clock of pushing sources is fast by, in millionths (%(default)s)")
    parser.add_argument("--loss", type=float, default=0, help="percent of packets lost between these sources and millpond: gst, live555")
    parser.add_argument("--seed", type=int, default=1, help="of the losses (%(default)s)")
    parser.add_argument("--warm", type=float, default=8, help="seconds of the stream before outputs are recorded (%(default)s)")
    options = parser.parse_args()
    if options.loss and options.warm + options.seconds > 50:
        parser.error("the clip is a minute long, and frames are told apart by their contents")
    clip = TARGET / "bench/live-exact/media/exact.mp4"
    make(clip)
    reference = hashes("-i", clip)
    peers = {"mediamtx": options.mediamtx, "live555": options.live555}
    names = [name for name in options.sources.split(",") if peers.get(name, True) and (name in LOSSY or not options.loss)]
    sys.exit(not all([check(name, clip, reference, options) for name in names]))


if __name__ == "__main__":
    main()
