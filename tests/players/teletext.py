"""Writes a transport stream with teletext alone, from the tables of EN 300 706 and EN 300 472: page 888 in French shows a text in some
seconds. Usage: teletext.py FILE SECONDS FROM-TO...; the first time stamp is 10 s."""

import sys

HAMMING = bytes.fromhex("150249 5e6473382fd0c78c9ba1b6fdea".replace(" ", ""))
TEXT = b"Bonjour @ tous"  # "@" is "à" in the French set.
counters = {}


def parity(byte):
    return byte | (0 if byte.bit_count() % 2 else 0x80)


def unit(number, body):
    """A data unit with a packet of magazine 8: bits are sent last first."""
    address = bytes([HAMMING[(number & 1) << 3], HAMMING[number >> 1]])
    return b"\x03\x2c\xe7\xe4" + bytes(int(f"{byte:08b}"[::-1], 2) for byte in address + body)


def header(page, erase):
    """Control bits C4 (erase), C6 (subtitle), C11 (serial) and C12 (French)."""
    fields = (page & 15, page >> 4, 0, 8 if erase else 0, 0, 8, 0, 3)
    return unit(0, bytes(HAMMING[field] for field in fields) + bytes([parity(32)] * 32))


def packet(pid, payload, start, clock=None):
    number = counters.get(pid, 0)
    if payload:
        counters[pid] = (number + 1) & 15
    field = b"" if clock is None else b"\x10" + ((clock << 15) | 0x7E00).to_bytes(6, "big")
    room = 184 - len(payload) - 1
    if field or room >= 0:
        field = field or b"\0"[: min(room, 1)]
        field = bytes([room]) + field + b"\xff" * (room - len(field))
    control = (0x20 if field else 0) | (0x10 if payload else 0)
    return bytes([0x47, (0x40 if start else 0) | pid >> 8, pid & 255, control | number]) + field + payload


def section(pid, table, extension, body):
    data = bytes([table]) + (0xB009 + len(body)).to_bytes(2, "big") + extension.to_bytes(2, "big") + b"\xc1\0\0" + body
    check = 0xFFFFFFFF
    for byte in data:
        check ^= byte << 24
        for _ in range(8):
            check = (check << 1 ^ (0x104C11DB7 if check >> 31 else 0)) & 0xFFFFFFFF
    return packet(pid, b"\0" + data + check.to_bytes(4, "big"), True)


def pes(time, units):
    stamp = bytes([0x21 | time >> 29 & 14, time >> 22 & 255, time >> 14 & 254 | 1, time >> 7 & 255, time << 1 & 254 | 1])
    data = b"\x10" + b"".join(units) + (b"\xff\x2c" + b"\xff" * 44) * (-(len(units) + 1) % 4)
    data = b"\0\0\1\xbd" + (len(data) + 39).to_bytes(2, "big") + b"\x84\x80\x24" + stamp + b"\xff" * 31 + data
    return b"".join(packet(0x102, data[at : at + 184], at == 0) for at in range(0, len(data), 184))


shown = [tuple(map(int, pair.split("-"))) for pair in sys.argv[3:]]
row = unit(22, bytes(map(parity, (b" " * 9 + b"\x03\x0b\x0b" + TEXT + b"\x0a\x0a").ljust(40))))
out = b""
for frame in range(int(sys.argv[2]) * 25):
    time = 900_000 + frame * 3600
    if frame % 5 == 0:
        out += section(0, 0, 1, b"\0\1\xe1\0")
        out += section(0x100, 2, 1, b"\xe1\1\xf0\0\x06\xe1\2\xf0\x07\x56\x05fra\x10\x88")
    out += packet(0x101, b"", False, time - 3600)
    begins, ends = ([pair[at] * 25 == frame for pair in shown] for at in (0, 1))
    if any(begins) or any(ends):
        out += pes(time, [header(0x88, True)] + [row] * any(begins) + [header(0xFF, False)])
    else:
        out += pes(time, [])
open(sys.argv[1], "wb").write(out)
