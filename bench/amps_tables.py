"""Markdown tables and plots of amps.py, with AMPS's own figures beside."""

import math
from pathlib import Path

import amps_profile
import svg
from thesis_tables import table

# Table 2: what the proxy carried at most, on a Pentium 4 of 1.8 GHz.
TABLE_2 = {
    "V10": {"streams": 2060, "mbps": 25.14, "packets": 20_600},
    "V100": {"streams": 1580, "mbps": 161.95, "packets": 15_800},
    "V300": {"streams": 710, "mbps": 213.13, "packets": 21_300},
    "V1024": {"streams": 280, "mbps": 288.2, "packets": 33_600},
}
# Figure 2 and section 4.1: percent of all CPU time with 600 sessions; 34 % of it were idle.
FIGURE_2 = {
    amps_profile.PIPES: 5, amps_profile.NETWORK: 20, "kernel: copies to and from it": 7, "kernel: the rest": 5, "copies in memory": 6,
    "kernel: sleeping and waking threads": 5, amps_profile.RECEPTION: 19,
}
BUSY = 66
# Labels of the groups in a plot, in the order of `names_of_groups`.
SHORT = [
    "pipes", "wakes\nby pipes", "kernel:\ncopies", "kernel:\nnetwork", "kernel:\nthreads", "kernel:\nother", "memory\ncopies", "recep-\ntion", "packets",
    "loading", "RTSP", "other",
]
# Section 4.2.
DELAY_P50, DELAY_P95 = 56, 120
BETWEEN_MEAN, BETWEEN_MAX, BUFFER = 66.67, 144.07, 52


def within(buckets: list, most: float) -> float:
    """Percent of a histogram up to a time."""
    return 100 * sum(count for end, count in buckets if end <= most) / max(1, sum(count for _, count in buckets))


def both(delay: dict) -> str:
    return f"{delay['p50']:.2f} / {delay['p95']:.2f} ms"


def ratio(value: float, first: float) -> str:
    return f"{value / first:.2f}" if first else "-"


def pipes(found: dict, out: Path) -> str:
    if "skipped" in found:
        return f"Not measured: {found['skipped']}.\n"
    groups = {name: found["groups"].get(name, 0.0) for name in amps_profile.names_of_groups()}
    theirs = {name: 100 * FIGURE_2[name] / BUSY if name in FIGURE_2 else None for name in groups}
    svg.bars(out / "amps-pipes.svg", "Where busy CPU time is spent, 600 sessions of V300", "% of the busy time",
             SHORT, {"AMPS (Figure 2)": list(theirs.values()), "Millpond": list(groups.values())})
    rows = [[name, f"{theirs[name]:.1f} %" if theirs[name] else "-", f"{share:.1f} %"] for name, share in groups.items()]
    steady = found["steady"]
    note = f"\n{found['samples']:,} samples. The server took {steady['cpu']:.1f} % of a core for {steady['active']:.0f} sessions; pipes took " \
           f"{steady['cpu'] * groups[amps_profile.PIPES] / 100:.2f} % of a core.\n"
    return table(["share of the busy CPU time, 600 sessions of V300, 5 a second begin", "AMPS", "Millpond"], rows) + note


def rounds(found: list, out: Path) -> str:
    lengths = sorted({one["round"] for one in found})
    numbers = sorted({one["streams"] for one in found})
    by = {(one["round"], one["streams"]): one for one in found}
    svg.lines(out / "amps-rounds-cpu.svg", "CPU by the time between two rounds, V10", "% of a core, by streams", numbers,
              {f"rounds of {length} ms": [by[length, number]["cpu"] for number in numbers] for length in lengths})
    most = numbers[-1]
    ends = [0.5, 1, 2, 5, 10, 15, 20, 30, 40, 52, 75, 100]
    share = lambda length, end: within(by[length, most]["behind"], end)
    svg.lines(out / "amps-rounds-delay.svg", f"Packets by their delay behind the schedule, {most} streams of V10", "% that are not later, by ms",
              [f"{end:g}" for end in ends], {f"rounds of {length} ms": [share(length, end) for end in ends] for length in lengths})
    rows = []
    for number in numbers:
        first = by[lengths[0], number]["cpu"]
        for length in lengths:
            one = by[length, number]
            delay, buffer = one["delay"], one["buffer"]
            rows.append([f"{number:,}", f"{length} ms", f"{one['cpu']:.1f} %", ratio(one["cpu"], first), f"{delay['p50']:.1f} / {delay['p99']:.1f} ms",
                         f"{one['within_52']:.3f} %", f"{buffer['p50']:.1f} / {buffer['max']:.1f} ms"])
    return table(["streams of V10", "round", "CPU of a core", "ratio", "delay p50 / p99", "packets within 52 ms", "buffer needed p50 / max"], rows)


def streams(found: list, out: Path) -> str:
    svg.bars(out / "amps-streams.svg", "CPU for as many streams as filled AMPS's machine (Table 2)", "% of a core",
             [f"{one['clip']}\n{one['streams']} streams" for one in found],
             {"AMPS, Pentium 4 1.8 GHz": [100 for _ in found], "Millpond": [one["cpu"] for one in found]})
    rows = []
    for one in found:
        amps = TABLE_2[one["clip"]]
        rows.append([one["clip"], f"{amps['streams']:,}", f"{amps['mbps']:.1f}", f"{amps['packets']:,}",
                     f"{one['active']:,.0f}", f"{one['mbps']:.1f}", f"{one['packets']:,.0f}", f"{one['cpu']:.1f} %", f"{one['late']:.2f} / {one['lost']:.2f} %"])
    return table(["clip", "AMPS: streams", "Mbit/s", "packets/s", "Millpond: streams", "Mbit/s", "packets/s", "CPU of a core", "late / lost"], rows)


def signalling(found: list, out: Path) -> str:
    rates = [one["rate"] for one in found]
    svg.lines(out / "amps-signalling-cpu.svg", "CPU of signalling alone (Figure 3)", "% of a core, by sessions a second", rates,
              {"Millpond": [one["cpu"] for one in found]})
    svg.lines(out / "amps-signalling-delay.svg", "Delay of requests, signalling alone", "ms, by sessions a second", rates, {
        "median": [one["requests"]["p50"] for one in found], "95th percentile": [one["requests"]["p95"] for one in found],
        "AMPS: median, bound": [DELAY_P50 if rate <= 30 else None for rate in rates],
        "AMPS: 95th percentile, bound": [DELAY_P95 if rate <= 30 else None for rate in rates],
    }, logarithmic=True)
    method = lambda one, name: one["methods"].get(name, {}).get("p95", 0)
    names = ("DESCRIBE", "SETUP", "PLAY", "TEARDOWN")
    rows = [[one["rate"], f"{DELAY_P50} / {DELAY_P95} ms at most" if one["rate"] <= 30 else "-", both(one["requests"]),
             *(f"{method(one, name):.2f} ms" for name in names), f"{one['cpu']:.2f} %", one["failed"]] for one in found]
    head = ["sessions a second", "AMPS: p50 / p95", "Millpond: p50 / p95", "DESCRIBE p95", *names[1:], "CPU of a core", "failed"]
    return table(head, rows)


def arrivals(found: dict, out: Path) -> str:
    width, last = 4, 148
    counts = [0] * (last // width + 1)
    for end, count in found["histogram"]:
        counts[min(int(end // width), len(counts) - 1)] += count
    total = max(1, sum(counts))
    labels = [str(width * number) if number % 5 == 0 else "" for number in range(len(counts))]
    svg.bars(out / "amps-arrivals.svg", "Time between frames at the receivers, V300 of 15 frames a second (Figure 4)",
             f"% of the frames, by ms; AMPS: mean {BETWEEN_MEAN} ms, longest {BETWEEN_MAX} ms", labels, {"Millpond": [100 * count / total for count in counts]}, logarithmic=True)
    between, buffer, requests = found["between"], found["buffer"], found["requests"]
    rows = [
        ["sessions at once (most), arriving a second", "600, 5", f"{found['active']:.0f}, {found['rate']:g}"],
        ["CPU of a core", "66 %", f"{found['cpu']:.1f} %"],
        ["time between frames: mean", f"{BETWEEN_MEAN} ms", f"{between['mean']:.2f} ms"],
        ["p50 / p99", "-", f"{between['p50']:.1f} / {between['p99']:.1f} ms"],
        ["longest", f"{BETWEEN_MAX} ms", f"{between['max']:.1f} ms"],
        ["buffer without underflow", f"{BUFFER} ms", f"{buffer['max']:.1f} ms for all of {buffer['count']:,} sessions; {buffer['p99']:.1f} ms for 99 %"],
        ["delay of requests p50 / p95", f"{DELAY_P50} / {DELAY_P95} ms at most (signalling alone)", both(requests)],
        ["packets late / lost, sessions failed", "-", f"{found['late']:.3f} / {found['lost']:.3f} %, {found['failed']}"],
    ]
    return table(["600 sessions of V300", "AMPS", "Millpond"], rows)


def sessions(found: dict, out: Path) -> str:
    by_number = found["number"]
    numbers = [one["streams"] for one in by_number]
    delays = lambda rows: {"median": [one["requests"]["p50"] for one in rows], "95th percentile": [one["requests"]["p95"] for one in rows]}
    bound = {"limit: AMPS's 95th percentile": [DELAY_P95 for _ in numbers]}
    svg.lines(out / "amps-sessions.svg", "Delay of requests while sessions of V300 play", "ms, by sessions that play", numbers,
              {**delays(by_number), **bound}, logarithmic=True)
    by_rate = by_number[:1] + found["rate"]
    svg.lines(out / "amps-sessions-rate.svg", "Delay of requests while 600 sessions of V300 play", "ms, by sessions a second that begin and leave",
              [f"{one['rate']:g}" for one in by_rate], delays(by_rate), logarithmic=True)
    rows = []
    for one in by_number + found["rate"]:
        amps = one["streams"] == 600 and math.isclose(one["rate"], 5)
        rows.append([f"{one['streams']:,}", f"{one['rate']:g}", "carried" if amps else "-", f"{one['cpu']:.1f} %", both(one["requests"]),
                     f"{one['startup']['p95']:.1f} ms", f"{one['late']:.2f} / {one['lost']:.2f} %", one["failed"], "yes" if one["carried"] else "no"])
    head = ["sessions that play", "begin a second", "AMPS", "CPU of a core", "requests p50 / p95", "first packet p95", "late / lost", "failed", "carried"]
    return table(head, rows)


TITLES = {
    "pipes": "Pipes (Figure 2)", "rounds": "Rounds (Figure 6)", "streams": "Data plane (Table 2)", "signalling": "Control plane (Figure 3)",
    "arrivals": "Time between frames (Figure 4)", "sessions": "Sessions with signalling (section 4.2)",
}


def everything(results: dict, out: Path) -> str:
    parts = [f"### {title}\n\n{globals()[part](results[part], out)}" for part, title in TITLES.items() if part in results]
    kind = "Quick run" if results["quick"] else "Run"
    parts.append(f"{kind} of {results['minutes']:.1f} minutes; other programs had up to {results['foreign']:.0%} of the machine.\n")
    return "\n".join(parts)
