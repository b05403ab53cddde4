"""The figures and tables of Kylili's thesis, by bench/thesis.py."""

import contextlib
import statistics

import thesis
from papers.figure import Shown, figure
from papers.plot import Band, Panel
from thesis_tables import pick

STORAGE = ("root", "nginx", "versitygw", "ip", "ffmpeg", "cc")
NEAR, FAR, LOCAL = "s3-near", "s3-20", "folder-near"
TITLES = {NEAR: "S3 near", FAR: "S3 at 20 ms", LOCAL: "local folder"}
FORMATS = {"mp4": "MP4", "fmp4": "fMP4"}
CACHES = {"off": "caches off", "manifest": "server manifest", "dref": "server manifest and dref", "all": "all (default)"}
SEGMENTS = {"dash-low": "DASH\n200 kbit/s", "dash-high": "DASH\n1,000 kbit/s", "hls-low": "HLS\n200 kbit/s", "hls-high": "HLS\n1,000 kbit/s"}
LOW = {kind: label for kind, label in SEGMENTS.items() if kind.endswith("low")}
MANIFESTS = {"mpd": "DASH manifest", "m3u8": "HLS manifest"}
ONLY = "The thesis's values are in the picture only."


def part(bench, name: str, storages: str, cold_only: bool = False) -> list:
    """Results of one part of thesis.py, run once."""

    def run() -> list:
        form = ["--quick"] if bench.options.quick else []
        where = [f"--{flag}={storages}" for flag in ("storages", "sweep-storages", "efficiency-storages", "startup-storages")]
        options = thesis.parse([*form, "--server", str(bench.options.bin), "--parts", name, "--out", str(bench.work / "kylili"), *where])
        options.sweep = thesis.SWEEP
        with (bench.work / f"kylili-{name}.log").open("w") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            return thesis.run(options)["results"][name]

    return bench.measured(f"kylili-{name}", run)


def requests(bench) -> list:
    return part(bench, "requests", f"{NEAR},{FAR}")


def efficiencies(bench) -> list:
    return part(bench, "efficiency", f"{NEAR},{LOCAL}")


def sweep(bench) -> list:
    return part(bench, "connections", FAR)


def values(results: list, key: str, storage: str, kinds: dict, form: str, cache: str) -> list:
    return [(pick(results, storage=storage, kind=kind, format=form, cache=cache) or {}).get(key) for kind in kinds]


def by_kind(results: list, key: str, storage: str, kinds: dict, caches: tuple, unit: str, title: str, theirs=None, note: str = ONLY) -> Panel:
    """Bars of each format and state of the caches."""
    ours = {f"Millpond, {FORMATS[form]}, {CACHES[cache]}": values(results, key, storage, kinds, form, cache) for cache in caches for form in FORMATS}
    return Panel(f"{title}, {TITLES[storage]}", "request, 10 connections", unit, list(kinds.values()), ours, theirs or {}, bars=True, logarithmic=True, note=note)


def efficiency(bench, storage: str, form: str, cache: str) -> dict:
    return pick(efficiencies(bench), storage=storage, format=form, cache=cache)


def rates(found: dict) -> tuple:
    """MB a second in and out."""
    return found["in"] / 1e6 / found["seconds"], found["out"] / 1e6 / found["seconds"]


def ratios(stated: dict, form: str) -> list:
    return [out / read for read, out in zip(stated[form]["in"], stated[form]["out"])]


def span(numbers: list, form: str = "{:.2f}") -> str:
    return " to ".join(dict.fromkeys(form.format(value) for value in (min(numbers), max(numbers))))


@figure("kylili-fig-3-4", *STORAGE)
def local_and_remote(bench, stated) -> Shown:
    cells = {(storage, form): rates(efficiency(bench, storage, form, "off")) for storage in (LOCAL, NEAR) for form in FORMATS}
    names = [f"{TITLES[storage]}\n{FORMATS[form]}" for storage, form in cells]
    falls = stated["falls-percent"]
    theirs = {"thesis: out, less by 59 % (MP4) and 30 % (fMP4) of our local": [None, None] + [cells[LOCAL, form][1] * (1 - falls[form] / 100) for form in FORMATS]}
    panel = Panel("Traffic with cold titles, DASH, 90 connections", "storage and format", "MB/s", names, {"Millpond: in from S3": [None if storage == LOCAL else cell[0] for (storage, _), cell in cells.items()],
                  "Millpond: out": [cell[1] for cell in cells.values()]}, theirs, bars=True, logarithmic=True,
                  note="The thesis states the fall only; the dashed bars are our local rate less that share. Its numbers for S3 are in table-3-4.")
    own = {form: 100 * (1 - cells[NEAR, form][1] / cells[LOCAL, form][1]) for form in FORMATS}
    ours = "; ".join(f"{FORMATS[form]}: {cells[LOCAL, form][1]:.0f} MB/s local, {cells[NEAR, form][1]:.0f} from S3 ({own[form]:.0f} % less)" for form in FORMATS)
    return Shown([panel], ours, "yes in direction: remote storage sends less; the fall is larger here" if all(own[form] > falls[form] for form in FORMATS) else "partly")


def conversion(bench, stated, cache: str, theirs: dict) -> tuple:
    """A panel of out/in beside the thesis's three videos."""
    with_index = {form: efficiency(bench, NEAR, form, cache)["efficiency_with_index"] for form in FORMATS}
    without = {form: efficiency(bench, NEAR, form, cache)["efficiency"] for form in FORMATS}
    ours = {"Millpond, with what caching the index read": list(with_index.values())} if cache == "dref" else {"Millpond": list(without.values())}
    if cache == "dref":
        ours["Millpond, without it (media of these slices is cached)"] = list(without.values())
    series = {f"thesis: {video}": [ratios(theirs, form)[number] for form in FORMATS] for number, video in enumerate(("elephants dream", "sintel", "tears of steel"))}
    panel = Panel(f"Conversion efficiency, {CACHES[cache]}", "format of the storage", "bytes out / bytes in", list(FORMATS.values()), ours, series, bars=True)
    return panel, with_index, without


@figure("kylili-table-3-4", *STORAGE)
def cold_efficiency(bench, stated) -> Shown:
    panel, _, own = conversion(bench, stated, "off", stated)
    ours = "; ".join(f"{FORMATS[form]} {own[form]:.3f}" for form in FORMATS)
    better = [FORMATS[form] for form in FORMATS if own[form] >= min(ratios(stated, form))]
    return Shown([panel], ours, f"{'yes' if len(better) == 2 else 'no'}: the thesis is better with {' and '.join(FORMATS[f] for f in FORMATS if FORMATS[f] not in better) or 'neither'}")


@figure("kylili-fig-3-5", *STORAGE)
def formats(bench, stated) -> Shown:
    found = requests(bench)
    mp4, fmp4 = (values(found, "ms", NEAR, SEGMENTS, form, "off") for form in FORMATS)
    theirs = {"thesis: fMP4, by its difference from our MP4": [value * (1 - stated["fmp4-faster-percent"][kind] / 100) for value, kind in zip(mp4, SEGMENTS)]}
    panel = Panel("Time of a request, caches off", "segment, 10 connections", "mean, ms", list(SEGMENTS.values()), {"Millpond, MP4": mp4, "Millpond, fMP4": fmp4}, theirs, bars=True, logarithmic=True,
                  note="The thesis states differences only; the dashed bars are our MP4 less that share.")
    ratio = [slow / fast for slow, fast in zip(fmp4, mp4)]
    return Shown([panel], f"fMP4 takes {span(ratio, '{:.1f}')} times as long as MP4", "no: cold fMP4 is slower here" if min(ratio) > 1 else "partly" if max(ratio) > 1 else "yes")


def counts(bench, kind: str, form: str, cache: str = "off") -> float:
    return pick(requests(bench), storage=NEAR, kind=kind, format=form, cache=cache)["origin_requests"]


@figure("kylili-table-3-5", *STORAGE)
def ranges_of_manifest(bench, stated) -> Shown:
    names = [(kind, form) for form in FORMATS for kind in ("dash", "hls")]
    key = {"dash": "mpd", "hls": "m3u8"}
    own = [(counts(bench, key[kind], form) - 1) / 6 for kind, form in names]
    theirs = [stated["per-file"][f"{form}-{kind}"] for kind, form in names]
    panel = Panel("Byte ranges of a file for a manifest", "manifest and format", "requests for each file", [f"{kind.upper()}\n{FORMATS[form]}" for kind, form in names], {"Millpond": own}, {"thesis: Table 3.5": theirs},
                  bars=True, logarithmic=True)
    ours = "; ".join(f"{FORMATS[form]} {kind.upper()} {value:.1f}" for (kind, form), value in zip(names, own))
    return Shown([panel], ours, f"partly: MP4 {'needs fewer' if own[0] < theirs[0] else 'needs more'}; fMP4 {'needs more, a request for each fragment' if own[2] > theirs[2] else 'needs no more'}")


@figure("kylili-table-3-6", *STORAGE)
def requests_of_manifest(bench, stated) -> Shown:
    theirs = {("mpd", "mp4"): 19, ("m3u8", "mp4"): 19, ("mpd", "fmp4"): 37, ("m3u8", "fmp4"): 25}
    own = {pair: counts(bench, *pair) for pair in theirs}
    cached = {pair: counts(bench, *pair, cache="dref") for pair in theirs}
    panel = Panel("Requests to the storage for a manifest", "manifest and format", "requests", [f"{MANIFESTS[kind]}\n{FORMATS[form]}" for kind, form in theirs],
                  {"Millpond, caches off": list(own.values()), "Millpond, dref (thesis: 0)": list(cached.values())}, {"thesis: Table 3.6, requests alone": list(theirs.values())}, bars=True, logarithmic=True)
    ours = "; ".join(f"{FORMATS[form]} {MANIFESTS[kind].split()[0]} {value:.0f}" for (kind, form), value in own.items())
    more = [FORMATS[form] for (_, form), value in own.items() if value > theirs[_, form]]
    return Shown([panel], ours, f"partly: more than the thesis with {', '.join(dict.fromkeys(more))}" if more else "yes, no more than the thesis")


@figure("kylili-table-3-7", *STORAGE)
def ranges_of_segment(bench, stated) -> Shown:
    own = {form: pick(sweep(bench), storage=FAR, connections=1, format=form, cache="off")["origin_requests"] for form in FORMATS}
    panel = Panel("Byte ranges of a single file for a DASH segment", "format", "requests", list(FORMATS.values()), {"Millpond, caches off": list(own.values())},
                  {"thesis: Table 3.7": [stated["ranges"][form] for form in FORMATS]}, bars=True, logarithmic=True)
    more = [FORMATS[form] for form in FORMATS if own[form] > stated["ranges"][form]]
    return Shown([panel], "; ".join(f"{FORMATS[form]} {value:.1f}" for form, value in own.items()), f"partly: more than the thesis with {', '.join(more)}" if more else "yes, no more than the thesis")


@figure("kylili-table-3-8", *STORAGE)
def requests_of_segment(bench, stated) -> Shown:
    pairs = [("dash-low", "mp4"), ("hls-low", "mp4"), ("dash-low", "fmp4"), ("hls-low", "fmp4")]
    theirs = [stated["segment"][f"{kind.split('-')[0]}-{form}"] for kind, form in pairs]
    own = [counts(bench, *pair) for pair in pairs]
    cached = [counts(bench, *pair, cache="dref") for pair in pairs]
    panel = Panel("Requests to the storage for a segment", "segment and format", "requests", [f"{kind.split('-')[0].upper()}\n{FORMATS[form]}" for kind, form in pairs],
                  {"Millpond, caches off": own, "Millpond, dref (thesis: 1 for DASH, 2 for HLS)": cached}, {"thesis: Table 3.8, requests alone": theirs}, bars=True, logarithmic=True)
    ours = "; ".join(f"{kind.split('-')[0].upper()} {FORMATS[form]} {value:.0f} (dref {less:.1f})" for (kind, form), value, less in zip(pairs, own, cached))
    more = [f"{kind.split('-')[0].upper()} {FORMATS[form]}" for (kind, form), value, their in zip(pairs, own, theirs) if value > their]
    return Shown([panel], ours, f"partly: more than the thesis with {', '.join(more)}" if more else "yes, no more than the thesis")


def gained(bench, key: str, storage: str, kinds: dict) -> list:
    """What the dref files change, as a factor, for each kind and format."""
    found = requests(bench)
    return [after / before for form in FORMATS for before, after in zip(values(found, key, storage, kinds, form, "manifest"), values(found, key, storage, kinds, form, "dref"))]


def cached_segments(bench, key: str, unit: str, kinds: dict, factor, note: str) -> Shown:
    """Panels near and far; the thesis's factor is drawn upon our results with the server manifest alone."""
    found, panels = requests(bench), []
    for storage in (NEAR, FAR):
        theirs = {}
        if factor and storage == FAR:
            mean = [statistics.mean(pair) for pair in zip(*(values(found, key, storage, kinds, form, "manifest") for form in FORMATS))]
            theirs = {f"thesis: dref, {factor:g} times our server manifest alone": [value * factor for value in mean]}
        panels.append(by_kind(found, key, storage, kinds, ("manifest", "dref"), unit, "Segments", theirs, note))
    near, far = (gained(bench, key, storage, kinds) for storage in (NEAR, FAR))
    good = (lambda value: value > 1) if key == "rate" else (lambda value: value < 1)
    ours = f"dref over server manifest alone: {span(near)} times near, {span(far)} times at 20 ms"
    return Shown(panels, ours, "yes: dref is better in each case" if all(map(good, near + far)) else "partly")


@figure("kylili-fig-4-7", *STORAGE)
def segments_rate(bench, stated) -> Shown:
    return cached_segments(bench, "rate", "requests a second", SEGMENTS, stated["far-gain"], "The thesis states a factor only, for storage in another cloud.")


@figure("kylili-fig-4-8", *STORAGE)
def large_segments_rate(bench, stated) -> Shown:
    return cached_segments(bench, "rate", "requests a second", {kind: label for kind, label in SEGMENTS.items() if kind.endswith("high")}, 0, ONLY)


@figure("kylili-fig-4-9", *STORAGE)
def segments_time(bench, stated) -> Shown:
    return cached_segments(bench, "ms", "mean, ms", SEGMENTS, 1 - stated["far-falls-percent"] / 100, "The thesis states a share only, for storage in another cloud.")


@figure("kylili-fig-4-10", *STORAGE)
def large_segments_time(bench, stated) -> Shown:
    return cached_segments(bench, "ms", "mean, ms", {kind: label for kind, label in SEGMENTS.items() if kind.endswith("high")}, 0, ONLY)


@figure("kylili-fig-4-11", *STORAGE)
def manifests_time(bench, stated) -> Shown:
    found = requests(bench)
    least = 1 - stated["falls-percent"] / 100
    mean = [statistics.mean(pair) for pair in zip(*(values(found, "ms", FAR, MANIFESTS, form, "manifest") for form in FORMATS))]
    panel = by_kind(found, "ms", FAR, MANIFESTS, ("manifest", "dref"), "mean, ms", "Manifests", {f"thesis: dref, {least:.2f} times our server manifest alone": [value * least for value in mean]},
                    "The thesis states a share only.")
    falls = [100 * (1 - value) for value in gained(bench, "ms", FAR, MANIFESTS)]
    return Shown([panel], f"{span(falls, '{:.1f}')} % less with dref", "yes" if min(falls) >= stated["falls-percent"] - 1 else "partly")


@figure("kylili-fig-4-12", *STORAGE, "chromium", "node", "players")
def startup(bench, stated) -> Shown:
    found = part(bench, "startup", FAR)
    middle = {(one["format"], one["cache"]): statistics.median(one["ms"]) for one in found}
    low, high = stated["falls-percent"]
    theirs = {f"thesis: dref, {share} % less than ours off": [None, None, middle["mp4", "off"] * (1 - share / 100), None] for share in (low, high)}
    panel = Panel(f"Startup with dash.js, {TITLES[FAR]}", "caches", "time to the first picture (median), ms", list(CACHES.values()), {f"Millpond, {name}": [middle[form, cache] for cache in CACHES] for form, name in FORMATS.items()},
                  theirs, bars=True, note="The thesis states a fall of 30 % (tears of steel) and 60 % (sintel); the dashed bars are our MP4 less these shares.")
    falls = {form: 100 * (1 - middle[form, "dref"] / middle[form, "off"]) for form in FORMATS}
    ours = "; ".join(f"{name} {middle[form, 'off']:.0f} to {middle[form, 'dref']:.0f} ms ({falls[form]:.0f} % less)" for form, name in FORMATS.items())
    return Shown([panel], ours, "yes" if min(falls.values()) >= low else "partly")


@figure("kylili-fig-5-3", *STORAGE)
def traffic(bench, stated) -> Shown:
    table = bench.stated("kylili", "kylili-table-5-1")
    own = {form: rates(efficiency(bench, NEAR, form, "dref")) for form in FORMATS}
    names = [f"{name}\n{way}" for name in FORMATS.values() for way in ("in", "out")]
    theirs = {f"thesis: {video}": [table[form][way][number] for form in FORMATS for way in ("in", "out")] for number, video in enumerate(("elephants dream", "sintel", "tears of steel"))}
    panel = Panel("Traffic with dref cached, DASH, 90 connections", "format and direction", "MB/s", names, {"Millpond": [value for pair in own.values() for value in pair]}, theirs, bars=True, logarithmic=True)
    ours = "; ".join(f"{FORMATS[form]} {read:.0f} MB/s in, {out:.0f} out" for form, (read, out) in own.items())
    close = abs(own["mp4"][1] / own["fmp4"][1] - 1) < 0.25
    return Shown([panel], ours, "yes: MP4 and fMP4 are about equal" if close else "partly: MP4 and fMP4 differ by more than a quarter")


@figure("kylili-table-5-1", *STORAGE)
def warm_efficiency(bench, stated) -> Shown:
    panel, with_index, without = conversion(bench, stated, "dref", stated)
    ours = "; ".join(f"{FORMATS[form]} {with_index[form]:.3f} ({without[form]:.3f} without what caching the index read)" for form in FORMATS)
    held = all(with_index[form] >= min(ratios(stated, form)) for form in FORMATS)
    return Shown([panel], ours, "yes, as high or higher" if held else "partly: below the thesis's")


@figure("kylili-fig-5-4", *STORAGE)
def increase(bench, stated) -> Shown:
    own = {form: 100 * (rates(efficiency(bench, NEAR, form, "dref"))[1] / rates(efficiency(bench, NEAR, form, "off"))[1] - 1) for form in FORMATS}
    low, high = ([stated["rises-percent"][form][end] for form in FORMATS] for end in (0, 1))
    panel = Panel("Increase of the outgoing traffic", "format of the storage", "increase with dref, %", list(FORMATS.values()), {"Millpond": list(own.values())},
                  {"thesis: sintel 480p as MP4 (doubled)": [low[0], None], "thesis: tears of steel": high}, bars=True, logarithmic=True)
    return Shown([panel], "; ".join(f"{FORMATS[form]} {value:,.0f} %" for form, value in own.items()), "yes in direction; the gain is larger, as cold titles cost more here" if min(own.values()) > 0 else "no")


@figure("kylili-fig-5-5", *STORAGE)
def latency(bench, stated) -> Shown:
    own = {cache: [efficiency(bench, NEAR, form, cache)["ms"] for form in FORMATS] for cache in ("off", "dref", "all")}
    panel = Panel("Mean latency, DASH, 90 connections, S3 near", "format of the storage", "mean, ms", list(FORMATS.values()), {f"Millpond, {CACHES[cache]}": found for cache, found in own.items()}, bars=True, logarithmic=True, note=ONLY)
    falls = [100 * (1 - after / before) for before, after in zip(own["off"], own["dref"])]
    return Shown([panel], f"{span(falls, '{:.0f}')} % less with dref than with caches off", "yes" if min(falls) > 0 else "no")


def swept(bench, key: str, unit: str, connections: list) -> Shown:
    """Requests by connections, for each format and state of the caches."""
    found = sweep(bench)
    series = {}
    for cache in ("off", "dref", "all"):
        for form, name in FORMATS.items():
            series[f"Millpond, {name}, {CACHES[cache].replace('server manifest and ', '')}"] = [pick(found, connections=count, format=form, cache=cache)[key] for count in connections]
    panel = Panel(f"DASH segments of 200 kbit/s, {TITLES[FAR]}", "connections", unit, connections, series, bars=len(connections) < 3, logarithmic=True, note=ONLY)
    pairs = [(pick(found, connections=count, format=form, cache="off")[key], pick(found, connections=count, format=form, cache="dref")[key]) for count in connections for form in FORMATS]
    factors = [after / before for before, after in pairs]
    good = all(factor > 1 for factor in factors) if key == "rate" else all(factor < 1 for factor in factors)
    mp4, fmp4 = ([pick(found, connections=count, format=form, cache="dref")[key] for count in connections] for form in FORMATS)
    close = span([a / b for a, b in zip(mp4, fmp4)])
    return Shown([panel], f"dref over caches off: {span(factors)} times; with dref, MP4 over fMP4: {close}", "yes: dref is better in each case" if good else "partly")


# Appendix A: what each figure has, and at which connections.
APPENDIX = {1: ("rate", [90]), 2: ("rate", [150]), 3: ("ms", [90]), 4: ("ms", [150]), 5: ("rate", [1, 10, 20, 35]), 6: ("ms", [1, 10, 20, 35]), 7: ("rate", [10, 20]), 8: ("ms", [10, 20])}
UNITS = {"rate": "requests a second", "ms": "mean, ms"}
for number, (key, connections) in APPENDIX.items():
    figure(f"kylili-fig-a-{number}", *STORAGE)(lambda bench, stated, key=key, connections=connections: swept(bench, key, UNITS[key], connections))


@figure("kylili-fig-a-9", *STORAGE)
def one_connection(bench, stated) -> Shown:
    found = part(bench, "single", FAR)
    panel = by_kind(found, "ms", FAR, MANIFESTS, ("off", "manifest", "dref"), "mean, ms", "Manifests over one connection")
    panel.across = "request, one connection"
    falls = [100 * (1 - after / before) for form in FORMATS for before, after in zip(values(found, "ms", FAR, MANIFESTS, form, "manifest"), values(found, "ms", FAR, MANIFESTS, form, "dref"))]
    return Shown([panel], f"{span(falls, '{:.1f}')} % less with dref than with the server manifest alone", "yes" if min(falls) > 50 else "partly")


@figure("kylili-fig-a-10", *STORAGE)
def manifests_by_setup(bench, stated) -> Shown:
    found = requests(bench)
    panels = [by_kind(found, "ms", storage, MANIFESTS, ("manifest", "dref"), "mean, ms", "Manifests") for storage in (NEAR, FAR)]
    ours = "; ".join(f"{TITLES[storage]}: {span(values(found, 'ms', storage, MANIFESTS, 'mp4', 'manifest') + values(found, 'ms', storage, MANIFESTS, 'fmp4', 'manifest'), '{:.0f}')} ms with the server manifest, "
                     f"{span(values(found, 'ms', storage, MANIFESTS, 'mp4', 'dref') + values(found, 'ms', storage, MANIFESTS, 'fmp4', 'dref'))} with dref" for storage in (NEAR, FAR))
    return Shown(panels, ours, "-: nothing in the text to compare with")
