"""Latents by what their history is: how long, and how often its items are met; several ways, named."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.column import Ints
from .sample import Sample

ENDS = (0, 5, 10, 20, 50, 100)  # of the groups, each included
Floats = NDArray[np.float64]


def keys(sample: Sample) -> dict[str, Ints]:
    """Every way to group cases, a count each: [C]"""
    _, _, shown, trained = sample.cases.T
    return {
        "events shown": shown,
        "training events of the newest item": sample.newest,
        "training events of the target": trained,
        "cases that ask for the target": sample.asked,  # the paper's frequency, which counts test cases
    }


def grouped(counts: Ints, columns: dict[str, Floats]) -> list[dict[str, Any]]:
    """Means of columns by group of a count, groups that nobody is in left out: [C], name to [C]"""
    group = np.searchsorted(ENDS, counts)
    return [
        {"group": label(place), "histories": int((group == place).sum())}
        | {name: float(column[group == place].mean()) for name, column in columns.items()}
        for place in np.unique(group).tolist()
    ]


def label(place: int) -> str:
    """A group by its bounds: "6-10"."""
    if place == 0:
        return str(ENDS[0])
    return f"{ENDS[place - 1] + 1}-{ENDS[place]}" if place < len(ENDS) else f"over {ENDS[-1]}"
