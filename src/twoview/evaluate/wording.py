"""A comparison for a person: every number with its interval, every difference in plain words."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from .compare import SHOWN, SORTED_BY
from .protocol import Card

FOLD = 3  # times as much: from there on a percentage says little
COLUMNS = ("", "difference", "from", "to", "d_z", "smallest", "p users", "p seeds", "p both", "Holm", "")


def lines(compared: Mapping[str, Any]) -> Iterator[Table | str]:
    """The settings, what each pair differs by, and what may be said of it."""
    yield table(compared)
    if compared["questions"]:
        yield from differences(compared)
        yield from (says(each) for each in compared["questions"] if each["metric"] == SORTED_BY)
    if "order" in compared:
        yield from (f"order, {whose}: {' > '.join(names)}" for whose, names in compared["order"].items())
        turned = "; ".join(f"{a} and {b}" for a, b in compared["turned"])
        yield f"turned round: {turned or 'no two'}"


def table(compared: Mapping[str, Any]) -> Table:
    """A row a setting, each number with its interval."""
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


def differences(compared: Mapping[str, Any]) -> Iterator[Table | str]:
    """A table a pair, how large each difference is, how sure, and what could have been seen."""
    pairs: dict[tuple[str, str], Table] = {}
    for each in compared["questions"]:
        pair = each["a"], each["b"]
        if pair not in pairs:
            pairs[pair] = Table(title=f"{pair[0]} - {pair[1]}", title_justify="left", box=SIMPLE)
            for name in COLUMNS:
                pairs[pair].add_column(name, justify="right", no_wrap=True)
        tests = [each["users"]["p"], *(each[name] and each[name]["p"] for name in ("seeds", "both"))]
        pairs[pair].add_row(
            each["metric"],
            *(f"{each[name]:+.4f}" for name in ("difference", "low", "high")),
            f"{each['d_z']:+.3f}",
            f"{each['smallest']:.4f}",
            *map(chance, [*tests, each["holm"]]),
            "shown" if each["shown"] else "",
        )
    yield from pairs.values()
    family, flips = compared["family"], compared["questions"][0]["users"]["flips"]
    asked = f"{family['questions']} questions: {family['pairs']} pairs, {len(family['metrics'])} metrics"
    yield f"from, to    {compared['confidence']:.0%}, over users, and over seeds where there are two or more"
    yield "d_z         the mean difference in deviations of the users' own"
    yield "smallest    the difference that data like these would show four times in five"
    yield f"p           users: {flips:,} flips of sign; seeds: Student's t; both: users and seeds at random"
    yield f"Holm        {asked}"


def says(each: Mapping[str, Any]) -> str:
    """A question and its answer in a sentence."""
    where = "above" if each["difference"] > 0 else "below"
    by = f"{where} {each['b']} {size(each['relative'])}" if each["difference"] else f"level with {each['b']}"
    verdict = "shown" if each["shown"] else "not shown"
    if each["over"] == "users" and each["shown"]:
        verdict = "shown for these very runs; more seeds would say whether for others"
    p, holm = chance(each["p"]), chance(each["holm"])
    sure = f"p {p if p.startswith('<') else f'= {p}'} over {each['over']}, Holm {holm}"
    return f"{each['a']} {by} in {each['metric']} ({sure}): {verdict}"


def size(share: float | None) -> str:
    """A relative difference, as a percentage or, where it is many times as much, as a multiple."""
    if share is None:
        return "from nothing"
    return f"by {abs(share):.1%}" if share < FOLD - 1 else f"{1 + share:.1f}-fold"


def chance(p: float | None) -> str:
    """A probability in two digits, without the leading nought."""
    if p is None:
        return "-"
    if p < 1e-4:
        return "<.0001"
    digits = 2 if p >= 0.01 else 4 if p < 0.001 else 3
    return f"{p:.{digits}f}".replace("0.", ".", 1)


def _cell(number: Mapping[str, float | None]) -> str:
    spread = "" if number["spread"] is None else f" ± {_short(number['spread'])}"
    return f"{_short(number['mean'])}{spread}\n{_short(number['low'])} to {_short(number['high'])}"


def _short(number: float | None) -> str:
    """Four digits without the leading nought."""
    return f"{number:.4f}".replace("0.", ".", 1)
