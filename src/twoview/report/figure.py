"""The figures of a page: dots with intervals, curves, panels; all numbers come in, none is computed here."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .block import label, short
from .chart import INK, PAGE, RULE, Said, Style, drawn, panels, style

ROOM_FOR_NAME = 0.19  # inches of a line
STEPS = (1, 2, 5, 10)  # between ticks


class Interval(NamedTuple):
    """A number and where it may lie."""

    mean: float
    low: float
    high: float


class Line(NamedTuple):
    """A curve: several of one name, seeds of a setting, share a look."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    look: int
    marked: int | None = None  # the place of the point that counts


def dots(said: Said, rows: Mapping[str, Interval], seeds: Mapping[str, Sequence[float]]) -> Markup:
    """A dot and its interval for each row, the single seeds as rings, the name above."""
    names = {name: label(f"{name}  {short(value.mean)}") for name, value in rows.items()}
    n_lines = lines_of(names.values()) / len(rows)
    with panels(1, 0.5 + (0.28 + 0.17 * n_lines) * len(rows)) as (figure, (axes,)):
        for y, (name, value) in enumerate(rows.items()):
            look = style(y)
            axes.plot([value.low, value.high], [y, y], color=look.color, linewidth=2.2, solid_capstyle="butt")
            axes.plot(
                seeds[name], [y] * len(seeds[name]), "o", markersize=6, markerfacecolor="none",
                markeredgecolor=look.color, markeredgewidth=0.8,
            )  # fmt: skip
            axes.plot(value.mean, y, look.marker, color=look.color, markersize=6.5, markeredgecolor=PAGE)
            axes.annotate(
                names[name], (0, y), xycoords=("axes fraction", "data"),
                xytext=(2, 6), textcoords="offset points", color=INK,
            )  # fmt: skip
        axes.set_ylim(len(rows) - 0.6, -0.75)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.margins(x=0.06)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
        axes.xaxis.set_major_formatter(FuncFormatter(plain))
        return drawn(figure, said)


def curves(said: Said, lines: Sequence[Line], *, across: str, up: str) -> Markup:
    """Curves over one another, the point that counts marked, names below."""
    names = dict.fromkeys(line.name for line in lines)
    with panels(1, 2.3 + ROOM_FOR_NAME * lines_of(map(label, names))) as (figure, (axes,)):
        for line in lines:
            plot(axes, line)
        axes.set_xlabel(across)
        axes.set_title(up)
        finished(figure, [axes])
        return drawn(figure, said)


def stacked(said: Said, parts: Mapping[str, Sequence[Line]], *, across: str) -> Markup:
    """A panel for each part, one above the other, their x shared."""
    names = dict.fromkeys(line.name for lines in parts.values() for line in lines)
    with panels(len(parts), 0.5 + 1.15 * len(parts) + ROOM_FOR_NAME * lines_of(map(label, names))) as (
        figure,
        all_axes,
    ):
        for axes, (name, lines) in zip(all_axes, parts.items(), strict=True):
            for line in lines:
                plot(axes, line)
            axes.set_title(name)
        all_axes[-1].set_xlabel(across)
        finished(figure, all_axes)
        return drawn(figure, said)


def grouped(said: Said, labels: Sequence[str], rows: Mapping[str, Sequence[Interval]]) -> Markup:
    """For each group the dots and intervals of all rows, one under the other in the same order."""
    step, room = 1 / (len(rows) + 1), ROOM_FOR_NAME * lines_of(map(label, rows))
    with panels(1, 0.5 + len(labels) * max(0.42, 0.13 + 0.13 * len(rows)) + room) as (figure, (axes,)):
        for number, (name, values) in enumerate(rows.items()):
            look = style(number)
            y = [group + (number + 1) * step - 0.5 for group in range(len(labels))]
            mean, low, high = zip(*values, strict=True)
            axes.hlines(y, low, high, color=look.color, linewidth=1.6)
            axes.plot(
                mean, y, look.marker, color=look.color, label=label(name), markersize=4.5, clip_on=False
            )
        listing(axes, labels)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
        axes.xaxis.set_major_formatter(FuncFormatter(plain))
        for edge in range(1, len(labels)):
            axes.axhline(edge - 0.5, color=RULE, linewidth=0.6)
        axes.set_xlim(left=0)
        named(figure, axes)
        return drawn(figure, said)


def bands(
    said: Said, rows: Mapping[str, Sequence[tuple[float, Interval]]], *, across: str, up: str
) -> Markup:
    """Curves with the band in which each may lie."""
    with panels(1, 2.3 + ROOM_FOR_NAME * lines_of(map(label, rows))) as (figure, (axes,)):
        for number, (name, points) in enumerate(rows.items()):
            x, values = zip(*points, strict=True)
            mean, low, high = zip(*values, strict=True)
            plot(axes, Line(name, x, mean, number))
            axes.fill_between(x, low, high, color=style(number).color, alpha=0.18, linewidth=0)
        axes.set_xlabel(across)
        axes.set_title(up)
        axes.set_ylim(bottom=0)
        finished(figure, [axes], whole=False)
        return drawn(figure, said)


def bars(said: Said, labels: Sequence[str], counts: Sequence[float]) -> Markup:
    """A bar for each label, its count beside it."""
    with panels(1, 0.2 + 0.24 * len(labels)) as (figure, (axes,)):
        beside = axes.barh(range(len(counts)), counts, color=style(0).color, height=0.7)
        axes.bar_label(beside, [f"{count:,.0f}" for count in counts], color=INK, padding=3)
        listing(axes, labels)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.margins(x=0.15)
        return drawn(figure, said)


def listing(axes: Axes, labels: Sequence[str]) -> None:
    """Puts the labels down the side, the first on top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


def plot(axes: Axes, line: Line) -> None:
    """Draws a curve; it is named once, a lone point gets a marker, the point that counts a ring."""
    look: Style = style(line.look)
    known = axes.get_legend_handles_labels()[1]
    name = label(line.name)
    axes.plot(
        line.x, line.y, color=look.color, linestyle=look.dash, linewidth=1.4,
        marker=look.marker, markersize=4, markevery=max(1, len(line.x) // 8),
        label="_" if name in known else name,
    )  # fmt: skip
    if line.marked is not None:
        axes.plot(
            line.x[line.marked], line.y[line.marked], "o", markersize=10, markerfacecolor="none",
            markeredgecolor=look.color, markeredgewidth=1.2, clip_on=False,
        )  # fmt: skip


def finished(figure: Figure, all_axes: Sequence[Axes], *, whole: bool = True) -> None:
    """Sets ticks and the names below; x counts in whole steps unless told otherwise."""
    for axes in all_axes:
        axes.grid(axis="y")
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=STEPS))
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=STEPS, integer=whole))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(plain))
    named(figure, all_axes[0])


def named(figure: Figure, axes: Axes) -> None:
    """Puts the names of what is drawn below it."""
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside lower left", ncols=1, handlelength=3.2, labelspacing=0.3)


def plain(value: float, _: int | None = None) -> str:
    """A tick as short as it can be said."""
    return f"{value:.4g}".replace("0.", ".", 1) if 0 < abs(value) < 1 else f"{value:.4g}"


def lines_of(names: Iterable[str]) -> int:
    """How many lines the names take, one under the other."""
    return sum(name.count("\n") + 1 for name in names)
