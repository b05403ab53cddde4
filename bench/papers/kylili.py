"""Traffic, conversion efficiency and requests to the storage of Kylili's thesis."""

import statistics

from papers.figure import Shown, figure
from papers.kylili_runs import (
    STORAGE, NEAR, FAR, LOCAL, TITLES, FORMATS, CACHES, SEGMENTS, MANIFESTS, ONLY, part, requests, sweep, values, efficiency, rates, ratios,
    span,
)
from papers.plot import Panel
from thesis_tables import pick


@figure("kylili-fig-3-4", *STORAGE)
def local_and_remote(bench, stated) -> Shown:
    cells = {(storage, form): rates(efficiency(bench, storage, form, "off")) for storage in (LOCAL, NEAR) for form in FORMATS}
    names = [f"{TITLES[storage]}\n{FORMATS[form]}" for storage, form in cells]
    falls = stated["falls-percent"]
    table = bench.stated("kylili", "kylili-table-3-4")
    theirs = {f"thesis: {way} (Table 3.4, mean of three videos)": [None, None] + [statistics.mean(table[form][way]) for form in FORMATS] for way in ("in", "out")}
    theirs["thesis: out, less by 59 % (MP4) and 30 % (fMP4) of our local"] = [None, None] + [cells[LOCAL, form][1] * (1 - falls[form] / 100) for form in FORMATS]
    panel = Panel("Traffic with cold titles, DASH, 90 connections", "storage and format", "MB/s", names, {"Millpond: in from S3": [None if storage == LOCAL else cell[0] for (storage, _), cell in cells.items()],
                  "Millpond: out": [cell[1] for cell in cells.values()]}, theirs, bars=True, logarithmic=True,
                  note="The local values of the thesis are in the picture only.")
    own = {form: 100 * (1 - cells[NEAR, form][1] / cells[LOCAL, form][1]) for form in FORMATS}
    ours = "; ".join(f"{FORMATS[form]}: {cells[LOCAL, form][1]:.0f} MB/s local, {cells[NEAR, form][1]:.0f} from S3 ({own[form]:.0f} % less)" for form in FORMATS)
    beside = ", ".join(f"{FORMATS[form]} falls by {own[form]:.0f} % beside {falls[form]} %" for form in FORMATS)
    return Shown([panel], ours, f"{'yes in direction' if min(own.values()) > 0 else 'no'}: {beside}")


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
