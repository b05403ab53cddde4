"""The figures of the SProxy paper."""

from collections import Counter

from papers.figure import Shown, figure
from papers.plot import Band, Panel
from papers.sproxy_runs import FAR_MBPS, FAR_MS, NEAR_MBPS, Run, Site, all_of, clip, titles, waits

LINK = ("root", "nginx", "ip", "tc", "ffmpeg", "cc")
MODES = ["on-demand", "half", "window", "active"]
ORIGINS = {"near": (NEAR_MBPS, 0), "far": (FAR_MBPS, FAR_MS)}
WHOLE = "full"
NAMES = {WHOLE: "whole objects"}


def span(values: list, form: str = "{:.1f}") -> str:
    """The least and the most of some values."""
    return " to ".join(dict.fromkeys(form.format(value) for value in (min(values), max(values))))


@figure("sproxy-table-1")
def table_1(bench, stated) -> Shown:
    file = bench.work / "sproxy-trace.csv"
    bench.millpond("simulate", "--preset", "sproxy", "--save", file)
    rows = [line.split(",") for line in file.read_text().splitlines()[1:]]
    lengths = {row[1]: int(row[2]) for row in rows}
    visits = Counter(row[1] for row in rows)
    rates = stated["rates-kbps"]
    longest = [max((int(row[4]) - int(row[3])) / float(row[5]) / 60 for row in rows if round(float(row[5]) * 8 / 1000) == rate) for rate in rates]
    read = sum(int(row[4]) - int(row[3]) for row in rows) / 1e9
    own = {"requests": len(rows), "accessed-gb": read, "unique-gb": sum(lengths.values()) / 1e9, "top-percent": 100 * max(visits.values()) / len(rows)}
    sums = Panel("Sums of the workload", "requests; bytes read; bytes of objects; share of the first clip", "thousands, GB and percent",
                 ["requests/1000", "GB read", "GB of objects", "% to one clip"], {"simulate --preset sproxy": [own["requests"] / 1000, *list(own.values())[1:]]},
                 {"SProxy: section IV.C.5": [stated["requests"] / 1000, stated["accessed-gb"], stated["unique-gb"], stated["top-percent"]]}, bars=True)
    visit = Panel("Longest visit by rate (Table I)", "rate of the clip, kbit/s", "longest visit, min", rates, {"simulate --preset sproxy": longest},
                  {"SProxy: Table I": stated["longest-visit-min"]}, bars=True)
    close = all(abs(own[name] / stated[name] - 1) < 0.02 for name in own)
    ours = f"{own['requests']:,} requests; {own['top-percent']:.0f} % for one clip; {own['accessed-gb']:.2f} GB read; {own['unique-gb']:.3f} GB of objects"
    shorter = [f"{own_longest:.0f} of {theirs} min at {rate} kbit/s" for rate, own_longest, theirs in zip(rates, longest, stated["longest-visit-min"]) if own_longest < 0.7 * theirs]
    holds = f"partly: sums within 2 %; longest visits are shorter ({', '.join(shorter)})" if close and shorter else "yes, within 2 %" if close else "no"
    return Shown([sums, visit], ours, holds)


@figure("sproxy-3", *LINK)
def whole_objects(bench, stated) -> Shown:
    """Each length alone, by whole objects and by slices, on a link of 100 Mbit/s."""
    lengths = stated["lengths-min"]
    site = bench.work / "lengths"
    site.mkdir(parents=True, exist_ok=True)
    for minutes in lengths:
        if not (site / f"{minutes}.mp4").exists():
            (site / f"{minutes}.mp4").hardlink_to(clip(bench.work / "clips", stated["rate-kbps"], 60 * minutes))
    rows = {}
    for mode in (WHOLE, "active"):
        for minutes in lengths:
            found = []
            for repeat in range(bench.pick(1, 10)):
                with Site(bench, 0, site, Run(mode, "100KiB", 1, NEAR_MBPS, 0)) as at:
                    viewer = (f"{minutes}.mp4", "--clients", 1, "--once", "--watch", f"{2 + (minutes / 8 if mode == WHOLE else 0):.0f}s", "--duration", "60s")
                    first, again = at.play(*viewer), at.play(*viewer)
                describe = next(method["latency"]["p50"] for method in again["methods"] if method["method"] == "DESCRIBE")
                if not first["startup"]["count"]:
                    raise RuntimeError(f"{minutes} min, {mode}: no packet within the viewer's time")
                miss = waits(at.server.log.read_text(errors="replace"))["whole" if mode == WHOLE else "miss"]
                found.append((first["startup"]["p50"], miss, describe))
            rows[mode, minutes] = [sum(column) / len(found) for column in zip(*found)]
    label = {WHOLE: "Millpond, whole objects", "active": "Millpond, slices of 100 KiB"}
    series = lambda at: {label[mode]: [rows[mode, minutes][at] for minutes in lengths] for mode in (WHOLE, "active")}
    note = "SProxy: linear in the length. Its values are in the picture only; the line is linear through our first and has the paper's shape, not its values."
    shape = lambda at: {"SProxy: linear (shape only)": [rows[WHOLE, lengths[0]][at] * minutes / lengths[0] for minutes in lengths]}
    parts = [("(a) Startup", 0, "startup, ms"), ("(b) A miss", 1, "until object or slice is there, ms"), ("(c) Handshake", 2, "DESCRIBE of a cached title, ms")]
    panels = [Panel(title, "length of the clip, min (112 kbit/s)", unit, lengths, series(at), shape(at), note=note) for title, at, unit in parts]
    whole, slices = ([rows[mode, minutes][0] for minutes in lengths] for mode in (WHOLE, "active"))
    grows = whole[-1] / whole[0]
    ours = f"startup {span(whole)} ms with whole objects (40 min: {grows:.1f} times 1 min), {span(slices)} ms with slices"
    linear = 0.5 < grows / (lengths[-1] / lengths[0]) < 1.5
    return Shown(panels, ours, f"{'yes' if linear else 'partly'}: whole-object startup and miss grow with the length; the handshake does not, as a cached title is not searched")


@figure("sproxy-4", *LINK)
def slice_sizes(bench, stated) -> Shown:
    sizes = bench.pick([100, 300, 500], stated["sizes-kb"])
    counts = bench.pick([1, 10, 50], [1, 10, 20, 50, 100])
    kinds = [("on-demand", f"{size}KiB") for size in sizes] + [(WHOLE, "512KiB")]
    runs = [Run(mode, size, count, NEAR_MBPS, 0) for count in counts for mode, size in kinds]
    rows = all_of(bench, titles(bench), runs)
    name = lambda mode, size: "whole objects" if mode == WHOLE else f"slices of {size[:-3]} KiB"
    of = lambda figure: {name(mode, size): [row[figure] for row in rows if (row["mode"], row["slice"]) == (mode, size)] for mode, size in kinds}
    startup = of("startup")
    least, most = stated["startup-percent-of-whole"]
    bands = {f"SProxy: {share} % of whole-object startup": [value * share / 100 for value in startup["whole objects"]] for share in (least, most)}
    across = "viewers at once, each of another title"
    panels = [
        Panel("(a) Startup", across, "startup (mean), ms", counts, startup, bands, note="SProxy states a share only; the dashed lines are that share of our whole objects."),
        Panel("(b) Jitter", across, "jitter (mean), ms", counts, of("jitter"), note="SProxy: least with whole objects; values in the picture only."),
        Panel("(c) A miss", across, "until a slice is there whole, ms", counts, of("miss"), note="SProxy: grows with the slice; values in the picture only."),
        Panel("(d) Handshake", across, "mean over all slices, ms", counts, of("handshake"), note="SProxy: grows with the slice; values in the picture only."),
    ]
    shares = [100 * value / whole for label, values in startup.items() if label != "whole objects" for value, whole in zip(values, startup["whole objects"])]
    ours = f"startup with slices is {span(shares, '{:.0f}')} % of whole-object startup ({span([v for s in startup.values() for v in s])} ms); jitter {span([r['jitter'] for r in rows], '{:.2f}')} ms"
    good = "yes" if max(shares) < 100 else "partly"
    return Shown(panels, ours, f"{good}: slices start sooner; the size of slices matters little, as a viewer does not wait for a whole one")


def proximity(bench) -> list:
    """Rows of all modes, near and far, by viewers."""

    def run() -> list:
        counts = bench.pick([1, 10, 50], [1, 10, 20, 40, 60, 80])
        runs = [Run(mode, "100KiB", count, *ORIGINS[origin]) for origin in ORIGINS for count in counts for mode in MODES]
        return all_of(bench, titles(bench), runs)

    return bench.measured("sproxy-proximity", run)


def by_origin(bench, figure: str, unit: str, what: str, bands: dict, note: str = "") -> tuple:
    """Panels of a figure near and far, and the values of each."""
    rows, panels, values = proximity(bench), [], {}
    counts = sorted({row["viewers"] for row in rows})
    for letter, (origin, (mbps, _)) in zip("ab", ORIGINS.items()):
        at = [row for row in rows if row["mbps"] == mbps]
        series = {mode: [row[figure] for row in at if row["mode"] == mode] for mode in MODES}
        values[origin] = [row[figure] for row in at if row[figure] is not None]
        panels.append(Panel(f"({letter}) {what}, {origin}", "viewers at once, each of another title", unit, counts, series, {}, bands.get(origin, []),
                            logarithmic=bool(bands), note=note))
    return panels, values, rows


@figure("sproxy-5", *LINK)
def startup(bench, stated) -> Shown:
    bands = {"near": [Band("SProxy: 96 to 169 ms (section IV.C.3)", *stated["near-ms"])], "far": [Band("SProxy: 2 to 11 s (section IV.C.3)", *stated["far-ms"])]}
    panels, values, _ = by_origin(bench, "startup", "startup (mean), ms", "Startup", bands)
    ours = f"near {span(values['near'])} ms, far {span(values['far'], '{:.0f}')} ms"
    return Shown(panels, ours, "yes: hardly any difference between modes; the paper waits for a whole first slice" if max(values["far"]) < stated["far-ms"][0] else "partly")


@figure("sproxy-6", *LINK)
def misses(bench, stated) -> Shown:
    bands = {"near": [Band("SProxy: less than 23 ms", stated["near-ms"], stated["near-ms"])], "far": [Band("SProxy: up to 6.5 s", stated["far-ms"], stated["far-ms"])]}
    panels, values, _ = by_origin(bench, "miss", "until a slice is there whole, ms", "A miss", bands)
    within = max(values["near"]) < stated["near-ms"] and max(values["far"]) < stated["far-ms"]
    return Shown(panels, f"near up to {max(values['near']):.1f} ms, far up to {max(values['far']):.0f} ms", "yes, below both" if within else "no")


@figure("sproxy-7", *LINK)
def handshakes(bench, stated) -> Shown:
    panels, values, rows = by_origin(bench, "handshake", "mean over all slices, ms", "Handshake", {}, "SProxy: far, on-demand most and window least; values in the picture only.")
    far = {mode: sum(row["handshake"] for row in rows if row["mbps"] == FAR_MBPS and row["mode"] == mode) for mode in MODES}
    order = sorted(far, key=far.get)
    beside = "" if order[0] == "window" else f"; least has {order[0]}, not window"
    holds = f"{'yes: on-demand takes most' if order[-1] == 'on-demand' else 'no: on-demand does not take most'}{beside}"
    return Shown(panels, f"near up to {max(values['near']):.2f} ms, far up to {max(values['far']):.1f} ms; far, most with {order[-1]}, least with {order[0]}", holds)


@figure("sproxy-8", *LINK)
def jitter(bench, stated) -> Shown:
    panels, values, rows = by_origin(bench, "jitter", "jitter (mean), ms", "Jitter", {}, "SProxy: small; grows far with the viewers; values in the picture only.")
    late = max(row["late"] for row in rows)
    ours = f"near {span(values['near'], '{:.2f}')} ms, far {span(values['far'], '{:.2f}')} ms; up to {late:.2f} % of the packets late"
    return Shown(panels, ours, "yes: small near and far; it does not grow with the viewers" if max(values["far"]) < 2 * max(values["near"]) else "partly: far it grows")


@figure("sproxy-9", *LINK)
def bandwidths(bench, stated) -> Shown:
    rates = bench.pick([100, 200, 400], [100, 150, 200, 300, 400, 500])
    seconds = bench.pick(40, 110)
    runs = [Run(mode, "100KiB", 1, kbps * 1.05 / 1000, 0, stated["rate-kbps"], 0.1, seconds) for mode in MODES for kbps in rates]
    rows = all_of(bench, titles(bench, stated["rate-kbps"]), runs, at_once=12)
    of = lambda figure: {mode: [row[figure] for row in rows if row["mode"] == mode] for mode in MODES}
    across = "bandwidth of the origin's link, kbit/s (clip of 75 kbit/s)"
    note = "SProxy: falls with the bandwidth, Active is shortest on slow links; values in the picture only."
    panels = [
        Panel("(a) Handshake", across, "mean over all slices, ms", rates, of("handshake"), note=note),
        Panel("(b) Jitter", across, "jitter, ms", rates, of("jitter"), note="SProxy: falls; Active and window are better on slow links; values in the picture only."),
        Panel("Late packets (not in the paper)", across, "packets over 100 ms late, %", rates, of("late")),
    ]
    slow = {mode: values[0] for mode, values in of("handshake").items()}
    falls = all(values[0] >= values[-1] for values in of("handshake").values())
    best = min(slow, key=slow.get)
    late = max(row["late"] for row in rows)
    ours = f"handshake at {rates[0]} kbit/s: " + ", ".join(f"{mode} {value:,.0f}" for mode, value in slow.items()) + f" ms; at most {late:.1f} % of the packets late"
    is_short = slow["active"] <= slow[best] * 1.1
    holds = ("yes" if falls and is_short else "partly") + (": falls with the bandwidth" if falls else ": does not fall in each mode") + \
            ("; Active is shortest or within a tenth" if is_short else f"; {best} is shortest on the slowest link, as it has more slices beside the first, which all modes wait for") + \
            ("; no packet is late in any mode, and jitter does not change" if not late else "")
    return Shown(panels, ours, holds)


def simulated(bench) -> list:
    """Outcomes of the simulator for all modes, two sizes of slices and some of the cache."""

    def run() -> list:
        caches = bench.pick("64MiB,256MiB,1GiB", "64MiB,128MiB,256MiB,512MiB,1GiB,2GiB,4GiB")
        return bench.simulate("--preset", "sproxy", "--cache", caches, "--slice", "100KB,500KB", "--mode", "full,on-demand,half,window,active", "--policy", "lru")

    return bench.measured("sproxy-simulated", run)


def by_cache(rows: list, figure: str, slices: list, modes: list) -> tuple:
    """Sizes of the cache, and a series in GB for each mode and slice."""
    caches = sorted({row["cache-bytes"] for row in rows})
    series = {}
    for mode in modes:
        for size in [0] if mode == WHOLE else slices:
            name = NAMES.get(mode, f"{mode}, {size // 1000} kB")
            series[name] = [next(row[figure] / 1e9 for row in rows if (row["mode"], row["cache-bytes"], row["slice-bytes"]) == (mode, cache, size)) for cache in caches]
    return [f"{cache >> 20} MiB" for cache in caches], series


@figure("sproxy-10")
def traffic(bench, stated) -> Shown:
    rows = simulated(bench)
    points, most = by_cache(rows, "server-bytes", [100_000, 500_000], [WHOLE, "on-demand"])
    _, modes = by_cache(rows, "server-bytes", [500_000], MODES)
    note = "SProxy: values in the picture only. Active was not simulated."
    panels = [Panel("(a) Whole objects and slices", "size of the cache", "traffic of the server, GB", points, most, logarithmic=True, note=note),
              Panel("(b) Prefetch modes, slices of 500 kB", "size of the cache", "traffic of the server, GB", points, modes, note=note)]
    small = {mode: values[0] for mode, values in modes.items()}
    first = list(small.values())
    holds = "yes" if first[0] < first[1] < first[2] and most["on-demand, 100 kB"][0] < most["whole objects"][0] / 2 else "no"
    ours = f"{points[0]}: whole objects {most['whole objects'][0]:,.0f} GB, " + ", ".join(f"{mode} {value:.2f}" for mode, value in small.items()) + " GB"
    return Shown(panels, ours, f"{holds}: on-demand, half, window in this order")


@figure("sproxy-11")
def false_prefetch(bench, stated) -> Shown:
    rows = simulated(bench)
    points, series = by_cache(rows, "false-prefetch-bytes", [100_000, 500_000], ["window", "half", "active"])
    share = stated["half-percent-of-window"]
    theirs = {f"SProxy: half is about {share} % of window ({size} kB)": [value * share / 100 for value in series[f"window, {size} kB"]] for size in (100, 500)}
    note = "SProxy states a share only; the dashed lines are that share of our window."
    shares = [100 * half / window for size in (100, 500) for half, window in zip(series[f"half, {size} kB"], series[f"window, {size} kB"])]
    ours = f"half has {span(shares, '{:.0f}')} % of window's false prefetch; {points[0]}, 500 kB: " + ", ".join(
        f"{mode} {series[f'{mode}, 500 kB'][0]:.3f}" for mode in ("window", "half", "active")) + " GB"
    close = all(share - 15 <= value <= share + 15 for value in shares)
    return Shown([Panel("False prefetch", "size of the cache", "prefetched and never read, GB", points, series, theirs, note=note)], ours, "yes" if close else "partly")
