"""Runs counted as others do, from their folders and through the command line; never beside ours."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from twoview import Run, cli
from twoview.analyse.rescored import Request, compared, evaluations
from twoview.data.synthetic import markov
from twoview.error import ProtocolError, RecipeError, RunError

Twoview = Callable[..., tuple[int, str, str]]
RECIPES = {"item_knn": "memory", "popularity": "best"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rescored")
    markov(50, 1200, 7, 0.8, 0).save(folder / "log")
    for model in ("item_knn", "popularity"):
        Run.train(model, folder / "log", folder / "runs" / model, recipe=RECIPES[model])
    return folder / "runs"


@pytest.fixture
def twoview(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Twoview:
    """The command, run in this process."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["twoview", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            cli.main()
        told = capsys.readouterr()
        return int(left.value.code or 0), told.out, told.err

    return run


def test_counted_our_way_nothing_is_moved(runs: Path) -> None:
    (found,) = evaluations(runs / "popularity", Request())
    assert found.keys() == {"run", "model", "protocol", "metrics"}
    assert found["protocol"]["convention"] == "ours"


@pytest.mark.parametrize("name", ["recbole", "released", "sampled-100"])
def test_an_evaluation_counted_otherwise_says_whose_it_is_and_how_far_it_moved(runs: Path, name: str) -> None:
    ours = evaluations(runs, Request())
    for own, other in zip(ours, evaluations(runs, Request(counted_as=name)), strict=True):
        assert (other["run"], other["model"]) == (own["run"], own["model"])
        assert other["protocol"]["convention"] == name
        for metric, moved in other["moved"].items():
            assert other["metrics"][metric] == pytest.approx(own["metrics"][metric] * (1 + moved))
        assert json.loads(json.dumps(other, allow_nan=False)) == other


def test_seen_items_can_only_stand_in_the_way_and_fewer_rivals_only_help(runs: Path) -> None:
    for path in (runs / "popularity", runs / "item_knn"):
        kept, drawn = (evaluations(path, Request(counted_as=name)) for name in ("recbole", "sampled-100"))
        assert all(moved <= 0 for each in kept for moved in each["moved"].values())
        assert all(moved >= 0 for each in drawn for moved in each["moved"].values())


def test_recbole_is_what_a_run_that_keeps_seen_items_counts(runs: Path, tmp_path: Path) -> None:
    kept = Run.train("popularity", runs.parent / "log", tmp_path / "kept", seen="kept")
    (found,) = evaluations(runs / "popularity", Request(counted_as="recbole"))
    assert found["metrics"] == kept.evaluate()["metrics"]
    with pytest.raises(ProtocolError, match="sampled-100 draws from items not shown before"):
        evaluations(kept.path, Request(counted_as="sampled-100"))


def test_sampled_wants_neither_the_model_nor_the_data(runs: Path, tmp_path: Path) -> None:
    alone = tmp_path / "run"
    alone.mkdir()
    for name in ("card.json", "recipe.toml", "ranks_test.npy", "cases_test.npy"):
        (alone / name).write_bytes((runs / "popularity" / name).read_bytes())
    (found,) = evaluations(alone, Request(counted_as="sampled-100"))
    assert (
        found["metrics"] == evaluations(runs / "popularity", Request(counted_as="sampled-100"))[0]["metrics"]
    )
    with pytest.raises(RunError, match="it lacks weights"):
        evaluations(alone, Request(counted_as="recbole"))


def test_a_comparison_counted_otherwise_has_the_order_both_ways(runs: Path) -> None:
    found = compared([runs], Request(counted_as="recbole"))
    assert found["protocol"]["convention"] == "recbole"
    ours, theirs = found["order"]["ours"], found["order"]["recbole"]
    assert theirs == [row["name"] for row in found["rows"]]
    assert ours == [row["name"] for row in compared([runs], Request())["rows"]]
    assert (found["turned"] == []) == (ours == theirs)


def test_models_that_change_places_are_named(runs: Path, tmp_path: Path) -> None:
    """Two runs whose ranks are written by hand: one wins half its cases, the other is near in all."""
    for model, above in (("item_knn", [0, 99]), ("popularity", [4, 4])):
        shutil.copytree(runs / model, tmp_path / model)
        ranks = np.tile(np.array([[place, 0] for place in above]), (25, 1))
        np.save(tmp_path / model / "ranks_test.npy", ranks)
    found = compared([tmp_path], Request(counted_as="sampled-100"))
    sharp, near = found["order"]["ours"]
    assert (sharp, near) == ("item_knn memory", "popularity")
    assert found["order"]["sampled-100"] == [near, sharp]
    assert found["turned"] == [[sharp, near]]


def test_what_cannot_be_counted_otherwise_is_refused(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no convention 'recbol' to count as; there are recbole"):
        evaluations(runs, Request(counted_as="recbol"))
    with pytest.raises(ProtocolError, match="an ensemble is counted our way alone"):
        compared([runs], Request(counted_as="recbole", ensembles=True))
    markov(50, 120, 7, 0.8, 1).save(tmp_path / "other")
    with pytest.raises(RunError, match="was measured on data"):
        evaluations(runs, Request(counted_as="recbole", data=tmp_path / "other"))


def test_the_verbs_print_whose_counting_it_is(
    runs: Path, twoview: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, _ = twoview("evaluate", runs / "item_knn", "--as", "recbole")
    assert code == 0 and "from ours" in out and "counted as  recbole, never beside ours" in out
    code, out, _ = twoview("compare", runs, "--as", "sampled-100", "--against", "popularity")
    assert code == 0 and "order, sampled-100:" in out and "turned round:" in out
    code, out, err = twoview("compare", runs, "--as", "mine")
    assert code == 2 and out == "" and err.count("\n") == 1 and "there are recbole" in err
    code, out, _ = twoview("compare", runs, "--json")
    found = json.loads(out)
    assert found["family"]["questions"] == 4 and found["questions"][0]["over"] == "users"
