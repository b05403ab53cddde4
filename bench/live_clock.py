"""A publisher whose pictures carry the time at which they were made, and which the encoder gets at that time."""

import array
import math
import os
import subprocess
import threading
import time
from pathlib import Path

WIDTH, HEIGHT, FPS = 320, 180, 25
COLUMNS, ROWS = 8, 4
RATE = 48_000
# Milliseconds of a day need 27 bits; the other 5 are their remainder by 31.
DAY = 86_400_000


def picture(milliseconds: int) -> bytes:
    """Grey and two colour planes (4:2:0) of a picture with a time of the day in UTC."""
    code = (milliseconds << 5) | (milliseconds % 31)
    rows = []
    for row in range(ROWS):
        cells = [b"\xeb" if code >> (31 - row * COLUMNS - column) & 1 else b"\x10" for column in range(COLUMNS)]
        line = b"".join(cell * (WIDTH // COLUMNS) for cell in cells)
        rows.append(line * (HEIGHT // ROWS))
    return b"".join(rows) + b"\x80" * (WIDTH * HEIGHT // 2)


def tone(frame: int) -> bytes:
    """Sound of the length of a picture: 440 Hz, 16 bits, one channel."""
    count = RATE // FPS
    first = frame * count
    return array.array("h", (round(3000 * math.sin(math.tau * 440 * (first + n) / RATE)) for n in range(count))).tobytes()


class Publisher:
    """ffmpeg that encodes such pictures, with sound, and pushes them by RTSP over TCP, started by the command `within`. Use it in a `with`."""

    def __init__(self, url: str, log: Path, key_seconds: float = 2, within: tuple = ()):
        sound_out, self.sound = os.pipe()
        picture_out, self.picture = os.pipe()
        key = round(key_seconds * FPS)
        # Both inputs are taken as they are told: looking ahead in one of them would wait for the other.
        quick = ["-fflags", "nobuffer", "-probesize", "32", "-analyzeduration", "0"]
        command = [*within, "ffmpeg", "-v", "warning", "-nostdin", *quick]
        command += ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{WIDTH}x{HEIGHT}", "-r", str(FPS), "-i", f"pipe:{picture_out}"]
        command += [*quick, "-f", "s16le", "-ar", str(RATE), "-ac", "1", "-i", f"pipe:{sound_out}"]
        command += ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-sc_threshold", "0", "-g", str(key)]
        command += ["-threads", "1", "-c:a", "aac", "-b:a", "64k", "-f", "rtsp", "-rtsp_transport", "tcp", url]
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, pass_fds=(picture_out, sound_out))
        for end in (picture_out, sound_out):
            os.close(end)
        self.ends = threading.Event()
        self.late = 0.0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.process.kill()
        self.process.wait()
        self.thread.join(5)
        for end in (self.picture, self.sound):
            os.close(end)

    def run(self):
        """Writes each picture at its time. A picture tells the time at which it was due."""
        tones = [tone(frame) for frame in range(FPS)]
        began, frame = time.time(), 0
        try:
            while not self.ends.is_set():
                due = began + frame / FPS
                time.sleep(max(0.0, due - time.time()))
                self.late = max(self.late, time.time() - due)
                write(self.sound, tones[frame % FPS])
                write(self.picture, picture(round(due * 1000) % DAY))
                frame += 1
        except BrokenPipeError:
            pass


def write(descriptor: int, data: bytes):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view):]
