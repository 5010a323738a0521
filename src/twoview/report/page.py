"""One self-contained page about some runs: it opens from disk, prints, and asks nothing of any network."""

import os
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..error import RunError
from ..train.folder import beside
from .block import Section
from .example import examples
from .health import health, robustness
from .learning import learning
from .material import Material, material
from .origin import data, recipes, reproduction
from .slice import sliced
from .worth import comparison, headline, protocol

SECTIONS = (
    protocol, comparison, learning, sliced, robustness, health, examples, recipes, reproduction, data,
)  # fmt: skip


def page(found: Material) -> str:
    """The page as HTML."""
    title, lead = headline(found)
    sections: list[Section] = [section(found) for section in SECTIONS]
    here = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=here, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html").render(title=title, lead=lead, sections=sections)


def report(paths: Sequence[Path], out: Path, *, force: bool = False) -> str:
    """Writes the page about the runs at or below some paths; says what it holds."""
    if os.path.lexists(out) and not force:
        raise RunError(f"{out} exists; choose another name or replace it with --force")
    if out.is_dir():
        raise RunError(f"a file was wanted for the page; {out} is a folder")
    found = material(paths)
    text = page(found)
    out.parent.mkdir(parents=True, exist_ok=True)
    with beside(out) as part:
        part.write_text(text, encoding="utf-8")
    return f"{out}: {headline(found)[0]} ({len(found.runs)} runs, {len(text) / 1e6:.1f} MB)"
