"""What a section is built of: words, facts, tables, figures, code; the page alone knows how they look."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import ClassVar

from markupsafe import Markup


class Block:
    """A piece of a section; its kind names the macro that shows it."""

    kind: ClassVar[str]


@dataclass(frozen=True)
class Words(Block):
    """A paragraph."""

    kind = "words"
    text: str
    aside: bool = False  # smaller, for what qualifies


@dataclass(frozen=True)
class Facts(Block):
    """Names with what they stand for."""

    kind = "facts"
    rows: Sequence[tuple[str, str]]
    title: str = ""

    @property
    def dense(self) -> bool:
        """Whether there are many, and all of them numbers or a word."""
        return len(self.rows) > 9 and all(len(told) < 16 for _, told in self.rows)


@dataclass(frozen=True)
class Grid(Block):
    """A table whose first column names the row; a cell may have several lines."""

    kind = "grid"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figures(Block):
    """Drawings side by side, as many as fit."""

    kind = "figures"
    drawings: Sequence[Markup]


@dataclass(frozen=True)
class Code(Block):
    """Text as it lies in a file or is typed."""

    kind = "code"
    title: str
    text: str


@dataclass(frozen=True)
class Example(Block):
    """What somebody chose, what was recommended, and what they chose next."""

    kind = "example"
    title: str
    history: Sequence[str]  # oldest first
    target: str
    recommended: Sequence[tuple[str, str]]  # title and score


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading of its own."""

    id: str
    title: str
    blocks: Sequence[Block]


def short(number: float) -> str:
    """Four digits without the leading nought."""
    return f"{number:.4f}".replace("0.", ".", 1) if abs(number) < 1 else f"{number:.2f}"


def between(low: float, high: float) -> str:
    """An interval in words."""
    return f"{short(low)} to {short(high)}"


def listed(words: Iterable[str]) -> str:
    """Words as a sentence lists them."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def label(name: str, width: int = 40) -> str:
    """A name as it stands in a drawing: on two lines where it is long, its middle left out past these."""
    half = width - 1
    told = name if len(name) <= 2 * width else f"{name[:half]}…{name[-half:]}"
    return "\n".join(wrap(told, width, break_on_hyphens=False))
