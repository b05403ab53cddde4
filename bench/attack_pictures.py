"""Thumbnails of films whose key frames are full of parameter sets, while a stranger asks for playlists."""

import contextlib
import http.client
import os
import struct
import threading
import time
from pathlib import Path

from media import ffmpeg

SETS_BYTES = 8 << 20
PICTURES = 8
FILMS = 200
FRESH = 3000


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I4s", len(body) + 8, kind) + body


def full(kind: bytes, *parts: bytes, flags: int = 0) -> bytes:
    return box(kind, struct.pack(">I", flags), *parts)


def exp_golomb(value: int) -> str:
    digits = f"{value + 1:b}"
    return "0" * (len(digits) - 1) + digits


def picture_set(number: int) -> bytes:
    """A picture parameter set (ITU-T H.264 7.3.2.2) of the sequence parameter set 0."""
    bits = exp_golomb(number) + "1" + "0" + "0" + "1" * 3 + "0" + "00" + "1" * 3 + "000" + "1"
    bits += "0" * (-len(bits) % 8)
    return b"\x68" + int(bits, 2).to_bytes(len(bits) // 8, "big")


def nal(unit: bytes) -> bytes:
    return struct.pack(">I", len(unit)) + unit


def film(folder: Path) -> Path:
    """A film of key frames: as many parameter sets as 8 MB have, and a slice."""
    stream = folder / "key.h264"
    ffmpeg(
        "-f", "lavfi", "-i", "testsrc2=s=640x360:r=1", "-frames:v", 1, "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p",
        "-x264-params", "slices=1:threads=1:info=0", "-bsf:v", "filter_units=remove_types=6", "-f", "h264", stream,
    )
    units = [unit for unit in stream.read_bytes().replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1") if unit]
    sequence, picture, slices = (next(unit for unit in units if unit[0] & 31 == kind) for kind in (7, 8, 5))
    sets = b"".join(nal(picture_set(number)) for number in range(1, 256))
    sample = sets * (SETS_BYTES // len(sets)) + nal(slices)
    avcc = box(
        b"avcC", b"\1" + sequence[1:4] + b"\xff\xe1", struct.pack(">H", len(sequence)), sequence, b"\1", struct.pack(">H", len(picture)), picture,
    )
    entry = box(b"avc1", bytes(6), struct.pack(">H", 1), bytes(16), struct.pack(">HH", 640, 360), bytes(50), avcc)
    start = box(b"ftyp", b"isom", bytes(4), b"isomavc1")
    identity = struct.pack(">9i", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    length = PICTURES * 2000
    tables = box(
        b"stbl", full(b"stsd", struct.pack(">I", 1), entry), full(b"stts", struct.pack(">III", 1, PICTURES, 2000)),
        full(b"stsc", struct.pack(">IIII", 1, 1, 1, 1)), full(b"stsz", struct.pack(">II", len(sample), PICTURES)),
        full(b"stco", struct.pack(">I", PICTURES), *(struct.pack(">I", len(start) + 8 + number * len(sample)) for number in range(PICTURES))),
    )
    media = box(
        b"mdia", full(b"mdhd", struct.pack(">IIIIHH", 0, 0, 1000, length, 0x55C4, 0)),
        full(b"hdlr", bytes(4), b"vide", bytes(13)),
        box(b"minf", full(b"vmhd", bytes(8), flags=1), box(b"dinf", full(b"dref", struct.pack(">I", 1), full(b"url ", flags=1))), tables),
    )
    track = box(
        b"trak", full(b"tkhd", struct.pack(">IIIII", 0, 0, 1, 0, length), bytes(16), identity, struct.pack(">II", 640 << 16, 360 << 16), flags=3), media,
    )
    head = full(b"mvhd", struct.pack(">IIIIIH", 0, 0, 1000, length, 1 << 16, 256), bytes(10), identity, bytes(24), struct.pack(">I", 2))
    made = folder / "sets.mp4"
    made.write_bytes(start + box(b"mdat", sample * PICTURES) + box(b"moov", head, track))
    return made


def links(of: Path, folder: Path, count: int):
    """Other names of a file: an asset each."""
    folder.mkdir(exist_ok=True)
    for number in range(count):
        with contextlib.suppress(FileExistsError):
            os.link(of, folder / f"film{number}.mp4")


def playlists(target, stop, took: list):
    """A stranger who asks for playlists of films that nobody has asked for, ten a second."""
    for number in range(FRESH):
        if stop.wait(0.1):
            return
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", target.http, timeout=60, source_address=("127.0.0.3", 0))
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", f"/fresh/film{number}.mp4/index.m3u8")
            connection.getresponse().read()
        took.append(time.monotonic() - began)
        connection.close()


def thumbnails(target, stop, extras):
    """One client asks for sheets and pictures of many films, eight at once, and hangs up after two seconds each."""
    took, turn = [], iter(range(1 << 30))
    threading.Thread(target=playlists, args=(target, stop, took), daemon=True).start()

    def client():
        while not stop.is_set():
            number = next(turn)
            connection = http.client.HTTPConnection("127.0.0.1", target.http, timeout=2, source_address=("127.0.0.9", 0))
            with contextlib.suppress(OSError, http.client.HTTPException):
                picture = "sheet1.jpg" if number % 2 == 0 else f"i{number % PICTURES + 1}.jpg"
                connection.request("GET", f"/sets/film{number % FILMS}.mp4/v1/{picture}")
                connection.getresponse().read()
            connection.close()

    running = [threading.Thread(target=client, daemon=True) for _ in range(8)]
    for thread in running:
        thread.start()
    while not stop.wait(0.2):
        if took:
            extras.measured = {"playlists of a stranger": len(took), "the longest, ms": round(max(took) * 1000, 1)}


def folders(work: Path) -> dict:
    """Places of the films of the attack, and of those of the stranger."""
    work.mkdir(exist_ok=True)
    made = work / "sets.mp4"
    links(made if made.exists() else film(work), work / "sets", FILMS)
    links(work.parent / "site/a.mp4", work / "fresh", FRESH)
    return {"sets": work / "sets", "fresh": work / "fresh"}


thumbnails.folders = folders
thumbnails.own_files = True
