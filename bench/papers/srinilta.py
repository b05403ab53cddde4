"""The figures of Srinilta and Choudhary's paper, by the simulator of their server."""

import json

from papers.figure import Shown, figure
from papers.plot import Band, Panel

LOW, HIGH = 0.729, 1.2
SKEWS = {"low": LOW, "high": HIGH}
UNITS = {"512 KiB": 512 << 10, "256 KiB": 256 << 10}
LARGE = 512 << 10
# The cache as the figures have it: bytes of each dispenser.
CACHE = 20 << 20
ALL = "SOSD, cache, delay of one"
# Techniques by assignment, cache and delay in periods.
TECHNIQUES = {
    "none": ("rr", 0, 0), "RR, cache": ("rr", CACHE, 0), "SOSD, cache": ("sosd", CACHE, 0), "SOSD, cache, delay of half": ("sosd", CACHE, 0.5),
    "SOSD, cache, delay of one": ("sosd", CACHE, 1),
}


def rows(bench) -> list:
    """Outcomes of all techniques."""
    streams = bench.pick("300,350,400,450,500,550,600,650,700,800,900", ",".join(map(str, range(300, 1000, 25))))
    run = lambda: simulate(bench, "--streams", streams)
    return bench.measured("srinilta", run)


def simulate(bench, *arguments) -> list:
    file = bench.work / "srinilta.json"
    bench.millpond("simulate", "dispensers", *arguments, "--json", file)
    return json.loads(file.read_text())


def series(found: list, key: str, skew: float, unit: int, techniques: list) -> tuple:
    """Numbers of streams, and percents of each technique."""
    streams = sorted({row["streams"] for row in found})
    of = {}
    for name in techniques:
        assignment, cache, delay = TECHNIQUES[name]
        at = {row["streams"]: 100 * row[key] for row in found
              if (row["assignment"], row["cache"], row["delay"], row["unit"]) == (assignment, cache, delay, unit) and abs(row["skew"] - skew) < 0.01}
        of[name] = [at.get(number) for number in streams]
    return streams, of


def carried(found: list, skew: float, technique: str, limit: float) -> tuple:
    """Most streams with less than a share of packets missed, and whether it is the most that was tried."""
    streams, of = series(found, "missed-share", skew, LARGE, [technique])
    good = 0
    for number, missed in zip(streams, of[technique]):
        if missed is None or missed >= limit:
            return good, False
        good = number
    return good, True


def gains(bench, skew: float, limit: float) -> tuple:
    """Times in which the streams begin, and how many more all three techniques carry than none, in percent."""
    times = [60, 240, 600]
    streams = bench.pick("400,450,500,550,600,650,700,750,800,850,900,1000", ",".join(map(str, range(400, 1100, 25))))
    fixed = ("--unit", "512KiB", "--cache", "0,20MiB", "--delay", "0,1", "--streams", streams)
    found = bench.measured("srinilta-ramps", lambda: {time: simulate(bench, "--ramp", f"{time}s", *fixed) for time in times})
    most = lambda time, technique: carried(found[time], skew, technique, limit)[0]
    return times, [100 * (most(time, ALL) / max(most(time, "none"), 1) - 1) for time in times]


def number(pair: tuple) -> str:
    return f"{pair[0]}{' or more' if pair[1] else ''}"


@figure("srinilta-5")
def cached(bench, stated) -> Shown:
    found, panels = rows(bench), []
    note = "The paper: more with SOSD and high skew, fewer with more streams and small units; values in the picture only."
    own = {}
    for letter, (unit_name, unit) in zip("ab", UNITS.items()):
        lines = {}
        for skew_name, skew in SKEWS.items():
            streams, of = series(found, "cached-share", skew, unit, ["RR, cache", "SOSD, cache"])
            lines |= {f"{name.split(',')[0]}, {skew_name} skew": values for name, values in of.items()}
        own[unit_name] = lines
        panels.append(Panel(f"({letter}) Units of {unit_name}", "streams at once", "requests from the cache, %", streams, lines, note=note))
    lines = own["512 KiB"]
    more = all(sosd >= rr for skew in SKEWS for sosd, rr in zip(lines[f"SOSD, {skew} skew"], lines[f"RR, {skew} skew"]))
    falls = all(values[0] > values[-1] for values in lines.values())
    ours = "; ".join(f"{name} {values[0]:.0f} to {values[-1]:.0f} %" for name, values in lines.items())
    return Shown(panels, f"{streams[0]} to {streams[-1]} streams, 512 KiB: {ours}", "yes" if more and falls else f"partly: SOSD {'is' if more else 'is not'} always above RR; shares "
                 f"{'fall' if falls else 'do not fall'} with the streams")


@figure("srinilta-6")
def delayed(bench, stated) -> Shown:
    found, panels, own = rows(bench), [], {}
    names = ["SOSD, cache, delay of half", "SOSD, cache, delay of one"]
    for letter, (unit_name, unit) in zip("ab", UNITS.items()):
        lines = {}
        for skew_name, skew in SKEWS.items():
            streams, of = series(found, "delayed-share", skew, unit, names)
            lines |= {f"{name.split(', ', 2)[2]}, {skew_name} skew": values for name, values in of.items()}
        own[unit_name] = lines
        panels.append(Panel(f"({letter}) SOSD and cache, units of {unit_name}", "streams at once", "delayed deadlines, %", streams, lines, {},
                            [Band(f"the paper: aim for half a period, under {stated['aim-percent']} %", stated["aim-percent"], stated["aim-percent"])]))
    lines = own["512 KiB"]
    at = -1
    ours = "; ".join(f"{name} {values[at]:.1f} %" for name, values in lines.items())
    larger = all(lines[f"delay of half, {skew} skew"][at] <= lines[f"delay of one, {skew} skew"][at] for skew in SKEWS)
    within = max(lines[f"delay of half, {skew} skew"][at] for skew in SKEWS) < stated["aim-percent"]
    held = ("yes" if larger else "partly: the larger delay does not delay more deadlines here, as it ends the lateness sooner") + ("; half a period stays under the aim" if within else "")
    return Shown(panels, f"{streams[at]} streams, 512 KiB: {ours}", held)


def missed(bench, stated, skew_name: str) -> Shown:
    found, panels, skew = rows(bench), [], SKEWS[skew_name]
    for letter, (unit_name, unit) in zip("ab", UNITS.items()):
        streams, lines = series(found, "missed-share", skew, unit, list(TECHNIQUES))
        place = lambda value: [value if number == value else None for number in streams]
        limit = stated["acceptable-percent"]
        theirs = {
            "the paper: none, no misses up to 400": [0.0 if number <= stated["none-no-misses"] else None for number in streams],
            "the paper: cache, no misses up to 500": [0.0 if number <= stated["cache-no-misses"] else None for number in streams],
            "the paper: none, 30 % at 600 to 700": [float(limit) if stated["none-acceptable"][0] <= number <= stated["none-acceptable"][1] else None for number in streams],
            "the paper: all three, under 30 % at 800": [float(limit) if value else None for value in place(stated["all-acceptable"])],
        }
        panels.append(Panel(f"({letter}) Units of {unit_name}, {skew_name} skew", "streams at once", "missed packets, %", streams, lines, theirs,
                            [Band("the paper: acceptable region, under 30 %", limit, limit)]))
    times, by_time = gains(bench, skew, 1)
    panels.append(Panel(f"(c) All three techniques over none, under 1 % missed, {skew_name} skew", "time within which all streams begin, s", "more streams, %", times,
                        {"by the time of arrivals, which the paper does not state": by_time}, {}, [Band(f"the paper: about {stated['gain-percent']} % (section 6)", stated["gain-percent"], stated["gain-percent"])]))
    told = {limit: {name: carried(found, skew, name, limit) for name in ("none", "SOSD, cache", ALL)} for limit in (1, stated["acceptable-percent"])}
    gain = lambda limit: 100 * (told[limit][ALL][0] / max(told[limit]["none"][0], 1) - 1)
    ours = "; ".join(f"under {limit} %: none {number(of['none'])}, SOSD and cache {number(of['SOSD, cache'])}, all three {number(of[ALL])}" for limit, of in told.items())
    base = told[stated["acceptable-percent"]]["none"][0]
    low, high = stated["none-acceptable"]
    ours += "; gain under 1 % if streams begin within " + ", ".join(f"{time} s: {value:.0f} %" for time, value in zip(times, by_time))
    return Shown(panels, ours, f"partly: with all three at least {gain(1):.0f} % (under 1 %) and {gain(30):.0f} % (under 30 %) more than none; the paper has about {stated['gain-percent']} %. "
                 f"Its baseline carries {low} to {high} under 30 %, ours {base}")


@figure("srinilta-7")
def missed_high(bench, stated) -> Shown:
    return missed(bench, stated, "high")


@figure("srinilta-8")
def missed_low(bench, stated) -> Shown:
    return missed(bench, stated, "low")
