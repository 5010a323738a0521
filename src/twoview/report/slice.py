"""For whom the settings are good and for what, side by side: the slices of their ranks, drawn and told."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ..analyse.slice import gains, slices
from ..evaluate.compare import SORTED_BY
from .block import Block, Figures, Grid, Section, Words, between, short
from .chart import Said
from .figure import Interval, grouped
from .material import Group, Material

SETTINGS = 6  # side by side
SHOWN = {
    "training frequency": "How often the target was trained on",
    "target frequency": "How often the target is asked for",
    "history length": "How long the history is",
}
Sliced = dict[str, Sequence[Mapping[str, Any]]]  # a setting's groups


def sliced(material: Material) -> Section:
    """A figure and a table for each way to part the cases, the best settings side by side."""
    best = material.groups[:SETTINGS]
    drawings, grids = [], []
    for by, question in SHOWN.items():
        found = {group.name: slices(*held(group), by) for group in best}
        rows: Sliced = {
            name: [part for part in each["groups"] if part["users"]] for name, each in found.items()
        }
        title = f"{question}: {SORTED_BY} by {found[best[0].name]['means']}"
        drawings.append(drawing(by, title, rows))
        grids.append(table(title, rows))
    note = f"Intervals are {material.sure}, bootstrap over the users of a group, seeds averaged first."
    left_out = len(material.groups) - len(best)
    more = f" The best {len(best)} settings are shown, {left_out} left out." if left_out else ""
    blocks: list[Block] = [Words(note + more, aside=True), Figures(drawings), *grids]
    if len(best) > 1:
        blocks.append(Words(gained(*best[:2])))
    return Section("slices", "For whom, and for what", blocks)


def held(group: Group) -> tuple[list[Any], Any]:
    """The ranks of every seed, and the cases they all answered."""
    entries = group.setting.runs
    return [entry.ranks for entry in entries], entries[0].cases


def drawing(by: str, title: str, rows: Sliced) -> Markup:
    """A figure of the groups."""
    intervals = {name: [interval(part) for part in parts] for name, parts in rows.items()}
    told = "; ".join(
        f"{name}: {', '.join(short(one.mean) for one in values)}" for name, values in intervals.items()
    )
    parts = next(iter(rows.values()))
    labels = [f"{label(part)}  ({part['users']:,})" for part in parts]
    said = Said(f"slice-{by.replace(' ', '-')}", f"{title}, users beside", told)
    return grouped(said, labels, intervals)


def table(title: str, rows: Sliced) -> Grid:
    """The numbers of the groups."""
    parts = next(iter(rows.values()))
    columns = ("", *(f"{label(part)}\n{part['users']:,} users" for part in parts))
    cells = [[name, *(cell(interval(part)) for part in parts)] for name, parts in rows.items()]
    return Grid(title, columns, cells)


def interval(part: Mapping[str, Any]) -> Interval:
    """What a group's users get."""
    number = part["metrics"][SORTED_BY]
    return Interval(number["mean"], number["low"], number["high"])


def label(part: Mapping[str, Any]) -> str:
    """The counts that a group holds."""
    first, end = part["begin"], part["end"]
    if end is None:
        return f"{first}+"
    return str(first) if first == end - 1 else f"{first}–{end - 1}"


def cell(value: Interval) -> str:
    """A number over its interval."""
    return f"{short(value.mean)}\n{between(value.low, value.high)}"


def gained(best: Group, other: Group) -> str:
    """How many users gain by the best setting over the next, and how many lose."""
    (ranks, cases), (others, _) = held(best), held(other)
    told = gains(ranks, others, cases)["metrics"][SORTED_BY]
    return (
        f"User by user, {best.name} beside {other.name}: {told['improved']:.1%} gain in {SORTED_BY}, "
        f"{short(told['mean_improvement'])} each in the mean, and {told['harmed']:.1%} lose, "
        f"{short(abs(told['mean_harm']))} each."
    )
