"""A figure or table of a paper: its name, what it needs, and how ours is measured."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

FOLDER = Path(__file__).resolve().parent
PAPERS = ["sproxy", "amps", "srinilta", "espeland", "kylili"]


@dataclass
class Shown:
    """What a measurement gave: the parts of its plot, our figures in words, and how they compare with the paper's statement."""

    panels: list
    ours: str
    holds: str
    """`yes`, `no` or `partly` with a reason; `-` where the text has nothing to compare with."""


@dataclass
class Figure:
    """One row of the page."""

    name: str
    measure: Callable
    """Called with the bench and what the paper states; gives what is shown."""
    needs: tuple


REGISTRY: dict = {}


def figure(name: str, *needs: str):
    """Declares the function below as the measurement of a figure."""

    def declare(function):
        REGISTRY[name] = Figure(name, function, needs)
        return function

    return declare


def stated() -> dict:
    """What the papers state: a dict of papers, each with its figures in order."""
    return {paper: tomllib.loads((FOLDER / f"{paper}.toml").read_text()) for paper in PAPERS}


def figures_of(paper: dict) -> dict:
    """The figures among a paper's entries."""
    return {name: entry for name, entry in paper.items() if isinstance(entry, dict)}
