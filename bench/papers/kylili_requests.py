"""Segments and manifests by caches and connections: chapter 4 and appendix A of Kylili's thesis."""

import statistics

from papers.figure import Shown, figure
from papers.kylili_runs import STORAGE, NEAR, FAR, TITLES, FORMATS, CACHES, SEGMENTS, MANIFESTS, ONLY, part, requests, sweep, values, by_kind, span
from papers.plot import Panel
from thesis_tables import pick


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
    return Shown([panel], f"{span(falls, '{:.1f}')} % less with dref than with the server manifest alone", "yes" if max(falls) >= stated["falls-percent"] - 1 else "partly")


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
