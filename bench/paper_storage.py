#!/usr/bin/env python3
"""Storages as Srinilta and Choudhary had them: a folder over HTTP, each object striped over disks that serve one request after the other.

    bench/paper_storage.py FOLDER PORT DISKS BYTES_A_SECOND

The disks are simulated, as in the paper: a unit of 512 KiB takes its disk as long as its bytes take at the rate. The bytes are real.
"""

import asyncio
import os
import re
import sys
import zlib
from pathlib import Path

UNIT = 512 << 10


class Disks:
    def __init__(self, count: int, rate: float):
        self.free, self.rate = [0.0] * count, rate

    async def read(self, name: str, start: int, length: int):
        """Waits until a part of a unit has been read."""
        loop = asyncio.get_running_loop()
        at = (zlib.crc32(name.encode()) + start // UNIT) % len(self.free)
        self.free[at] = max(loop.time(), self.free[at]) + length / self.rate
        await asyncio.sleep(self.free[at] - loop.time())


async def answer(folder: Path, disks: Disks, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    loop = asyncio.get_running_loop()
    try:
        while line := await reader.readline():
            method, path, _ = line.decode().split(" ", 2)
            headers = {}
            while field := (await reader.readline()).strip():
                name, value = field.decode().split(":", 1)
                headers[name.lower()] = value.strip()
            file = folder / path.lstrip("/")
            if not file.is_file():
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            size = file.stat().st_size
            found = re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("range", ""))
            first, last = (int(found[1]), min(int(found[2] or size - 1), size - 1)) if found else (0, size - 1)
            status = f"206 Partial Content\r\nContent-Range: bytes {first}-{last}/{size}" if found else "200 OK"
            writer.write(f'HTTP/1.1 {status}\r\nContent-Length: {last - first + 1}\r\nETag: "1"\r\nAccept-Ranges: bytes\r\n\r\n'.encode())
            if method == "HEAD":
                continue
            with file.open("rb") as bytes_of:
                while first <= last:
                    part = min(last + 1, (first // UNIT + 1) * UNIT) - first
                    await disks.read(path, first, part)
                    await writer.drain()
                    await loop.sendfile(writer.transport, bytes_of, first, part)
                    first += part
    except (OSError, ValueError, asyncio.IncompleteReadError, RuntimeError):
        pass
    finally:
        writer.close()


async def main():
    folder, port, count, rate = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    disks = Disks(count, rate)
    server = await asyncio.start_server(lambda *ends: answer(folder, disks, *ends), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    os.nice(-5) if os.geteuid() == 0 else None
    asyncio.run(main())
