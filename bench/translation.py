#!/usr/bin/env python3
"""The figures of the translation paper (Espeland et al., ACM Multimedia 2007), measured of Millpond.

    cargo build --release -p millpond -p millpond-link
    bench/translation.py 3          # Fig. 3: bandwidth over loss and delay between server and proxy
    bench/translation.py 4          # Fig. 4: loss and delay between proxy and client
    bench/translation.py 5          # Fig. 5: interarrival times of packets, over the same network as Fig. 4
    bench/translation.py 3 --quick

Two namespaces are joined by a bad network (millpond-link). Fig. 3: a server on the far side, on the near side Millpond and a viewer
without loss. End to end, a web server sends fragmented MP4 at the media's rate by TCP (cubic, BBR). Translated, gst-rtsp-server
sends RTP by UDP and Millpond answers `GET /cams/clip.mp4/stream.mp4`, with and without retransmission. Fig. 4 and 5: server and Millpond
on one side, the viewer behind the bad network, by TCP or by RTSP over UDP with and without TFRC. A frame is shown in time if it decodes exactly and a player with a second of
buffer (HLS: six) has it when it is due. Needs root.
"""

import argparse
import concurrent.futures
import itertools
import json
import sys
from pathlib import Path

import arrivals
import media
import translation_figures
from compare import TARGET
from translation_runs import FPS, RATE, WORK, ClientSide, Run, ServerSide

KINDS = {"3": ServerSide, "4": ClientSide, "5": ClientSide}


def clip(seconds: int) -> tuple:
    """Pictures that are all different at 2 Mbit/s, a key frame a second: as a file for gst-rtsp-server and as fragments of a frame."""
    file, fragments = WORK / f"site{seconds}/clip.mp4", WORK / f"clip{seconds}.frag.mp4"
    if not fragments.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        media.ffmpeg(
            "-f", "lavfi", "-i", f"testsrc2=s=640x360:r={FPS},noise=alls=30:allf=t", "-t", seconds, "-c:v", "libx264", "-preset", "veryfast",
            "-pix_fmt", "yuv420p", "-bf", 0, "-g", FPS, "-keyint_min", FPS, "-sc_threshold", 0,
            "-b:v", RATE, "-minrate", RATE, "-maxrate", RATE, "-bufsize", RATE // 4, "-movflags", "+faststart", file,
        )
        media.ffmpeg("-i", file, "-c", "copy", "-movflags", "empty_moov+default_base_moof+frag_every_frame", fragments)
    return file, fragments


def grid(options) -> list:
    """All runs of a figure."""
    kind = KINDS[options.figure]
    known = kind.ways(options.bin)
    ways = [way for way in (options.ways.split(",") if options.ways else kind.WAYS) if way in known]
    points = [{"delay": int(delay), "loss": float(loss)} for delay in options.delays.split(",") for loss in options.losses.split(",")]
    every = itertools.product(points, range(1, options.runs + 1), ways)
    return [kind(way, point, number, options) for point, number, way in every]


def run_all(cells: list, options) -> list:
    """Runs some cells at a time: each has namespaces of its own. Frames are compared when no run can be disturbed by it."""
    if not options.again:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(Run.measure, cells))
    source, results = arrivals.Source(options.clip, FPS), []
    for cell in cells:
        result = cell.judge(source)
        results.append(result)
        told = result["problem"] or ", ".join(f"{name} {result[name]:.3g}" for name in ("mean", "variation", "whole") if result[name] is not None)
        print(f"{cell.way:6} {cell.point}: {told}", file=sys.stderr, flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", choices=list(KINDS), help="number of the figure")
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--ways", help="of cubic, bbr, and for Fig. 3 plain, rtx, else stream, hls, rtp, tfrc (all)")
    parser.add_argument("--delays", default="0,50,100,150,200", help="milliseconds each way (%(default)s)")
    parser.add_argument("--losses", default="0,0.25,0.5,0.75,1", help="percent (%(default)s)")
    parser.add_argument("--round-trip", action="store_true", help="delays are those of the round trip")
    parser.add_argument("--seconds", type=float, default=32, help="measured of each (%(default)s)")
    parser.add_argument("--runs", type=int, default=1, help="of each, with other seeds (%(default)s)")
    parser.add_argument("--jobs", type=int, default=4, help="runs at a time (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="the corners of the grid, 12 s each")
    parser.add_argument("--from-json", type=Path, nargs="+", help="draw the runs of these files instead of measuring")
    parser.add_argument("--keep", action="store_true", help="keep the fetched streams, for --again")
    parser.add_argument("--again", action="store_true", help="compare streams that were kept, without fetching")
    parser.add_argument("--json", type=Path, help="write all figures too")
    parser.add_argument("--out", type=Path, default=WORK / "plots", help="folder of the plots (%(default)s)")
    options = parser.parse_args()
    if options.quick:
        options.delays, options.losses, options.seconds = "0,200", "0,1", 12
    options.clip, options.fragments = clip(max(60, int(options.seconds) + 20))
    results = [one for file in options.from_json for one in json.loads(file.read_text())] if options.from_json else run_all(grid(options), options)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results) + "\n")
    translation_figures.draw(options.figure, results, options.out)
    return any(result["problem"] for result in results)


if __name__ == "__main__":
    sys.exit(main())
