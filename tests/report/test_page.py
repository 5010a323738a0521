"""A page holds everything, says nothing that the runs do not, and asks nothing of anybody."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from twoview import cli
from twoview.data.synthetic import markov
from twoview.error import ProtocolError, RunError
from twoview.report.block import short
from twoview.report.material import Group, Material, material
from twoview.report.origin import training
from twoview.report.page import page, report

SECTIONS = [
    "protocol", "comparison", "learning", "slices", "robustness", "health", "examples", "recipes",
    "reproduce", "data",
]  # fmt: skip


@pytest.fixture(scope="module")
def html(found: Material) -> str:
    return page(found)


@pytest.fixture
def copy(runs: Path, tmp_path: Path) -> Path:
    """Runs that a test may spoil."""
    return shutil.copytree(runs, tmp_path / "runs")


def section(html: str, id: str) -> str:
    """A section's own part of a page."""
    start = html.index(f'<section id="{id}"')
    return html[start : html.index("</section>", start)]


def change(path: Path, **told: object) -> None:
    """Other values in a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | told))


def test_every_section_is_there_in_order(html: str) -> None:
    assert re.findall(r'<section id="([^"]+)"', html) == SECTIONS


def test_nothing_leaves_the_page(html: str) -> None:
    targets = re.findall(r'(?:src|href|action|data|srcset)\s*=\s*"([^"]*)"', html)
    assert targets and all(target.startswith("#") for target in targets)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", html))
    assert "default-src 'none'" in html
    assert not re.search(r"https?:|@import|<script|<link|<img", html)


def test_an_id_stands_once_and_is_there_when_it_is_named(html: str) -> None:
    counts = Counter(re.findall(r'\sid="([^"]+)"', html))
    assert [name for name, count in counts.items() if count > 1] == []
    named = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', html)
    labels = [word for told in re.findall(r'aria-labelledby="([^"]+)"', html) for word in told.split()]
    assert {name for pair in named for name in pair if name} | set(labels) <= set(counts)


def test_the_same_runs_make_the_same_page(runs: Path, html: str) -> None:
    assert page(material([runs])) == html


def test_the_headline_is_the_comparison_s_first_row(found: Material, html: str) -> None:
    best = found.compared["rows"][0]
    title = html[html.index("<h1>") : html.index("</h1>")]
    assert best["name"] in title and short(best["metrics"]["ndcg@20"]["mean"]) in title
    assert f"{best['metrics']['recall@20']['mean']:.1%} of 60 users" in html


def test_every_setting_stands_with_its_interval(found: Material, html: str) -> None:
    shown = section(html, "comparison")
    for row in found.compared["rows"]:
        for metric in ("recall@20", "ndcg@20", "recall@40", "ndcg@40"):
            number = row["metrics"][metric]
            assert f"{short(number['low'])} to {short(number['high'])}" in shown
    for question in found.compared["questions"]:
        assert f"{question['a']} - {question['b']}" in shown


def test_every_term_has_its_curve(found: Material, html: str) -> None:
    shown = section(html, "learning")
    told = {name for run in found.runs for name in run.story[-1]} & {"likelihood", "kl", "contrast"}
    assert told == {"likelihood", "kl", "contrast"}
    assert all(f">{term}</text>" in shown for term in told)
    assert "popularity has no curve" in shown


def test_the_groups_of_a_slice_hold_all_users(html: str) -> None:
    shown = section(html, "slices")
    tables = shown.split("<table")[1:]
    heads = [table[: table.index("</thead>")] for table in tables]
    assert [sum(int(n) for n in re.findall(r"(\d+) users", head)) for head in heads] == [60, 60, 60]


def test_titles_are_text_and_never_markup(html: str) -> None:
    shown = section(html, "examples")
    assert "Tea &amp; &lt;b&gt;toast&lt;/b&gt;" in shown and "u&lt;1&gt;" in shown
    assert "which is in the list" in shown and "<b>toast" not in html


def test_a_diagnosis_is_told_with_its_numbers(html: str) -> None:
    shown = section(html, "health")
    for told in (
        "seed 0: collapsed",
        "0 of 8 units are active",
        "try a lower cap",
        "kl total",
        "0.25",
        "1-5",
    ):
        assert told in shown
    assert "kl per dimension</text>" in shown


def test_robustness_is_drawn_by_rising_share(html: str) -> None:
    shown = section(html, "robustness")
    assert shown.count("<figure>") == 2
    assert "sasrec dim=8 rows.max_len=6 rows.batch=32 from 0.3 to 0.2" in shown


def test_what_no_run_holds_is_said_with_the_way_to_make_it(copy: Path) -> None:
    for path in [*copy.rglob("diagnosis.json"), *copy.rglob("robustness.json"), *copy.rglob("examples.json")]:
        path.unlink()
    html = page(material([copy]))
    assert "twoview diagnose" in section(html, "health")
    assert "robustness.json" in section(html, "robustness")
    assert "twoview recommend" in section(html, "examples")


def test_data_that_moved_or_changed_is_not_described(copy: Path, html: str) -> None:
    assert "60, 0 of them" in section(html, "data")
    for path in copy.rglob("card.json"):
        told = json.loads(path.read_text())["data"]
        change(path, data=told | {"folder": str(copy / "gone")})
    assert "no longer in" in section(page(material([copy])), "data")
    markov(50, 15, 7, 0.8, 1).save(copy.parent / "other")
    for path in copy.rglob("card.json"):
        change(path, data=json.loads(path.read_text())["data"] | {"folder": str(copy.parent / "other")})
    assert "no longer in" in section(page(material([copy])), "data")


def test_the_commands_make_the_same_runs_again(
    found: Material, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in [run for run in found.runs if run.card["model"] != "contrastvae"]:
        words = shlex.split(training(run))
        out = words.index("--out") + 1
        again = tmp_path / Path(words[out]).name
        if run.card["seed"]:
            assert again.exists()  # one command makes all seeds
            continue
        monkeypatch.setattr(sys, "argv", [*words[:out], str(again), *words[out + 1 :]])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert not left.value.code
        for made in run.folder.path.parent.glob("seed-*") if run.card["how"]["seeds"] else [run.folder.path]:
            for name in ("recipe.toml", "ranks_test.npy"):
                below = made.relative_to(words[out]) / name
                assert (again / below).read_bytes() == (Path(words[out]) / below).read_bytes()


def test_a_setting_with_a_memory_is_trained_once(found: Material) -> None:
    first = found.groups[0]
    entries = tuple(replace(run.entry, name=f"{first.name} with memory") for run in first.runs)
    beside = tuple(replace(run, entry=entry) for run, entry in zip(first.runs, entries, strict=True))
    other = Group({"name": f"{first.name} with memory"}, first.setting, beside)
    both = replace(found, groups=(other, *found.groups))
    assert both.trained == list(found.groups) and both.runs == found.runs


def unfinished(runs: Path) -> None:
    change(runs / "sasrec" / "card.json", finished=False)


def without_ranks(runs: Path) -> None:
    (runs / "sasrec" / "ranks_test.npy").unlink()


def half_ranks(runs: Path) -> None:
    path = runs / "sasrec" / "ranks_test.npy"
    path.write_bytes(path.read_bytes()[:200])


def two_protocols(runs: Path) -> None:
    path = runs / "sasrec" / "card.json"
    told = json.loads(path.read_text())["protocol"]
    change(path, protocol=told | {"test": told["test"] | {"seen": "kept"}})


def two_data_sets(runs: Path) -> None:
    path = runs / "sasrec" / "card.json"
    change(path, data=json.loads(path.read_text())["data"] | {"md5": "0" * 32})


def nothing_asked(runs: Path) -> None:
    change(runs / "sasrec" / "card.json", protocol={})


def no_json(runs: Path) -> None:
    (runs / "sasrec" / "robustness.json").write_text('{"metric": ')


def other_json(runs: Path) -> None:
    (runs / "sasrec" / "robustness.json").write_text('{"metric": "ndcg@20", "rows": [{"share": 1}]}')


def no_verdict(runs: Path) -> None:
    (runs / "contrastvae" / "diagnosis.json").write_text("[]")


def no_examples(runs: Path) -> None:
    (runs / "sasrec" / "examples.json").write_text('[{"user": "u"}]')


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (unfinished, "--resume"),
        (without_ranks, r"lacks ranks_test\.npy"),
        (half_ranks, "no whole array"),
        (two_protocols, "wants one protocol; seen is"),
        (two_data_sets, "saw data"),
        (nothing_asked, "asked nothing in test"),
        (no_json, "robustness.json is no JSON"),
        (other_json, "wants a metric and rows of corruption"),
        (no_verdict, "diagnosis.json wants what"),
        (no_examples, "examples.json wants a list"),
    ],
)
def test_runs_that_cannot_share_a_page_are_refused(
    copy: Path, tmp_path: Path, spoil: Callable[[Path], None], line: str
) -> None:
    spoil(copy)
    with pytest.raises((RunError, ProtocolError), match=line) as refused:
        report([copy], tmp_path / "page.html")
    assert "\n" not in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


def test_a_page_that_exists_gives_way_to_force_alone(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "page.html"
    assert str(out) in report([runs / "popularity"], out)
    out.write_text("mine")
    with pytest.raises(RunError, match="exists; choose another name"):
        report([runs / "popularity"], out)
    assert out.read_text() == "mine"
    report([runs / "popularity"], out, force=True)
    assert out.read_text().startswith("<!doctype html>")
    with pytest.raises(RunError, match="a file was wanted"):
        report([runs / "popularity"], tmp_path, force=True)


def test_a_single_run_is_no_race(runs: Path) -> None:
    html = page(material([runs / "popularity"]))
    assert "is first of" not in html and "popularity: ndcg@20" in html
    assert re.findall(r'<section id="([^"]+)"', html) == SECTIONS


def test_a_page_is_drawn_without_torch(runs: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from twoview.report.page import report;"
        "report([Path(sys.argv[1])], Path(sys.argv[2])); print(*sys.modules)"
    )
    words = [sys.executable, "-c", code, str(runs), str(tmp_path / "page.html")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"torch", "polars", "matplotlib.pyplot"} & set(done.stdout.split()) == set()
