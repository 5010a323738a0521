"""A drawing kit: matplotlib's SVG as part of a page, its text as text, its colours the page's own variables.

Figures are drawn in stand-in colours that become CSS variables, so one drawing serves light and dark pages;
each series has a marker and a dash of its own, so it can be read without any colour.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH = 4.4  # inches, what a phone shows without shrinking
INK, RULE, PAGE = "#010101", "#010102", "#010103"
HUES = tuple(f"#0102{number:02x}" for number in range(6))
MARKERS = "osD^vPX*"
DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
VARIABLES = {INK: "ink", RULE: "rule", PAGE: "page"} | {
    hue: f"hue-{number}" for number, hue in enumerate(HUES)
}
LOOK: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "twoview",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "legend.frameon": False,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.labelcolor", "ytick.labelcolor"), INK
    ),
    **dict.fromkeys(("axes.edgecolor", "grid.color", "xtick.color", "ytick.color"), RULE),
}


class Style(NamedTuple):
    """How a series looks: no two of the first 120 share marker, dash and hue."""

    color: str
    marker: str
    dash: Any


class Said(NamedTuple):
    """What a figure is called, and what is in it for those who cannot see it."""

    id: str
    title: str
    description: str


def style(number: int) -> Style:
    """The look of a series by its place."""
    return Style(HUES[number % len(HUES)], MARKERS[number % len(MARKERS)], DASHES[number % len(DASHES)])


@contextmanager
def panels(rows: int, height: float) -> Iterator[tuple[Figure, Sequence[Axes]]]:
    """Axes above one another that share their x, in the page's look."""
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure, list(figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0])


def drawn(figure: Figure, said: Said) -> Markup:
    """A figure as an element of the page, named for those who listen to it."""
    file = io.StringIO()
    with matplotlib.rc_context(LOOK):
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    box = re.search(r'viewBox="[^"]+"', text)
    assert box is not None
    body = text[text.index("</metadata>") + len("</metadata>") : text.rindex("</svg>")]
    body = re.sub(r"<style.*?</style>|(?<=<g) id=\"[^\"]+\"", "", body)  # the page's own style rules
    body = re.sub(r"font-family: [^;]+; ", "", body)
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{said.id}-", body)  # ids are of the whole page
    for stand_in, name in VARIABLES.items():
        body = body.replace(stand_in, f"var(--{name})")
    label = f'role="img" aria-labelledby="{said.id}-title {said.id}-desc"'
    title = f'<title id="{said.id}-title">{escape(said.title)}</title>'
    description = f'<desc id="{said.id}-desc">{escape(said.description)}</desc>'
    shown = f"<figcaption>{escape(said.title)}</figcaption>"
    return Markup(f"<figure>{shown}<svg {box[0]} {label}>{title}{description}{body}</svg></figure>")
