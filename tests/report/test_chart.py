"""Figures are part of the page: their text is text, their colours are the page's, nothing needs colour."""

import re
from pathlib import Path

import pytest
from markupsafe import Markup

import twoview.report
from twoview.report.block import between, label, listed, short
from twoview.report.chart import DASHES, HUES, MARKERS, VARIABLES, Said, style
from twoview.report.figure import Interval, Line, bands, bars, curves, dots, grouped, plain, stacked

SAID = Said("here", "What & why", 'from "1" to <2>')
SOME = Interval(0.5, 0.4, 0.6)
LINES = [Line("one", [1, 2, 3], [3.0, 2.0, 1.0], 0, 1), Line("two", [1, 2, 3], [1.0, 2.0, 3.0], 1)]
FIGURES = {
    "dots": lambda: dots(SAID, {"one": SOME, "two": SOME}, {"one": [0.45, 0.55], "two": []}),
    "curves": lambda: curves(SAID, LINES, across="epoch", up="ndcg@20"),
    "stacked": lambda: stacked(SAID, {"one": LINES, "kl": LINES}, across="epoch"),
    "grouped": lambda: grouped(SAID, ["one", "1–4 (12)"], {"two": [SOME, SOME]}),
    "bands": lambda: bands(SAID, {"one": [(0.0, SOME), (0.2, SOME)]}, across="share", up="two"),
    "bars": lambda: bars(SAID, ["one", "5+"], [3, 1200]),
}
CSS = (Path(twoview.report.__file__).parent / "page.css").read_text()


@pytest.fixture(scope="module", params=list(FIGURES))
def svg(request: pytest.FixtureRequest) -> Markup:
    return FIGURES[request.param]()


def test_no_colour_is_the_figure_s_own(svg: Markup) -> None:
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?!-)", svg) == []
    assert set(re.findall(r"var\(--([^)]+)\)", svg)) <= set(VARIABLES.values())
    assert "var(--hue-" in svg


def test_text_is_text(svg: Markup) -> None:
    assert re.search(r"<text[^>]*>[^<]*one", svg) and "font-family" not in svg


def test_a_figure_says_what_it_shows_to_those_who_listen(svg: Markup) -> None:
    assert 'role="img" aria-labelledby="here-title here-desc"' in svg
    assert '<title id="here-title">What &amp; why</title>' in svg
    assert '<desc id="here-desc">from &#34;1&#34; to &lt;2&gt;</desc>' in svg


def test_a_figure_shrinks_with_the_page_and_rules_nothing_in_it(svg: Markup) -> None:
    (head,) = re.findall(r"<svg[^>]*>", svg)
    assert "viewBox" in head and "width" not in head and "<style" not in svg


def test_a_figure_is_the_same_every_time() -> None:
    assert all(draw() == draw() for draw in FIGURES.values())


def test_series_differ_without_colour() -> None:
    styles = [style(number) for number in range(len(MARKERS) * len(DASHES))]
    assert len({(look.marker, str(look.dash)) for look in styles}) == len(styles)
    assert len({look.color for look in styles}) == len(HUES)


def test_a_line_s_best_point_and_every_name_are_drawn_once() -> None:
    svg = FIGURES["curves"]()
    assert svg.count(">one</text>") == 1 and svg.count(">two</text>") == 1


def luminance(colour: str) -> float:
    """How bright a colour is, as WCAG 2 counts it."""
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_everything_can_be_told_from_the_page_in_both_schemes(scheme: int) -> None:
    colours = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{3,6})", CSS.split(":root {", 3)[1 + scheme]))
    assert set(VARIABLES.values()) <= set(colours)
    for name in ("ink", "soft", "link", *(f"hue-{number}" for number in range(len(HUES)))):
        assert contrast(colours[name], colours["page"]) >= 4.5, name
    assert contrast(colours["ink"], colours["wash"]) >= 4.5


def test_numbers_are_short_and_keep_their_value() -> None:
    assert [short(x) for x in (0.1234, -0.0012, 0.0, 1.0, 0.99999)] == [
        ".1234",
        "-.0012",
        ".0000",
        "1.00",
        "1.0000",
    ]
    assert [plain(x) for x in (0.25, 0.0, 10.5, -0.5, 1e-5)] == [".25", "0", "10.5", "-.5", "1e-05"]
    assert between(0.1, 0.25) == ".1000 to .2500"


def test_names_take_two_lines_and_lose_their_middle_past_these() -> None:
    assert label("a" * 40) == "a" * 40
    assert label("a" * 30 + " " + "b" * 30) == "a" * 30 + "\n" + "b" * 30
    assert label("a" * 60 + "b" * 60) == "a" * 39 + "…\n" + "b" * 39


def test_words_are_listed_as_a_sentence() -> None:
    assert [listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
