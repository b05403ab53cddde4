#!/usr/bin/env python3
"""Players and servers that know of no proxy, with an edge that intercepts between them: curl, ffmpeg and VLC ask by HTTP of gst-rtsp-server
and live555, which speak RTSP only. Decoded pictures are compared with those of the file that the server plays; and their number with what the same player writes of the file.

By RTSP ffmpeg and openRTSP ask, the client of live555, whose library VLC's RTSP client is made of. Client, edge and server have a network namespace
each. Needs root, ffmpeg, curl, cvlc, nftables, GStreamer's RTSP server, and live555MediaServer (`--live555`, made from its sources).

    cargo build --release -p millpond
    bench/transparent.py --live555 live/mediaServer/live555MediaServer --json result.json
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from compare import TARGET
from routed import SERVER, Routed

TOP = Path(__file__).resolve().parent
SECONDS = 8

# Pictures that ffmpeg is asked for by RTSP: fewer than the file has.
ASKED = SECONDS * 25 - 10


def clips(folder: Path) -> dict:
    """The same pictures for each server, in the form that it plays. The noise makes all of them differ."""
    folder.mkdir(parents=True, exist_ok=True)
    mp4, matroska = folder / "film.mp4", folder / "film.mkv"
    if not mp4.exists():
        command = ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", f"testsrc2=s=320x180:r=25:d={SECONDS}", "-vf", "noise=alls=20:allf=t"]
        command += ["-c:v", "libx264", "-preset", "veryfast", "-bf", "0", "-g", "25", "-b:v", "700k", "-pix_fmt", "yuv420p", mp4]
        subprocess.run([str(word) for word in command], check=True)
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", str(mp4), "-c", "copy", str(matroska)], check=True)
    return {"gst": mp4, "live555": matroska}


def pictures(path: Path) -> list:
    """Hashes of the decoded pictures of a file."""
    command = ["ffmpeg", "-v", "error", "-i", str(path), "-map", "0:v", "-fps_mode", "passthrough", "-f", "framemd5", "-"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split(",")[5].strip() for line in text.splitlines() if not line.startswith("#")]


def client(name: str, url: str, out: Path, openrtsp: Path | None = None) -> list:
    """A command that saves a stream as it comes."""
    if name.startswith("openrtsp"):
        # It names the file itself.
        way = ["-t"] if name.endswith("tcp") else []
        return ["sh", "-c", '"$@" && mv "$0"video-H264-1 "$0"', out, openrtsp, "-V", "-D", 2, "-d", SECONDS + 5, "-b", 1_000_000, *way, "-F", out,
                url.replace("http:", "rtsp:")]
    if name == "curl":
        return ["curl", "-sS", "--max-time", "60", "-o", out, url]
    if name == "ffmpeg":
        return ["ffmpeg", "-v", "error", "-y", "-nostdin", "-i", url, "-c", "copy", out]
    if name == "vlc":
        # It refuses root.
        return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cvlc", "-q", "-I", "dummy", "--play-and-exit", url,
                "--sout", f"#standard{{access=file,mux=ts,dst={out}}}"]
    # live555 does not tell the end of a file that it could seek in, and ffmpeg writes a picture when the next one has come.
    return ["ffmpeg", "-v", "error", "-y", "-nostdin", "-rtsp_transport", name.removeprefix("rtsp-"), "-i", url.replace("http:", "rtsp:"),
            "-c", "copy", "-frames:v", ASKED, out]


def written_of_file(way: Routed, of_client: str, file: Path) -> int:
    """Number of pictures that a player writes of the file itself: VLC leaves out the last ones."""
    if of_client.startswith("rtsp-"):
        return ASKED
    if of_client != "vlc":
        return len(pictures(file))
    name = way.work / "out" / f"{file.suffix[1:]}-itself.ts"
    name.unlink(missing_ok=True)
    file.chmod(0o644)
    subprocess.run([str(word) for word in client(of_client, str(file), name)], capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS + 60)
    return len(pictures(name))


def pair(way: Routed, of_client: str, of_server: str, file: Path, openrtsp: Path | None) -> dict:
    out = way.work / "out"
    out.mkdir(exist_ok=True)
    out.chmod(0o777)
    written = written_of_file(way, of_client, file)
    name = out / f"{of_client}-{of_server}.{ {'vlc': 'ts', 'openrtsp': 'h264'}.get(of_client.split('-')[0], 'mp4') }"
    name.unlink(missing_ok=True)
    before = way.metrics()
    command = way.command("client", *client(of_client, f"http://{SERVER}/{file.name}", name, openrtsp))
    began = time.monotonic()
    # A player that doesn't see the end of the stream is a result too.
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL) as process:
        try:
            _, said = process.communicate(timeout=SECONDS + 30)
        except subprocess.TimeoutExpired:
            process.terminate()
            _, said = process.communicate()
    seconds = time.monotonic() - began
    outcome = "rtsp" if "rtsp" in of_client else "translated"
    key = f'millpond_intercepted_connections_total{{outcome="{outcome}"}}'
    deadline = time.monotonic() + 5
    while way.metrics()[key] <= before[key] and time.monotonic() < deadline:
        time.sleep(0.1)
    sent, got = pictures(file), pictures(name) if name.exists() else []
    exact = got == sent[:written]
    return {"client": of_client, "server": of_server, "pictures": len(got), "of": written, "exact": exact, "seconds": round(seconds, 1),
            "intercepted": way.metrics()[key] > before[key], "said": "" if exact else said[-500:]}


def measure(options) -> list:
    results = []
    with Routed(TARGET / "bench/transparent") as way:
        files = clips(way.work / "media")
        for name, file in files.items():
            if name == "gst":
                server = way.start("server", "/usr/bin/python3", TOP / "gst_server.py", file.parent, "--address", SERVER, "--port", 554, log="gst.log")
            elif options.live555:
                server = way.start("server", options.live555.resolve(), cwd=file.parent, log="live555.log")
            else:
                print("live555 is left out: --live555 names its program", file=sys.stderr)
                continue
            way.listens("server", 554)
            edge = way.intercept(options.bin)
            for of_client in options.clients.split(","):
                openrtsp = options.live555 and options.live555.resolve().parent.parent / "testProgs/openRTSP"
                if of_client.startswith("openrtsp") and not openrtsp:
                    continue
                results.append(pair(way, of_client, name, file, openrtsp))
                print(results[-1], flush=True)
            way.stop(edge)
            way.route()
            way.stop(server)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="(%(default)s)")
    parser.add_argument("--live555", type=Path, help="live555MediaServer")
    parser.add_argument("--clients", default="curl,ffmpeg,vlc,rtsp-udp,rtsp-tcp,openrtsp-udp,openrtsp-tcp", help="(%(default)s)")
    parser.add_argument("--json", type=Path, help="file of the result")
    options = parser.parse_args()
    results = measure(options)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    bad = [result for result in results if not (result["exact"] and result["intercepted"])]
    print(f"{len(results) - len(bad)} of {len(results)} pairs have every picture that the player has of the file itself, exactly")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
