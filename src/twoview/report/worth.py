"""What the runs are worth: a headline in words, every setting with its interval, and how it was counted."""

import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from ..evaluate.compare import POWER, SHOWN, SORTED_BY
from ..evaluate.protocol import Card
from ..evaluate.wording import chance, says
from .block import Block, Facts, Figures, Grid, Section, Words, between, short
from .chart import Said
from .figure import Interval, dots
from .material import Group, Material

FOUND = "recall@20"


def headline(material: Material) -> tuple[str, list[str]]:
    """What a reader takes home: a title, and sentences with the numbers behind it."""
    best, *others = material.groups
    number = best.row["metrics"][SORTED_BY]
    title = f"{best.name}: {SORTED_BY} {short(number['mean'])}"
    if others:
        title = f"{best.name} is first of {len(others) + 1}: {SORTED_BY} {short(number['mean'])}"
    return title, [reach(best, material), *(f"{says(each)}." for each in nearest(material))]


def reach(best: Group, material: Material) -> str:
    """How often the best setting has the target among the first twenty."""
    card, found = material.compared["protocol"], best.row["metrics"][FOUND]
    return (
        f"Of {card['candidates']:,} items it puts the one chosen next among the first 20 for "
        f"{found['mean']:.1%} of {card['users']:,} users ({material.sure} interval {found['low']:.1%} to "
        f"{found['high']:.1%}, {best.row['interval']})."
    )


def nearest(material: Material) -> list[Mapping[str, Any]]:
    """The question whether the best setting is above the next."""
    first = {(group.name, SORTED_BY) for group in material.groups[:1]}
    return [each for each in material.compared["questions"] if (each["a"], each["metric"]) in first][:1]


def comparison(material: Material) -> Section:
    """Dots with intervals, and the same in a table."""
    figures = [compared(material, metric, number) for number, metric in enumerate((SORTED_BY, FOUND))]
    rows = [
        [
            f"{group.name}\n{len(group.runs)} seed{'s' * (len(group.runs) > 1)}",
            *(cell(group, each) for each in SHOWN),
        ]
        for group in material.groups
    ]
    metrics = list(material.groups[0].row["metrics"])
    means = [
        [group.name, *(short(group.row["metrics"][metric]["mean"]) for metric in metrics)]
        for group in material.groups
    ]
    said = "; ".join(sorted({group.row["interval"] for group in material.groups}))
    note = f"Intervals are {material.sure}: {said}. Another seed and other users are two different questions."
    blocks: list[Block] = [
        Figures(figures),
        Words(note, aside=True),
        Grid("Mean, spread over seeds, interval", ("", *SHOWN), rows),
        Grid("Every metric, means", ("", *metrics), means),
    ]
    if material.compared["questions"]:
        blocks += differences(material)
    return Section("comparison", "Comparison", blocks)


def differences(material: Material) -> list[Block]:
    """A row a pair, every question with its answer, and how to read them."""
    asked, family = material.compared["questions"], material.compared["family"]
    told: dict[str, list[str]] = {}
    for each in asked:
        told.setdefault(f"{each['a']} - {each['b']}", []).append(answered(each))
    over = " or ".join(dict.fromkeys(each["over"] for each in asked))
    note = (
        f"p is over {over}; Holm corrects for {family['questions']} questions ({family['pairs']} pairs, "
        f"{len(family['metrics'])} metrics). d_z is the mean difference in deviations of the users' own, "
        f"smallest the difference that data like these would show with power {POWER:.0%}."
    )
    rows = [[pair, *answers] for pair, answers in told.items()]
    return [Grid("Differences, tested", ("", *family["metrics"]), rows), Words(note, aside=True)]


def answered(question: Mapping[str, Any]) -> str:
    """A difference with its interval, its size and its chance."""
    return "\n".join(
        [
            signed(question["difference"]),
            f"{signed(question['low'])} to {signed(question['high'])}",
            f"d_z {question['d_z']:+.3f}",
            f"smallest {short(question['smallest'])}",
            f"p {chance(question['p'])}, Holm {chance(question['holm'])}",
            "shown" if question["shown"] else "not shown",
        ]
    )


def signed(number: float) -> str:
    """Four digits and a sign."""
    return f"{'-' if number < 0 else '+'}{short(abs(number))}"


def compared(material: Material, metric: str, number: int) -> Markup:
    """Every setting's dot for one metric."""
    rows, seeds = {}, {}
    for group in material.groups:
        value = group.row["metrics"][metric]
        rows[group.name] = Interval(value["mean"], value["low"], value["high"])
        several = group.setting.values(metric).mean(1).tolist()
        seeds[group.name] = several if len(several) > 1 else []
    told = "; ".join(f"{name} {short(value.mean)}, {between(*value[1:])}" for name, value in rows.items())
    said = Said(
        f"compared-{number}", f"{metric}: means, {material.sure} intervals, rings for single seeds", told
    )
    return dots(said, rows, seeds)


def cell(group: Group, metric: str) -> str:
    """A number with its spread and its interval."""
    number = group.row["metrics"][metric]
    spread = "" if number["spread"] is None else f" ± {short(number['spread'])}"
    return f"{short(number['mean'])}{spread}\n{between(number['low'], number['high'])}"


def protocol(material: Material) -> Section:
    """The card that every number here was counted under."""
    lines = Card(**material.compared["protocol"]).lines()
    rows = [(name, told) for name, told in (re.split(r"\s{2,}", line, maxsplit=1) for line in lines)]
    rows.append(("data", f"arrays md5 {material.compared['data_md5']}"))
    return Section("protocol", "How it was counted", [Facts(rows)])
