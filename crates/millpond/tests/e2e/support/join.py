"""Joins progressive MP4 files into one whose tracks have a sample entry of each file, as `MP4Box -cat` does.

Usage: join.py OUT IN IN...
The files have the same tracks in the same order. A track keeps the clock and the edit list of the first file; times of
other clocks are converted.
"""

import struct
import sys


def boxes(data, at=0, end=None):
    """Yields type, start of the body and end of each box."""
    end = len(data) if end is None else end
    while at < end:
        size, kind = struct.unpack_from(">I4s", data, at)
        header = 8
        if size == 1:
            size, header = struct.unpack_from(">Q", data, at + 8)[0], 16
        yield kind, at + header, at + size
        at += size


def find(data, path, at=0, end=None):
    """Returns the body of the first box of a path such as b"moov/mvhd"; empty where there is none."""
    for kind in path.split(b"/"):
        at, end = next(((a, e) for k, a, e in boxes(data, at, end) if k == kind), (0, 0))
    return data[at:end]


def box(kind, *parts):
    body = b"".join(parts)
    return struct.pack(">I4s", len(body) + 8, kind) + body


def words(data, count, at=0):
    return list(struct.unpack_from(f">{count}I", data, at))


def table(data, width):
    """Returns the rows of a counted table in a full box."""
    if not data:
        return []
    (count,) = struct.unpack_from(">I", data, 4)
    return [words(data, width, 8 + 4 * width * n) for n in range(count)]


def counted(kind, rows, version=0):
    flat = [word for row in rows for word in row]
    return box(kind, bytes([version, 0, 0, 0]), struct.pack(f">I{len(flat)}I", len(rows), *flat))


class Track:
    """One track of a file: its sample entry, and its samples as (bytes, duration, composition, sync)."""

    def __init__(self, data, trak):
        self.trak = trak
        mdia = find(trak, b"mdia")
        stbl = find(mdia, b"minf/stbl")
        self.clock = words(find(mdia, b"mdhd"), 1, 12)[0]
        self.entry = find(stbl, b"stsd")[8:]
        edits = table(find(trak, b"edts/elst"), 3)
        self.begin = edits[-1][1] if edits else 0
        durations = [d for count, d in table(find(stbl, b"stts"), 2) for _ in range(count)]
        offsets = [c for count, c in table(find(stbl, b"ctts"), 2) for _ in range(count)] or [0] * len(durations)
        sync = find(stbl, b"stss")
        keys = {row[0] for row in table(sync, 1)}
        stsz = find(stbl, b"stsz")
        size, count = words(stsz, 2, 4)
        sizes = [size] * count if size else words(stsz, count, 12)
        places = [row[0] for row in table(find(stbl, b"stco"), 1)]
        shapes = table(find(stbl, b"stsc"), 3)
        bounds = shapes[1:] + [[len(places) + 1, 0, 0]]
        self.samples = []
        for (first, each, _), (end, _, _) in zip(shapes, bounds):
            for chunk in range(first, end):
                at = places[chunk - 1]
                for _ in range(each):
                    n = len(self.samples)
                    is_key = not sync or n + 1 in keys
                    self.samples.append((data[at : at + sizes[n]], durations[n], offsets[n], is_key))
                    at += sizes[n]


def tracks(path):
    data = open(path, "rb").read()
    moov = find(data, b"moov")
    return moov, [Track(data, moov[a:e]) for kind, a, e in boxes(moov) if kind == b"trak"]


def tables(parts, chunks):
    """Returns the `stbl` of a track: `parts` are its tracks in the files, `chunks` the offsets of their samples."""
    clock = parts[0].clock
    entries = []
    for part in parts:
        if part.entry not in entries:
            entries.append(part.entry)
    samples, shapes = [], []
    for number, part in enumerate(parts, 1):
        scale = lambda ticks: ticks * clock // part.clock
        # Each file begins where its edit list says.
        shift = parts[0].begin - scale(part.begin)
        at = 0
        for data, duration, offset, key in part.samples:
            # Rounded times, so that they do not drift.
            samples.append((data, scale(at + duration) - scale(at), scale(offset) + shift, key))
            at += duration
        shapes.append([number, len(part.samples), entries.index(part.entry) + 1])
    has_offsets = any(offset for _, _, offset, _ in samples)
    keys = [[n] for n, (_, _, _, key) in enumerate(samples, 1) if key]
    sizes = [len(data) for data, _, _, _ in samples]
    return sum(duration for _, duration, _, _ in samples), [
        box(b"stsd", struct.pack(">II", 0, len(entries)), *entries),
        counted(b"stts", [[1, duration] for _, duration, _, _ in samples]),
        counted(b"ctts", [[1, offset % (1 << 32)] for _, _, offset, _ in samples], 1) if has_offsets else b"",
        counted(b"stss", keys) if len(keys) < len(samples) else b"",
        counted(b"stsc", shapes),
        box(b"stsz", struct.pack(f">III{len(sizes)}I", 0, 0, len(sizes), *sizes)),
        counted(b"stco", [[offset] for offset in chunks]),
    ]


def edited(edits, ticks):
    """Returns an edit list with the movie duration `ticks` in its last entry."""
    if not edits:
        return b""
    elst = bytearray(find(edits, b"elst"))
    (count,) = struct.unpack_from(">I", elst, 4)
    struct.pack_into(">I", elst, 8 + 12 * (count - 1), ticks)
    return box(b"edts", box(b"elst", bytes(elst)))


def joined_trak(movie_clock, parts, chunks):
    first = parts[0]
    duration, stbl = tables(parts, chunks)
    ticks = duration * movie_clock // first.clock
    mdia = find(first.trak, b"mdia")
    minf = find(mdia, b"minf")
    mdhd = bytearray(find(mdia, b"mdhd"))
    struct.pack_into(">I", mdhd, 16, duration)
    heads = [box(kind, minf[a:e]) for kind, a, e in boxes(minf) if kind != b"stbl"]
    media = [box(b"mdhd", bytes(mdhd)), box(b"hdlr", find(mdia, b"hdlr")), box(b"minf", *heads, box(b"stbl", *stbl))]
    edits = edited(find(first.trak, b"edts"), ticks)
    return box(b"trak", box(b"tkhd", find(first.trak, b"tkhd")), edits, box(b"mdia", *media))


def main(out, paths):
    files = [tracks(path) for path in paths]
    moov = files[0][0]
    mvhd = find(moov, b"mvhd")
    ftyp = box(b"ftyp", b"isom\0\0\2\0isomiso2mp41")

    def movie(start):
        places, at = {}, start
        for file, (_, parts) in enumerate(files):
            for number, part in enumerate(parts):
                places[number, file] = at
                at += sum(len(sample[0]) for sample in part.samples)
        traks = []
        for number in range(len(files[0][1])):
            parts = [file[1][number] for file in files]
            traks.append(joined_trak(words(mvhd, 1, 12)[0], parts, [places[number, file] for file in range(len(files))]))
        return box(b"moov", box(b"mvhd", mvhd), *traks)

    start = len(ftyp) + len(movie(0)) + 8
    media = [sample[0] for _, parts in files for part in parts for sample in part.samples]
    with open(out, "wb") as file:
        file.write(ftyp + movie(start) + box(b"mdat", *media))


main(sys.argv[1], sys.argv[2:])
