"""The figures of the AMPS paper."""

import amps as stored
import amps_profile
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


def program(bench, *arguments) -> stored.Bench:
    """The bench of stored titles, with its settings."""
    form = ["--quick"] if bench.options.quick else []
    options = stored.parse([*form, "--bin", str(bench.options.bin), *arguments])
    clips(bench)
    return stored.Bench(options)


@figure("amps-table-2", *RECEPTION)
def data_plane(bench, stated) -> Shown:
    share = bench.pick(0.25, 1)
    rows = [received(bench, clip, round(streams * share)) for clip, streams in zip(stated["clips"], stated["streams"])]
    of = lambda key, factor=1.0: [row[key] * factor for row in rows]
    names = [f"{clip}\n{row['viewers']} streams" for clip, row in zip(stated["clips"], rows)]
    beside = "the paper's numbers" if share == 1 else f"{share:.0%} of the paper's numbers"
    theirs = lambda key: {"AMPS: Table 2" + ("" if share == 1 else f", {share:.0%} of it"): [value * share for value in stated[key]]}
    panels = [
        Panel("Bandwidth", f"clip, and streams ({beside})", "video forwarded, Mbit/s", names, {"Millpond": of("mbps")}, theirs("mbps"), bars=True),
        Panel("Packets", f"clip, and streams ({beside})", "packets forwarded a second", names, {"Millpond": of("packets")}, theirs("packets"), bars=True),
        Panel("CPU for these streams", f"clip, and streams ({beside})", "% of a core", names, {"Millpond: receiving and sending": of("cpu")},
              {} if share < 1 else {"AMPS: Pentium 4, full": [100] * len(rows)}, bars=True),
    ]
    ours = "; ".join(f"{clip} {row['viewers']:,} streams, {row['mbps']:.0f} Mbit/s, {row['cpu']:.0f} % of a core" for clip, row in zip(stated["clips"], rows))
    late = max(row["late"] + row["lost"] for row in rows)
    held = f"{'yes' if max(of('cpu')) < 100 * share else 'partly'}: {beside} take at most {max(of('cpu')):.0f} % of a core"
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
    panel = Panel(f"Busy CPU time, {found['viewers']} received sessions of V300", "group of functions", "% of the busy time", [name.replace(": ", ":\n").replace(" ", "\n", 1)[:24] for name in names],
                  {"Millpond": own}, {"AMPS: section 4.1, of the busy 66 %": [100 * theirs[name] / busy if name in theirs else None for name in names]}, bars=True)
    of = dict(zip(names, own))
    ours = f"network {of[amps_profile.NETWORK]:.0f} %, reception {of[amps_profile.RECEPTION]:.0f} %, pipes {of[amps_profile.PIPES] + of[amps_profile.WAKES]:.1f} % of the busy time; " \
           f"{found['cpu']:.0f} % of a core for {found['viewers']} sessions; {shares['samples']:,} samples"
    first = max(of, key=of.get)
    return Shown([panel], ours, "yes: network protocols take most" if first == amps_profile.NETWORK else f"partly: most is {first}")


@figure("amps-3", "ffmpeg")
def control_plane(bench, stated) -> Shown:
    rates = bench.pick("1,5,10,20,30,100", "1,5,10,20,30,100,300,1000")
    rows = stored.signalling(program(bench, "--rates", rates))
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


@figure("amps-5", *RECEPTION)
def reception(bench, stated) -> Shown:
    numbers = bench.pick([60, 177, 350], [100, 200, 300, 400, 500, 600, 700, 800])
    rows = {transport: [received(bench, "V300", viewers, transport) for viewers in numbers] for transport in ("udp", "tcp")}
    series = lambda key: {f"Millpond, received by {transport.upper()}": [row[key] for row in found] for transport, found in rows.items()}
    note = f"AMPS: polling takes up to {stated['saves-percent']} % less than select, and is equal from {stated['equal-from']} streams on; its values are in the picture only."
    each = {transport: [row["cpu"] / row["viewers"] * 100 for row in found] for transport, found in rows.items()}
    above = lambda row: row["cpu"] / (1 - stated["saves-percent"] / 100) if row["viewers"] < stated["equal-from"] else row["cpu"]
    theirs = {f"AMPS: select, if polling were ours by UDP and saved {stated['saves-percent']} %": [above(row) for row in rows["udp"]]}
    panels = [
        Panel("CPU of the server by streams", "viewers, each of a received stream of V300", "% of a core", numbers, series("cpu"), theirs, note=note),
        Panel("CPU of 100 streams", "viewers, each of a received stream of V300", "% of a core", numbers, {f"Millpond, received by {t.upper()}": values for t, values in each.items()}),
    ]
    last = {transport: found[-1] for transport, found in rows.items()}
    ours = f"{numbers[-1]} streams: {last['udp']['cpu']:.1f} % of a core by UDP, {last['tcp']['cpu']:.1f} % by TCP; " + \
           f"100 streams take {min(each['udp']):.1f} to {max(each['udp']):.1f} % by UDP; {max(row['lost'] for row in rows['udp']):.2f} % of the packets lost"
    return Shown(panels, ours, "-: one mechanism here; linear in the streams")


@figure("amps-6", "ffmpeg")
def microrounds(bench, stated) -> Shown:
    numbers = bench.pick([500, 1500], [500, 1000, 2000, 4000])
    lengths = [5, 15, 33]
    found = stored.rounds(program(bench, "--lengths", ",".join(map(str, lengths)), "--round-streams", ",".join(map(str, numbers))))
    by = {(row["round"], row["streams"]): row for row in found}
    cpu = {f"Millpond, rounds of {length} ms": [by[length, number]["cpu"] for number in numbers] for length in lengths}
    saved = {f"AMPS: {stated['saves-percent']} % less than rounds of 15 ms, at most": [by[15, number]["cpu"] * (1 - stated["saves-percent"] / 100) for number in numbers]}
    panels = [
        Panel("CPU by the length of a round", "streams of V10", "% of a core", numbers, cpu, saved, note="AMPS states a share only; the dashed line is that share of our rounds of 15 ms."),
        Panel("Delay of packets behind the schedule (p99)", "streams of V10", "ms", numbers, {f"Millpond, rounds of {length} ms": [by[length, number]["delay"]["p99"] for number in numbers] for length in lengths}),
    ]
    most = numbers[-1]
    ours = f"{most:,} streams: " + ", ".join(f"{length} ms {by[length, most]['cpu']:.1f} % of a core (p99 {by[length, most]['delay']['p99']:.0f} ms late)" for length in lengths)
    gain = 100 * (1 - by[33, most]["cpu"] / by[5, most]["cpu"])
    return Shown(panels, ours, f"partly: rounds of 33 ms take {gain:.0f} % less than 5 ms; microrounds as the paper has them are not built")
