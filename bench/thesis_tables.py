"""Markdown tables and plots of thesis.py, with the thesis's own figures beside."""

import statistics
from pathlib import Path

import storages
import svg

FORMATS = {"mp4": "MP4", "fmp4": "fMP4"}
CACHES = {"off": "off", "manifest": "manifest", "dref": "manifest and dref", "all": "all"}
KINDS = {
    "dash-low": "DASH segment, 200 kbit/s", "dash-high": "DASH segment, 1,000 kbit/s", "hls-low": "HLS segment (TS), 200 kbit/s",
    "hls-high": "HLS segment (TS), 1,000 kbit/s", "mpd": "DASH manifest", "m3u8": "HLS manifest",
}
SEGMENTS = [kind for kind in KINDS if kind not in ("mpd", "m3u8")]
COLUMNS = [(form, cache) for form in FORMATS for cache in CACHES]
# Single files have no server manifest.
ALONE = [(form, cache) for form, cache in COLUMNS if cache != "manifest"]
# Tables 3.4 and 5.1: in and out in MB/s; elephants dream, sintel, tears of steel.
THESIS_EFFICIENCY = {
    ("mp4", "off"): [(110.57, 56.80), (118.17, 53.08), (118.12, 35.7)],
    ("fmp4", "off"): [(100.12, 82.22), (94.45, 79.53), (104.82, 76.31)],
    ("mp4", "dref"): [(113.14, 94.89), (114.72, 99.07), (116.36, 86.65)],
    ("fmp4", "dref"): [(112.63, 95.10), (113.90, 98.21), (109.56, 82.66)],
}
# Tables 3.6 and 3.8, requests alone: for a title of five renditions and one sound file, and for one segment.
THESIS_REQUESTS = {
    ("mpd", "mp4"): "19", ("m3u8", "mp4"): "19", ("mpd", "fmp4"): "37", ("m3u8", "fmp4"): "25",
    ("dash-low", "mp4"): "5", ("hls-low", "mp4"): "9", ("dash-low", "fmp4"): "6", ("hls-low", "fmp4"): "11",
}


def row(cells: list) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(head: list, rows: list) -> str:
    return "\n".join([row(head), "|" + "---|" * len(head), *map(row, rows)]) + "\n"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def pick(results: list, **wanted) -> dict:
    """The one result with these values, or None."""
    return next((found for found in results if all(found[key] == value for key, value in wanted.items())), None)


def names(results: list) -> list:
    return list(dict.fromkeys(found["storage"] for found in results))


def both(found: dict) -> str:
    return f"{number(found['rate'])}, {number(found['ms'])}" if found else ""


def requests(results: list, kinds: list) -> str:
    """Requests a second and mean latency of each kind, storage and state of the caches."""
    head = ["storage", "request"] + [f"{FORMATS[form]}, {CACHES[cache]}" for form, cache in COLUMNS]
    rows = []
    for storage in names(results):
        for kind in kinds:
            cells = [both(pick(results, storage=storage, kind=kind, format=f, cache=c)) for f, c in COLUMNS]
            rows.append([storages.parse(storage).title, KINDS[kind], *cells])
    return table(head, rows)


def span(values: list, form: str) -> str:
    """The least and the most of some values."""
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


def gains(results: list) -> str:
    """What caching the index gains over caching the server manifest alone, for each storage."""
    rows = []
    for storage in names(results):
        pairs = {}
        for kind in KINDS:
            for form in FORMATS:
                of = {c: pick(results, storage=storage, kind=kind, format=form, cache=c) for c in CACHES}
                pairs.setdefault(kind in SEGMENTS, []).append((of["manifest"], of["dref"]))
        rate = [after["rate"] / before["rate"] for before, after in pairs[True]]
        ms = [(after["ms"] / before["ms"] - 1) * 100 for before, after in pairs[True]]
        manifest = [(after["ms"] / before["ms"] - 1) * 100 for before, after in pairs[False]]
        rows.append([storages.parse(storage).title, span(rate, "{:.1f}"), span(ms, "{:.0f} %"), span(manifest, "{:.1f} %")])
    rows.append(["the thesis, storage in another cloud", "about 3 (480p)", "-70 % (480p)", "up to -97 %"])
    return table(["storage", "segments: times the rate", "segments: latency", "manifests: latency"], rows)


def connections(results: list) -> str:
    head = ["storage", "connections"] + [f"{FORMATS[form]}, {CACHES[cache]}" for form, cache in ALONE]
    rows = []
    for storage in names(results):
        for count in dict.fromkeys(found["connections"] for found in results):
            cells = [both(pick(results, storage=storage, connections=count, format=f, cache=c)) for f, c in ALONE]
            rows.append([storages.parse(storage).title, count, *cells])
    return table(head, rows)


def efficiency(results: list) -> str:
    rows = []
    for found in results:
        form, cache = found["format"], found["cache"]
        theirs = THESIS_EFFICIENCY.get((form, cache), [])
        share = lambda key: number(found[key]) if found[key] else "nothing read"
        rows.append([
            storages.parse(found["storage"]).title, FORMATS[form], CACHES[cache], number(found["in"] / 1e6 / found["seconds"]),
            number(found["out"] / 1e6 / found["seconds"]), share("efficiency"), share("efficiency_with_index"),
            span([read for read, _ in theirs], "{:.0f}") if theirs else "", span([sent for _, sent in theirs], "{:.0f}") if theirs else "",
            span([b / a for a, b in theirs], "{:.2f}") if theirs else "",
        ])
    head = ["storage", "stored as", "caches", "in MB/s", "out MB/s", "out/in", "out/in, with the warming", "thesis: in MB/s", "out MB/s", "out/in"]
    return table(head, rows)


def single(results: list) -> str:
    """Latency of manifests over one connection."""
    rows = [[storages.parse(one["storage"]).title, KINDS[one["kind"]], FORMATS[one["format"]], CACHES[one["cache"]], number(one["ms"])] for one in results]
    return table(["storage", "request", "stored as", "caches", "mean latency, ms"], rows)


def to_storage(results: list) -> str:
    """Requests to the storage for one cold request."""
    rows = []
    storage = names(results)[0]
    for kind in ("mpd", "m3u8", "dash-low", "hls-low"):
        for form in FORMATS:
            of = {c: pick(results, storage=storage, kind=kind, format=form, cache=c) for c in CACHES}
            counts = [f"{of[cache]['origin_requests']:.1f}" for cache in ("off", "manifest", "dref")]
            rows.append([KINDS[kind], FORMATS[form], *counts, THESIS_REQUESTS[kind, form]])
    return table(["request", "stored as", "off", "manifest", "manifest and dref", "thesis, off"], rows)


def startup(results: list) -> str:
    rows = []
    for storage in names(results):
        for form in FORMATS:
            of = {c: pick(results, storage=storage, format=form, cache=c) for c in CACHES}
            middle = {cache: statistics.median(found["ms"]) for cache, found in of.items()}
            change = f"{(middle['dref'] / middle['off'] - 1) * 100:.0f} %"
            rows.append([storages.parse(storage).title, FORMATS[form], *(number(middle[cache]) for cache in CACHES), change])
    rows.append(["the thesis, tears of steel", "", "", "", "half a second less", "", "-30 %"])
    rows.append(["the thesis, sintel", "", "", "", "almost 2 s less", "", "-60 %"])
    return table(["storage", "stored as", *CACHES.values(), "dref to off"], rows)


def plots(results: dict, out: Path):
    for storage in names(results["requests"]):
        for name, kinds in (("segments", SEGMENTS), ("manifests", ["mpd", "m3u8"])):
            for figure, unit in (("rate", "requests a second, 10 connections"), ("ms", "mean latency in ms, 10 connections")):
                series = {
                    f"{FORMATS[form]}, {CACHES[cache]}": [
                        (pick(results["requests"], storage=storage, kind=kind, format=form, cache=cache) or {}).get(figure) for kind in kinds
                    ]
                    for form, cache in COLUMNS
                }
                groups = [KINDS[kind].replace(", ", "\n") for kind in kinds]
                title = f"{name.capitalize()}, storage {storages.parse(storage).title}"
                svg.bars(out / f"{name}-{figure}-{storage}.svg", title, unit, groups, series, logarithmic=True)
    for storage in names(results["connections"]):
        points = list(dict.fromkeys(found["connections"] for found in results["connections"]))
        for figure, unit in (("rate", "requests a second"), ("ms", "mean latency in ms")):
            series = {
                f"{FORMATS[form]}, {CACHES[cache]}": [
                    (pick(results["connections"], storage=storage, connections=c, format=form, cache=cache) or {}).get(figure) for c in points
                ]
                for form, cache in ALONE
            }
            title = f"DASH segments of 200 kbit/s by connections, storage {storages.parse(storage).title}"
            svg.lines(out / f"connections-{figure}-{storage}.svg", title, unit, points, series, logarithmic=True)
    if results["efficiency"]:
        ours = {
            FORMATS[form]: [pick(results["efficiency"], format=form, cache=c)["efficiency_with_index"] for c in ("off", "dref")] for form in FORMATS
        }
        mean = lambda form, cache: statistics.mean(b / a for a, b in THESIS_EFFICIENCY[form, cache])
        theirs = {f"{FORMATS[form]}, thesis": [mean(form, "off"), mean(form, "dref")] for form in FORMATS}
        groups = [CACHES[cache] for cache in ("off", "dref")]
        svg.bars(out / "efficiency.svg", "Conversion efficiency", "bytes to clients / bytes from the storage", groups, ours | theirs)
    if results["startup"]:
        series = {}
        for storage in names(results["startup"]):
            for form in FORMATS:
                of = [statistics.median(pick(results["startup"], storage=storage, format=form, cache=c)["ms"]) for c in CACHES]
                series[f"{FORMATS[form]}, {storages.parse(storage).title}"] = of
        svg.bars(out / "startup.svg", "Startup delay in Chromium, dash.js", "ms to the first picture", list(CACHES.values()), series)


def everything(results: dict, out: Path) -> str:
    """All tables as Markdown; writes the plots."""
    text = ""
    if results["requests"]:
        text += "Requests a second and mean latency in ms, segments, 10 connections:\n\n" + requests(results["requests"], SEGMENTS)
        text += "\nThe same for manifests:\n\n" + requests(results["requests"], ["mpd", "m3u8"])
        text += "\nManifest and dref against manifest alone:\n\n" + gains(results["requests"])
        text += "\nRequests to the storage for one request:\n\n" + to_storage(results["requests"])
    if results["single"]:
        text += "\nManifests, one connection:\n\n" + single(results["single"])
    if results["connections"]:
        text += "\nDASH segments of 200 kbit/s by connections, requests a second and mean latency in ms:\n\n" + connections(results["connections"])
    if results["efficiency"]:
        text += "\nConversion efficiency, 90 connections, DASH:\n\n" + efficiency(results["efficiency"])
    if results["startup"]:
        text += "\nStartup delay in Chromium, dash.js, median in ms:\n\n" + startup(results["startup"])
    plots(results, out)
    return text + f"\nThe run took {results['minutes']:.1f} minutes.\n"
