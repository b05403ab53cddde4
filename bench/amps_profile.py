"""Where a server's CPU time is spent, by perf: samples of its threads, sorted by the functions that they are in."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

PIPES = "pipes between modules"
WAKES = "pipes: waking the other module"
NETWORK = "kernel: network protocols"
RECEPTION = "reception from the network"
PIPE = r"millpond-stream/src/graph/(pipe|fork)\.rs"
# In order: the first group that a stack fits has the sample. Each has words of functions' names and source files.
GROUPS = [
    ("kernel: copies to and from it", r"^copy_(from|to|user)|^_copy_(from|to)|^rep_movs|^csum_and_copy|copy_datagram"),
    (NETWORK, r"^__sys_(send|recv)|^net_rx_action|^(udp|tcp|ip)_|^sock_"),
    ("kernel: sleeping and waking threads", r"futex|epoll|eventfd|hrtimer|nanosleep|^_*schedule$"),
    ("kernel: the rest", r"^entry_SYSCALL|^do_syscall_64|^asm_|^ret_from_fork"),
    ("copies in memory", r"^_*mem(move|cpy|set)"),
    (RECEPTION, r"millpond-stream/src/reception/"),
    ("transmission: rounds and packets", r"millpond-stream/src/transmission/|millpond-rtp/src/"),
    ("loading: blocks from memory or cache", r"millpond-stream/src/|millpond-(store|library|media|package)/src/"),
    ("signalling: RTSP", r"millpond-server/src/rtsp/|rtsp-types|sdp-types"),
]
REST = "the rest: allocation, runtime, logging"
# Bytes of stack that each sample keeps for unwinding: enough for the innermost frames, which decide.
STACK = 8192
HERTZ = 3997


def names_of_groups() -> list:
    """All groups, in the order of tables."""
    return [PIPES, WAKES, *(name for name, _ in GROUPS), REST]


def missing(binary: Path) -> str | None:
    """What is missing for a profile."""
    if not shutil.which("perf"):
        return "perf is not installed"
    if not binary.exists():
        return f"{binary} is not there: cargo build --profile profiling -p millpond"
    sections = subprocess.run(["readelf", "-SW", binary], capture_output=True, text=True).stdout
    return None if ".debug_line" in sections else f"{binary} has no line tables: cargo build --profile profiling -p millpond"


def record(pid: int, seconds: float, path: Path):
    """Records a process."""
    what = ["-e", "cpu-clock", "-F", HERTZ, "--call-graph", f"dwarf,{STACK}", "-p", pid]
    command = ["perf", "record", "-q", *what, "-o", path, "--", "sleep", seconds]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def stacks(path: Path):
    """Samples of a recording: frames from the innermost one, each with its place in its file, and the names of function and file."""
    command = ["perf", "script", "-i", path, "--no-inline", "-F", "comm,tid,ip,sym,dso"]
    text = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout
    for block in text.split("\n\n"):
        lines = [line.split(None, 1) for line in block.splitlines() if line.startswith((" ", "\t"))]
        frames = [(int(line[0], 16), line[1]) for line in lines if len(line) == 2 and re.fullmatch("[0-9a-f]+", line[0])]
        if frames:
            yield frames


def segments(binary: Path) -> list:
    """The parts of a program that are loaded: place in the file, address, length."""
    text = subprocess.run(["readelf", "-lW", binary], check=True, capture_output=True, text=True).stdout
    found = [line.split() for line in text.splitlines() if line.split()[:1] == ["LOAD"]]
    return [(int(words[1], 16), int(words[2], 16), int(words[4], 16)) for words in found]


def names(binary: Path, places: list) -> dict:
    """Functions at places of a program's file, the innermost inlined one first: each as its name and its source file."""
    parts = segments(binary)
    address = lambda place: next((place - start + at for start, at, length in parts if start <= place < start + length), place)
    asked = {address(place): place for place in places}
    command = ["addr2line", "-a", "-f", "-i", "-C", "-e", str(binary)]
    text = subprocess.run(command, input="\n".join(map(hex, asked)), check=True, capture_output=True, text=True).stdout
    found, current, lines = {}, [], iter(text.splitlines())
    for line in lines:
        if re.fullmatch("0x[0-9a-f]+", line):
            current = found.setdefault(asked[int(line, 16)], [])
        else:
            current.append(f"{line} {next(lines, '').split(':')[0]}")
    return found


def group(stack: list) -> str:
    """The group of a stack."""
    kind = next((name for name, words in GROUPS if any(re.search(words, function) for function in stack)), REST)
    if any(re.search(PIPE, function) for function in stack):
        return WAKES if kind.startswith("kernel") or any("wake" in function for function in stack) else PIPES
    return kind


def shares(path: Path, binary: Path) -> dict:
    """Percent of the samples by group, and by innermost function of pipes."""
    samples, program = list(stacks(path)), f"({binary.resolve()})"
    # Callers' places are those of returns.
    own = lambda number, frame: frame[0] - (1 if number else 0)
    known = names(binary, sorted({own(number, frame) for frames in samples for number, frame in enumerate(frames) if frame[1].endswith(program)}))
    groups, inner = Counter(), Counter()
    for frames in samples:
        stack = []
        for number, frame in enumerate(frames):
            stack += known.get(own(number, frame), []) if frame[1].endswith(program) else [frame[1].rsplit(" (", 1)[0]]
        groups[group(stack)] += 1
        inner.update([function for function in stack if re.search(PIPE, function)][:1])
    percent = lambda counts: {name: 100 * count / max(1, len(samples)) for name, count in counts.most_common()}
    return {"samples": len(samples), "groups": percent(groups), "inner": percent(inner)}
