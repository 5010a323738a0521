"""Where a model is good: metrics by how often an item is met and how long a history is, from ranks alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.column import Ints
from ..error import ProtocolError, RecipeError
from ..evaluate.compare import CONFIDENCE, SHOWN
from ..evaluate.metrics import METRICS, Floats, by_user
from ..evaluate.significance import bootstrap

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def target_count(cases: Ints) -> Ints:
    """How many users have the case's target as theirs, the paper's frequency: [C, 4] -> [C]"""
    pairs = np.unique(cases[:, :2], axis=0)
    return np.bincount(pairs[:, 1])[cases[:, 1]]


@dataclass(frozen=True)
class Slicing:
    """A count of every case, and where groups of it begin; the last has no end."""

    means: str
    count: Callable[[Ints], Ints]  # [C, 4] -> [C]
    begins: tuple[int, ...]


SLICINGS = {
    "target frequency": Slicing("held-out users with this target", target_count, (0, 10, 20, 30, 40)),
    "training frequency": Slicing(
        "training events of the target", lambda cases: cases[:, 3], (0, 1, 5, 10, 20, 50, 100)
    ),
    "history length": Slicing("events shown", lambda cases: cases[:, 2], (0, 10, 20, 30, 40)),
    "cold": Slicing("training events of the target, none or some", lambda cases: cases[:, 3], (0, 1)),
}


def slices(ranks: Sequence[Ints], cases: Ints, by: str) -> dict[str, Any]:
    """Every metric shown, group by group, its mean over the seeds' ranks with an interval over users.

    A user with cases in several groups counts in each, by the mean of the cases there.
    """
    if by not in SLICINGS:
        raise RecipeError(f"no slices by {by!r}; there are {', '.join(SLICINGS)}")
    if not len(cases) or any(len(each) != len(cases) for each in ranks):
        came = ", ".join(str(len(each)) for each in ranks)
        raise ProtocolError(f"slices want ranks for each of {len(cases)} cases, and some; {came} came")
    slicing = SLICINGS[by]
    group = np.searchsorted(slicing.begins, slicing.count(cases), side="right") - 1
    values = np.stack([np.mean([METRICS[name](each) for each in ranks], axis=0) for name in SHOWN], axis=1)
    rows = []
    for place, begin in enumerate(slicing.begins):
        own = group == place
        end = slicing.begins[place + 1] if place + 1 < len(slicing.begins) else None
        label = f"[{begin}, {'inf' if end is None else end})"
        rows.append({"group": label, "begin": begin, "end": end} | _measured(values[own], cases[own]))
    return {"by": by, "means": slicing.means, "seeds": len(ranks), "confidence": CONFIDENCE, "groups": rows}


def _measured(values: Floats, cases: Ints) -> dict[str, Any]:
    """Some cases' size and metrics; no metrics where there is nobody: [C, M], [C, 4]"""
    if not len(cases):
        return {"users": 0, "cases": 0, "metrics": None}
    each = np.stack([by_user(column, cases) for column in values.T], axis=1)  # [users, M]
    low, high = bootstrap(each, CONFIDENCE)
    columns = zip(SHOWN, each.mean(0).tolist(), low.tolist(), high.tolist(), strict=True)
    return {
        "users": len(each),
        "cases": len(cases),
        "metrics": {
            name: dict(zip(("mean", "low", "high"), column, strict=True)) for name, *column in columns
        },
    }


def gains(a: Sequence[Ints], b: Sequence[Ints], cases: Ints) -> dict[str, Any]:
    """What each user gains by a over b, metric by metric: who does, by how much, how it is spread.

    A user's value is the mean over the seeds of a setting.
    """
    found = {}
    for name in SHOWN:
        mine, theirs = (np.mean([METRICS[name](each) for each in some], axis=0) for some in (a, b))
        gain = by_user(mine - theirs, cases)
        (low,), (high,) = bootstrap(gain[:, None], CONFIDENCE)
        better, worse = gain[gain > 0], gain[gain < 0]
        found[name] = {
            "mean": float(gain.mean()),
            "low": float(low),
            "high": float(high),
            "improved": len(better) / len(gain),
            "harmed": len(worse) / len(gain),
            "mean_improvement": float(better.mean()) if len(better) else 0.0,
            "mean_harm": float(worse.mean()) if len(worse) else 0.0,
            "quantiles": {str(q): float(np.quantile(gain, q)) for q in QUANTILES},
        }
    return {"users": len(gain), "confidence": CONFIDENCE, "metrics": found}
