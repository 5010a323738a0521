"""The page as a browser lays it out: nothing is cut, nothing overlaps, both schemes, phone to desktop."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from twoview.report.material import material
from twoview.report.page import page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium is installed")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--hide-scrollbars",
)
WIDTHS = (360, 390, 768, 960, 1280)
SCHEMES = ("light", "dark")
MEASURE = (Path(__file__).parent / "measure.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=["runs", "crowd"])
def measured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """What the browser found at every width and in both schemes."""
    folder = tmp_path_factory.mktemp("browser")
    text = json.dumps(page(material([request.getfixturevalue(request.param)]))).replace("</", "<\\/")
    told = f"const PAGE = {text}, WIDTHS = {list(WIDTHS)}, SCHEMES = {list(SCHEMES)};"
    around = folder / "around.html"
    around.write_text(f"<!doctype html><meta charset=utf-8><body><script>{told}{MEASURE}</script>", "utf-8")
    flags = (*FLAGS, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000", "--dump-dom")
    done = subprocess.run(
        [str(BROWSER), *flags, around.as_uri()], capture_output=True, text=True, timeout=120, check=False
    )
    shown = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    assert shown is not None, done.stderr[-500:]
    found: list[dict[str, Any]] = json.loads(html.unescape(shown[1]))
    assert [each["seen"] for each in found] == [width for width in WIDTHS for _ in SCHEMES]
    return found


@pytest.mark.parametrize("fault", ["over", "cut", "wide", "stacked", "requests"])
def test_nothing_overlaps_is_cut_or_asked_for(measured: list[dict[str, Any]], fault: str) -> None:
    faults = {(each["width"], each["scheme"]): each[fault] for each in measured if each[fault]}
    assert faults == {}


def test_no_width_scrolls_sideways(measured: list[dict[str, Any]]) -> None:
    assert [each["width"] for each in measured if each["scroll"] > 0] == []


def test_every_section_takes_its_place(measured: list[dict[str, Any]]) -> None:
    assert all(len(each["sections"]) == 10 for each in measured)


def test_figures_can_be_read_at_every_width(measured: list[dict[str, Any]]) -> None:
    assert [each["width"] for each in measured if each["tiny"]] == []


def test_the_page_follows_the_reader_s_scheme(measured: list[dict[str, Any]]) -> None:
    assert {(each["scheme"], each["page"]) for each in measured} == {
        ("light", "rgb(255, 255, 255)"),
        ("dark", "rgb(21, 22, 23)"),
    }
