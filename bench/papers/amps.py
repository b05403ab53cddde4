"""The figures of the AMPS paper."""

import contextlib
import json
import statistics
import subprocess

import amps as stored
import amps_profile
import amps_tables
from compare import TOP
from papers.figure import Shown, figure
from papers.plot import Panel
from papers.reception import trial
from rtsp_capacity import make

RECEPTION = ("root", "ip", "ffmpeg")
FPS = {"V10": 10, "V100": 10, "V300": 15, "V1024": 30}


def clips(bench):
    """Makes AMPS's clips."""
    for name in stored.NAMES.values():
        make(name, bench.clips)


def received(bench, clip: str, viewers: int, transport: str = "udp", profile=None) -> dict:
    """One trial of received streams, measured once."""
    clips(bench)
    run = lambda: trial(bench, stored.NAMES[clip], viewers, transport, profile)
    return run() if profile else bench.measured(f"amps-{clip}-{viewers}-{transport}", run)


def quietly(bench, part, *arguments) -> list:
    """Results of a part of amps.py, which plays stored titles, with its settings. Its lines go into a log."""
    form = ["--quick"] if bench.options.quick else []
    options = stored.parse([*form, "--bin", str(bench.options.bin), *arguments])
    clips(bench)
    with (bench.work / "amps.log").open("w") as log, contextlib.redirect_stdout(log):
        return part(stored.Bench(options))


@figure("amps-table-2", *RECEPTION)
def data_plane(bench, stated) -> Shown:
    share = bench.pick(0.25, 1)
    rows = [received(bench, clip, round(streams * share)) for clip, streams in zip(stated["clips"], stated["streams"])]
    of = lambda key, factor=1.0: [row[key] * factor for row in rows]
    names = [f"{clip}\n{row['viewers']} streams" for clip, row in zip(stated["clips"], rows)]
    beside = "the paper's numbers" if share == 1 else f"{share * 100:g} % of the paper's numbers"
    theirs = lambda key: {"AMPS: Table 2" + ("" if share == 1 else f", {share * 100:g} % of it"): [value * share for value in stated[key]]}
    panels = [
        Panel("Bandwidth", f"clip, and streams ({beside})", "video forwarded, Mbit/s", names, {"Millpond": of("mbps")}, theirs("mbps"), bars=True),
        Panel("Packets", f"clip, and streams ({beside})", "packets forwarded a second", names, {"Millpond": of("packets")}, theirs("packets"), bars=True),
        Panel("CPU for these streams", f"clip, and streams ({beside})", "% of a core", names, {"Millpond: receiving and sending": of("cpu")},
              {} if share < 1 else {"AMPS: Pentium 4, full": [100] * len(rows)}, bars=True),
    ]
    ours = "; ".join(f"{clip} {row['viewers']:,} streams, {row['mbps']:.0f} Mbit/s, {row['cpu']:.0f} % of a core" for clip, row in zip(stated["clips"], rows))
    late = max(row["late"] + row["lost"] for row in rows)
    held = f"{'yes' if max(of('cpu')) < 100 * share else 'partly'}: {beside} take up to {max(of('cpu')):.0f} % of a core"
    return Shown(panels, f"{ours}; at most {late:.2f} % late or lost", held)


@figure("amps-2", *RECEPTION, "perf", "readelf", "profiled")
def profile(bench, stated) -> Shown:
    binary = bench.options.profiled
    lacks = amps_profile.missing(binary)
    if lacks:
        raise RuntimeError(lacks)
    recording = bench.work / "amps.perf"
    usual, bench.options.bin = bench.options.bin, binary
    try:
        found = received(bench, "V300", bench.pick(200, 600), profile=lambda server, seconds: amps_profile.record(server.process.pid, seconds - 2, recording))
    finally:
        bench.options.bin = usual
    shares = amps_profile.shares(recording, binary)
    busy = 100 - stated["idle"]
    theirs = {
        amps_profile.PIPES: stated["pipes"], amps_profile.NETWORK: stated["network"], "kernel: copies to and from it": stated["kernel-copies"],
        "kernel: the rest": stated["system-calls"], "copies in memory": stated["memory-copies"], "kernel: sleeping and waking threads": stated["threads"],
        amps_profile.RECEPTION: stated["reception"],
    }
    names = amps_profile.names_of_groups()
    own = [shares["groups"].get(name, 0.0) for name in names]
    panel = Panel(f"Busy CPU time, {found['viewers']} received sessions of V300", "functions (names of all groups are in bench/amps_profile.py)", "% of the busy time", amps_tables.SHORT,
                  {"Millpond": own}, {"AMPS: section 4.1, of the busy 66 %": [100 * theirs[name] / busy if name in theirs else None for name in names]}, bars=True)
    of = dict(zip(names, own))
    ours = f"network {of[amps_profile.NETWORK]:.0f} %, reception {of[amps_profile.RECEPTION]:.0f} %, pipes {of[amps_profile.PIPES] + of[amps_profile.WAKES]:.1f} % of the busy time; " \
           f"{found['cpu']:.0f} % of a core for {found['viewers']} sessions; {shares['samples']:,} samples"
    first = max(of, key=of.get)
    return Shown([panel], ours, "yes: network protocols take most" if first == amps_profile.NETWORK else f"partly: most is {first}")


@figure("amps-3", "ffmpeg")
def control_plane(bench, stated) -> Shown:
    rates = bench.pick("1,5,10,20,30,100", "1,5,10,20,30,100,300,1000")
    rows = quietly(bench, stored.signalling, "--rates", rates)
    at = [row["rate"] for row in rows]
    known = lambda value: [value if rate <= stated["most-rate"] else None for rate in at]
    across = "sessions that begin a second"
    first = rows[0]["cpu"] or 0.1
    panels = [
        Panel("CPU of signalling", across, "% of a core", at, {"Millpond": [row["cpu"] for row in rows]}, note="AMPS: grows by 5 % from 1 to 20 a second, sixfold from 20 to 30; values in the picture only."),
        Panel("Delay of requests", across, "ms", at, {"Millpond: median": [row["requests"]["p50"] for row in rows], "Millpond: 95 %": [row["requests"]["p95"] for row in rows]},
              {"AMPS: median, at most": known(stated["p50-ms"]), "AMPS: 95 %, at most": known(stated["p95-ms"])}, logarithmic=True),
    ]
    if any(row["failed"] for row in rows):
        raise RuntimeError(f"sessions failed: {[(row['rate'], row['failed']) for row in rows]}")
    worst = max(row["requests"]["p95"] for row in rows if row["rate"] <= stated["most-rate"])
    ours = f"p95 of requests up to {worst:.2f} ms at up to 30 a second; CPU {first:.1f} to {max(row['cpu'] for row in rows):.1f} % of a core"
    return Shown(panels, ours, "yes, far below the paper's bounds" if worst < stated["p95-ms"] else "no")


@figure("amps-4", *RECEPTION)
def between_frames(bench, stated) -> Shown:
    viewers = bench.pick(177, 600)
    row = received(bench, "V300", viewers)
    width, last = 4, 148
    counts = [0] * (last // width + 1)
    for end, count in row["histogram"]:
        counts[min(int(end // width), len(counts) - 1)] += count
    total = max(1, sum(counts))
    between, buffer = row["between"], row["buffer"]
    labels = [f"{width * number}" if number % 5 == 0 else "" for number in range(len(counts))]
    mean = [None] * len(counts)
    mean[int(stated["mean-ms"] // width)], mean[int(stated["longest-ms"] // width)] = 100.0, 0.1
    panels = [
        Panel("Time between frames", "ms between two frames of a session", "% of the frames", labels, {"Millpond": [100 * count / total or None for count in counts]},
              {f"AMPS: mean {stated['mean-ms']} ms and longest {stated['longest-ms']} ms (position only)": mean}, bars=True, logarithmic=True),
        Panel("Mean, longest, and buffer without underflow", "figure", "ms", ["mean", "longest", "buffer"], {f"Millpond, {viewers} sessions": [between["mean"], between["max"], buffer["max"]]},
              {"AMPS: section 4.2, 600 sessions": [stated["mean-ms"], stated["longest-ms"], stated["buffer-ms"]]}, bars=True),
    ]
    ours = f"mean {between['mean']:.2f} ms, longest {between['max']:.1f} ms; a buffer of {buffer['max']:.1f} ms suffices for all, {buffer['p99']:.1f} ms for 99 %; {viewers} sessions"
    return Shown(panels, ours, "yes" if between["max"] <= stated["longest-ms"] and buffer["max"] <= stated["buffer-ms"] else "partly: the longest gap or the buffer is above the paper's")


def alone(bench, program: str, ways: list, numbers: list, seconds: float) -> dict:
    """Results of a program in C that does one thing in several ways, by way and number of streams."""
    binary = bench.work / program
    subprocess.run(["cc", "-O2", "-o", binary, TOP / f"bench/{program}.c"], check=True)
    run = lambda way, streams: json.loads(subprocess.run([binary, way, str(streams), str(seconds)], check=True, capture_output=True, text=True).stdout)
    found = {(way, streams): run(way, streams) for streams in numbers for way in ways}
    for (way, streams), row in found.items():
        if row["packets"] < 0.95 * row["expected"]:
            raise RuntimeError(f"{program} {way}, {streams} streams: {row['packets']} of {row['expected']:.0f} packets")
    return found


@figure("amps-5", *RECEPTION, "cc")
def reception(bench, stated) -> Shown:
    numbers = bench.pick([60, 177, 350], [100, 200, 300, 400, 500, 600, 700, 800])
    rows = {transport: [received(bench, "V300", viewers, transport) for viewers in numbers] for transport in ("udp", "tcp")}
    series = lambda key: {f"Millpond, received by {transport.upper()}": [row[key] for row in found] for transport, found in rows.items()}
    ways = {"select": "select, rounds of 15 ms", "polling": "polling, rounds of 15 ms", "epoll": "epoll and recvmmsg at once (Millpond's)", "epoll-rounds": "the same, rounds of 15 ms",
            "one-rounds": "one socket for all, rounds of 15 ms"}
    counts = [200, 450, 700, 950]
    ways_of = alone(bench, "receptions", list(ways), counts, bench.pick(2, 8))
    share = 1 - stated["saves-percent"] / 100
    theirs = {f"AMPS: polling, {stated['saves-percent']} % below our select up to {stated['equal-from']}, then equal":
              [ways_of["select", streams]["cpu"] * (share if streams < stated["equal-from"] else 1) for streams in counts]}
    panels = [
        Panel("(a) Reception alone, by mechanism", "streams of V300", "% of a core", counts, {name: [ways_of[way, streams]["cpu"] for streams in counts] for way, name in ways.items()}, theirs,
              note="bench/receptions.c. AMPS states a share only; the dashed line is that share of our select."),
        Panel("(b) The whole server: receiving and sending", "viewers, each of a received stream of V300", "% of a core", numbers, series("cpu"), note="AMPS's values are in the picture only."),
    ]
    at = {way: ways_of[way, 700]["cpu"] for way in ways}
    last = {transport: found[-1] for transport, found in rows.items()}
    ours = f"alone, 700 streams: select {at['select']:.1f}, polling {at['polling']:.1f}, epoll at once {at['epoll']:.1f}, in rounds {at['epoll-rounds']:.1f}, one socket {at['one-rounds']:.1f} % of a core; " + \
           f"the server with {numbers[-1]} streams: {last['udp']['cpu']:.0f} % by UDP, {last['tcp']['cpu']:.0f} % by TCP"
    saved = 100 * (1 - statistics.mean(ways_of["polling", streams]["cpu"] / ways_of["select", streams]["cpu"] for streams in counts))
    beside = f"polling takes {abs(saved):.0f} % {'less' if saved > 0 else 'more'} than select"
    return Shown(panels, ours, f"{'yes' if saved > 10 else 'no'}: {beside} with this kernel; the mechanism is a small part of the server's CPU")


@figure("amps-6", "ffmpeg", "cc")
def microrounds(bench, stated) -> Shown:
    numbers = bench.pick([500, 1500], [500, 1000, 2000, 4000])
    lengths = [5, 15, 33]
    found = quietly(bench, stored.rounds, "--lengths", ",".join(map(str, lengths)), "--round-streams", ",".join(map(str, numbers)))
    by = {(row["round"], row["streams"]): row for row in found}
    ways = {"rounds": "rounds of 15 ms", "microrounds": "two microrounds of 15 ms within 33 ms", "due": "streams that are due, each 5 ms (Millpond's)"}
    counts = [500, 1000, 2000, 4000]
    ways_of = alone(bench, "rounds", list(ways), counts, bench.pick(2, 8))
    theirs = {f"AMPS: microrounds, at most {stated['saves-percent']} % below our rounds": [ways_of["rounds", streams]["cpu"] * (1 - stated["saves-percent"] / 100) for streams in counts]}
    panels = [
        Panel("(a) Rounds alone", "streams of V10", "% of a core", counts, {name: [ways_of[way, streams]["cpu"] for streams in counts] for way, name in ways.items()}, theirs,
              note="bench/rounds.c. AMPS states a share only; the dashed line is that share of our rounds."),
        Panel("(b) The whole server by the length of a round", "streams of V10", "% of a core", numbers, {f"Millpond, rounds of {length} ms": [by[length, number]["cpu"] for number in numbers] for length in lengths}),
        Panel("(b) Delay of packets behind the schedule (p99)", "streams of V10", "ms", numbers, {f"Millpond, rounds of {length} ms": [by[length, number]["delay"]["p99"] for number in numbers] for length in lengths}),
    ]
    saved = {way: 100 * (1 - statistics.mean(ways_of[way, streams]["cpu"] / ways_of["rounds", streams]["cpu"] for streams in counts)) for way in ("microrounds", "due")}
    most = numbers[-1]
    ours = f"alone: microrounds {saved['microrounds']:.0f} %, streams that are due {saved['due']:.0f} % less than rounds; the server with {most:,} streams: " + \
           ", ".join(f"{length} ms {by[length, most]['cpu']:.1f} %" for length in lengths) + " of a core"
    held = saved["microrounds"] > 10
    return Shown(panels, ours, f"{'yes' if held else 'no'}: microrounds save {saved['microrounds']:.0f} %, beside up to {stated['saves-percent']} %; Millpond's rounds save {saved['due']:.0f} %")
