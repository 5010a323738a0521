"""Several runs as one table: seeds of a setting together, every difference tested, one protocol only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from ..data.column import Ints
from ..error import ProtocolError
from .metrics import Floats, Worth, by_user, plainly
from .protocol import Card, refuse_mixed
from .significance import (
    FLIPS,
    Estimate,
    bootstrap,
    crossed,
    effect,
    flipped,
    holm,
    paired,
    relabelled,
    welch,
)

SORTED_BY = "ndcg@20"
SHOWN = ("recall@20", "ndcg@20", "recall@40", "ndcg@40")
CONFIDENCE = 0.95
POWER = 0.8
FEW = 3  # settings of which every pair is shown


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
    counted: Callable[[Ints, Ints, int], Worth] = plainly  # ranks, cases and candidates as metrics
    path: str = ""  # its folder, where it has one


@dataclass(frozen=True, eq=False)
class Setting:
    """The runs of one setting; what a paired test takes two of, users and seeds in the same order in both."""

    runs: tuple[Entry, ...]  # by seed, each another one

    @property
    def name(self) -> str:
        return self.runs[0].name

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]

    @cached_property
    def by_metric(self) -> dict[str, Floats]:
        """Every metric of every run for every user: [seeds, users] by name"""
        worths = [run.counted(run.ranks, run.cases, run.card.candidates) for run in self.runs]
        return {
            name: np.stack([by_user(worth[name], self.runs[0].cases) for worth in worths])
            for name in worths[0]
        }

    def values(self, metric: str) -> Floats:
        """A metric of every run for every user: [seeds, users]"""
        return self.by_metric[metric]


@dataclass(frozen=True, eq=False)
class Question:
    """Whether one setting differs from another in one metric."""

    a: Setting
    b: Setting
    metric: str

    @cached_property
    def difference(self) -> Floats:
        """By how much each user's mean over seeds is larger in a: [users]"""
        return self.a.values(self.metric).mean(0) - self.b.values(self.metric).mean(0)

    @property
    def tables(self) -> list[Floats]:
        """Where seeds are the same in both, their differences, else both settings: [seeds, users]"""
        a, b = (setting.values(self.metric) for setting in (self.a, self.b))
        return [a - b] if self.a.seeds == self.b.seeds else [a, b]

    @property
    def repeated(self) -> bool:
        """Whether both have seeds to say what another would do."""
        return min(len(self.a.seeds), len(self.b.seeds)) > 1

    @cached_property
    def estimate(self) -> Estimate:
        """The difference for other users, and for other seeds as well where there are two or more."""
        return crossed(self.difference, self.tables if self.repeated else [])

    def over_seeds(self) -> dict[str, Any]:
        """Student's test of the seeds' means, and the same by dealing seeds anew."""
        means = [table.mean(1) for table in self.tables]
        alone = len(means) == 1
        dealt = flipped(means[0][:, None]) if alone else relabelled(means[0][:, None], means[1][:, None])
        known = paired(means[0]) if alone else welch(*means)
        return {"how": "paired t" if alone else "Welch", "p": tail(known), "exact_p": float(dealt[0])}


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


def comparison(entries: Sequence[Entry], against: str | None = None) -> dict[str, Any]:
    """The protocol, the data, a row a setting, best first, and every question; plain enough for json."""
    found = ranked(settings(entries))
    seeds = sorted({entry.seed for entry in entries})
    pairs, n_pairs = asked(found, against)
    n_questions = n_pairs * len(SHOWN)
    questions = [Question(a, b, metric) for a, b in pairs for metric in SHOWN]
    return {
        "protocol": asdict(replace(entries[0].card, seeds=seeds)),
        "data_md5": entries[0].data_md5,
        "confidence": CONFIDENCE,
        "rows": [row(setting) for setting in found],
        "family": {"pairs": n_pairs, "metrics": list(SHOWN), "questions": n_questions},
        "questions": answers(questions, n_questions) if questions else [],
    }


def ranked(found: Sequence[Setting]) -> list[Setting]:
    """Settings by their mean, best first."""
    return sorted(found, key=lambda setting: (-setting.values(SORTED_BY).mean(), setting.name))


def asked(found: Sequence[Setting], against: str | None) -> tuple[list[tuple[Setting, Setting]], int]:
    """The pairs to show, and how many the family has: who picks the best has looked at every pair."""
    if against is None:
        every = list(combinations(found, 2))
        return (every if len(found) <= FEW else every[: len(found) - 1]), len(every)
    named = [setting for setting in found if setting.name == against]
    if not named:
        names = ", ".join(setting.name for setting in found)
        raise ProtocolError(f"no setting {against!r} to compare against; there are {names}")
    pairs = [(other, named[0]) for other in found if other is not named[0]]
    return pairs, len(pairs)


def row(setting: Setting) -> dict[str, Any]:
    """Every metric of a setting with its mean, its spread over seeds and its interval."""
    seeds, names = setting.seeds, list(setting.by_metric)
    values = np.stack(list(setting.by_metric.values()), axis=-1)  # [seeds, users, metrics]
    means = values.mean(1)
    several = len(seeds) > 1
    low, high = t_interval(means) if several else bootstrap(values[0], CONFIDENCE)
    spread = means.std(0, ddof=1).tolist() if several else [None] * len(names)
    columns = zip(names, means.mean(0).tolist(), spread, low.tolist(), high.tolist(), strict=True)
    return {
        "name": setting.name,
        "model": setting.runs[0].model,
        "seeds": seeds,
        "interval": f"t over {len(seeds)} seeds" if several else f"bootstrap over {values.shape[1]} users",
        "metrics": {
            name: dict(zip(("mean", "spread", "low", "high"), each, strict=True)) for name, *each in columns
        },
    }


def answers(questions: Sequence[Question], n_questions: int) -> list[dict[str, Any]]:
    """Each question with its tests, its sizes and whether it may be called answered."""
    differences = np.stack([question.difference for question in questions], axis=1)  # [users, questions]
    if len(differences) < 2:
        raise ProtocolError(f"a test wants two users or more; {len(differences)} came")
    flips, (low, high) = flipped(differences), bootstrap(differences, CONFIDENCE)
    columns = zip(flips.tolist(), low.tolist(), high.tolist(), strict=True)
    over_users = [dict(zip(("p", "low", "high"), column, strict=True)) for column in columns]
    found = [answer(*each) for each in zip(questions, over_users, strict=True)]
    for each, raised in zip(found, holm([each["p"] for each in found], n_questions), strict=True):
        each |= {"holm": raised, "shown": raised < 1 - CONFIDENCE}
    return found


def answer(question: Question, over_users: Mapping[str, float]) -> dict[str, Any]:
    """One question: the test that decides is over users and seeds, or over users where seeds are too few."""
    known, base = question.estimate, float(question.b.values(question.metric).mean())
    both = {"p": tail(known), "error": known.error, "freedom": known.freedom} if question.repeated else None
    sure = quantile(known.freedom, (1 + CONFIDENCE) / 2) * known.error
    around = {"low": known.mean - sure, "high": known.mean + sure}
    return {
        "a": question.a.name,
        "b": question.b.name,
        "metric": question.metric,
        "difference": known.mean,
        "relative": known.mean / base if base else None,
        **(around if both else {side: over_users[side] for side in ("low", "high")}),
        "d_z": effect(question.difference),
        "smallest": sure + quantile(known.freedom, POWER) * known.error,
        "users": dict(over_users) | {"flips": FLIPS},
        "seeds": question.over_seeds() if both else None,
        "both": both,
        "over": "users and seeds" if both else "users",
        "p": both["p"] if both else over_users["p"],
    }


def t_interval(means: Floats) -> tuple[Floats, Floats]:
    """Where the mean over all seeds lies, from some: [seeds, M] -> [M], [M]"""
    n_seeds = len(means)
    reach = quantile(n_seeds - 1, (1 + CONFIDENCE) / 2) * means.std(0, ddof=1) / np.sqrt(n_seeds)
    return means.mean(0) - reach, means.mean(0) + reach


def quantile(freedom: float, share: float) -> float:
    """Student's quantile."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # heavy, and nothing else here wants it

    return float(stdtrit(freedom, share))


def tail(known: Estimate) -> float:
    """How often Student's t lies at least as far from 0 as an estimate does, two-sided."""
    from scipy.special import stdtr

    if not known.error:
        return float(known.mean == 0)
    return float(2 * stdtr(known.freedom, -abs(known.mean) / known.error))
