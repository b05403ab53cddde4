"""Test titles for the benches, made once with ffmpeg and kept."""

import shutil
import subprocess
from pathlib import Path

SEGMENT_SECONDS = 4
FPS = 25

# Both titles are one minute, encoded once and repeated without encoding.
TITLE = {
    # 4 s at 2.2 Mbit/s make a video segment of about 1.1 MB. The noise keeps the encoder at its bitrate.
    "minutes": 10,
    "video": "testsrc2=s=1280x720:r=25,noise=alls=20:allf=t",
    "rate": ["-b:v", "2200k", "-maxrate", "2200k", "-bufsize", "2200k"],
}
FILM = {
    "minutes": 120,
    "video": "testsrc2=s=160x90:r=25",
    "rate": ["-b:v", "40k", "-maxrate", "40k", "-bufsize", "40k"],
}


def ffmpeg(*arguments):
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *map(str, arguments)], check=True)


def titles(clip: Path, site: Path, count: int):
    """Many titles of one clip, by hard links: 1.mp4 and so on."""
    site.mkdir(parents=True, exist_ok=True)
    for number in range(1, count + 1):
        path = site / f"{number}.mp4"
        if not path.exists():
            path.hardlink_to(clip)


def make(recipe, target: Path):
    """Writes a title as one progressive MP4, unless it is there."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    work = target.with_suffix(".work")
    work.mkdir(exist_ok=True)
    print(f"making {target} ({recipe['minutes']} minutes)", flush=True)
    gop = SEGMENT_SECONDS * FPS
    ffmpeg(
        "-f", "lavfi", "-i", recipe["video"], "-f", "lavfi", "-i", "sine=440:r=48000", "-t", 60,
        "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", *recipe["rate"],
        "-g", gop, "-keyint_min", gop, "-sc_threshold", 0, "-c:a", "aac", "-b:a", "128k", work / "minute.mp4",
    )
    (work / "list.txt").write_text("file minute.mp4\n" * recipe["minutes"])
    ffmpeg(
        "-f", "concat", "-i", work / "list.txt", "-c", "copy", "-movflags", "+faststart", work / "whole.mp4",
    )
    (work / "whole.mp4").rename(target)
    shutil.rmtree(work)


def make_all(folder: Path):
    """The folder that is served, with `a.mp4` (10 minutes, 720p) and `film.mp4` (2 hours, tiny)."""
    make(TITLE, folder / "a.mp4")
    make(FILM, folder / "film.mp4")


def stand_in(media: Path, site: Path):
    """Packages the titles with ffmpeg under the URLs our server has, so that the bench can be tried without it."""
    if (site / "complete").exists():
        return
    print(f"packaging {media} to {site} with ffmpeg", flush=True)
    shutil.rmtree(site, ignore_errors=True)
    for title, kind, name in [("a.mp4", "fmp4", "v1"), ("a.mp4", "mpegts", "ts/v1"), ("film.mp4", "fmp4", "v1")]:
        folder = site / title / name
        folder.mkdir(parents=True)
        suffix = "ts" if kind == "mpegts" else "m4s"
        ffmpeg(
            "-i", media / title, *(["-map", "0:v"] if kind == "fmp4" else []), "-c", "copy",
            "-f", "hls", "-hls_time", SEGMENT_SECONDS, "-hls_playlist_type", "vod", "-start_number", 1,
            "-hls_segment_type", kind, "-hls_fmp4_init_filename", "init.mp4",
            "-hls_segment_filename", folder / f"%d.{suffix}", folder / "index.m3u8",
        )
    master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2400000,RESOLUTION=1280x720\nv1/index.m3u8\n"
    (site / "a.mp4/index.m3u8").write_text(master)
    (site / "a.mp4/index.mpd").write_text("<MPD>" + "x" * 1500 + "</MPD>\n")
    (site / "complete").touch()


def segments_of(playlist: str) -> int:
    """How many segments a media playlist lists."""
    count = playlist.count("#EXTINF:")
    if count == 0:
        raise ValueError("the media playlist lists no segments: " + playlist[:200])
    return count
