"""Several runs as one table: seeds of a setting together, every mean with its interval, one protocol only."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.table import Table

from ..data.column import Ints
from ..error import ProtocolError
from .metrics import METRICS, Floats, per_user
from .protocol import Card, refuse_mixed

SORTED_BY = "ndcg@20"
SHOWN = ("recall@20", "ndcg@20", "recall@40", "ndcg@40")
CONFIDENCE = 0.95
DRAWS = 1000  # bootstrap samples of users


@dataclass(frozen=True, eq=False, kw_only=True)
class Entry:
    """One run, as far as a comparison looks into it."""

    name: str  # of its setting: runs that differ by seed alone share it
    model: str
    seed: int
    card: Card
    data_md5: str
    ranks: Ints  # [C, 2]
    cases: Ints  # [C, 4]


@dataclass(frozen=True, eq=False)
class Setting:
    """The runs of one setting; what a paired test takes two of, users and seeds in the same order in both."""

    runs: tuple[Entry, ...]  # by seed, each another one

    def values(self, metric: str) -> Floats:
        """A metric of every run for every user: [seeds, users]"""
        return np.stack([per_user(run.ranks, run.cases, metric) for run in self.runs])


def settings(entries: Sequence[Entry]) -> list[Setting]:
    """Entries grouped by setting, once it is sure that they may be compared."""
    if not entries:
        raise ProtocolError("compare wants runs; none came")
    labels = [f"{entry.name} (seed {entry.seed})" for entry in entries]
    refuse_mixed(dict(zip(labels, (entry.card for entry in entries), strict=True)))
    first = entries[0]
    groups: dict[tuple[str, str], dict[int, Entry]] = {}
    for label, entry in zip(labels, entries, strict=True):
        if entry.data_md5 != first.data_md5:
            raise ProtocolError(
                f"{labels[0]} saw data {first.data_md5} and {label} {entry.data_md5}; one was wanted"
            )
        if not np.array_equal(entry.cases, first.cases):
            raise ProtocolError(f"{labels[0]} and {label} were asked different cases; the same were wanted")
        group = groups.setdefault((entry.name, entry.model), {})
        if entry.seed in group:
            raise ProtocolError(f"{label} came twice; each seed of a setting counts once")
        group[entry.seed] = entry
    return [Setting(tuple(group[seed] for seed in sorted(group))) for group in groups.values()]


def comparison(entries: Sequence[Entry]) -> dict[str, Any]:
    """The protocol, the data and a row a setting, best first; plain enough for json."""
    rows = sorted((row(setting) for setting in settings(entries)), key=_place)
    seeds = sorted({entry.seed for entry in entries})
    card = asdict(replace(entries[0].card, seeds=seeds))
    return {"protocol": card, "data_md5": entries[0].data_md5, "confidence": CONFIDENCE, "rows": rows}


def row(setting: Setting) -> dict[str, Any]:
    """Every metric of a setting with its mean, its spread over seeds and its interval."""
    first, seeds = setting.runs[0], [run.seed for run in setting.runs]
    values = np.stack([setting.values(metric) for metric in METRICS], axis=-1)  # [seeds, users, metrics]
    means = values.mean(1)
    low, high = t_interval(means) if len(seeds) > 1 else bootstrap_interval(values[0])
    spread = means.std(0, ddof=1).tolist() if len(seeds) > 1 else [None] * len(METRICS)
    columns = zip(METRICS, means.mean(0).tolist(), spread, low.tolist(), high.tolist(), strict=True)
    return {
        "name": first.name,
        "model": first.model,
        "seeds": seeds,
        "interval": f"t over {len(seeds)} seeds"
        if len(seeds) > 1
        else f"bootstrap over {values.shape[1]} users",
        "metrics": {
            name: dict(zip(("mean", "spread", "low", "high"), each, strict=True)) for name, *each in columns
        },
    }


def t_interval(means: Floats) -> tuple[Floats, Floats]:
    """Where the mean over all seeds lies, from some: [seeds, M] -> [M], [M]"""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # heavy, and nothing else here wants it

    n_seeds = len(means)
    reach = stdtrit(n_seeds - 1, (1 + CONFIDENCE) / 2) * means.std(0, ddof=1) / np.sqrt(n_seeds)
    return means.mean(0) - reach, means.mean(0) + reach


def bootstrap_interval(values: Floats) -> tuple[Floats, Floats]:
    """Where the mean over all users lies, from some drawn again and again: [users, M] -> [M], [M]"""
    generator, n_users = np.random.default_rng(0), len(values)
    draws = (np.bincount(generator.integers(n_users, size=n_users), minlength=n_users) for _ in range(DRAWS))
    means = np.stack([draw @ values for draw in draws]) / n_users
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return low, high


def _place(row: Mapping[str, Any]) -> tuple[float, str]:
    return -row["metrics"][SORTED_BY]["mean"], row["name"]


def table(compared: Mapping[str, Any]) -> Table:
    """A comparison for a terminal: a row a setting, each number with its interval."""
    caption = "\n".join(Card(**compared["protocol"]).lines())
    said = sorted({each["interval"] for each in compared["rows"]})
    caption += f"\nintervals   {compared['confidence']:.0%}, {'; '.join(said)}"
    drawn = Table("", caption=caption, caption_justify="left", box=SIMPLE, padding=(0, 1))
    for metric in SHOWN:
        drawn.add_column(metric, justify="right", no_wrap=True)
    for each in compared["rows"]:
        seeds = f"{len(each['seeds'])} seed{'s' * (len(each['seeds']) > 1)}"
        drawn.add_row(f"{each['name']}\n{seeds}", *(_cell(each["metrics"][metric]) for metric in SHOWN))
    return drawn


def _cell(number: Mapping[str, float | None]) -> str:
    spread = "" if number["spread"] is None else f" ± {_short(number['spread'])}"
    return f"{_short(number['mean'])}{spread}\n{_short(number['low'])} to {_short(number['high'])}"


def _short(number: float | None) -> str:
    """Four digits without the leading nought."""
    return f"{number:.4f}".replace("0.", ".", 1)
