"""Runs of one setting asked as one: measured once, kept beside them, never called a model."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from twoview import Counter, Log, Run, cli
from twoview.data.split import leave_one_out
from twoview.data.synthetic import markov
from twoview.error import RunError
from twoview.evaluate.metrics import metrics
from twoview.evaluate.mixture import WEIGHTS, Ensemble, Remembering
from twoview.evaluate.ranks import Questions, ranks
from twoview.train.ensemble import averaged, averaged_runs
from twoview.train.entry import entries, groups
from twoview.train.folder import Folder, folders

QUICK = ("dim=8", "rows.max_len=6", "rows.batch=32", "fit.precision=float32")
PLAIN = {"run", "model", "protocol", "metrics"}


@pytest.fixture(scope="module")
def log() -> Log:
    return markov(70, 15, 7, 0.8, 0)


@pytest.fixture(scope="module")
def data(log: Log, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "log"
    log.save(folder)
    return folder


@pytest.fixture(scope="module")
def seeds(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one setting, each with a memory."""
    folder = tmp_path_factory.mktemp("seeds") / "sasrec"
    for seed in (0, 1):
        Run.train("sasrec", data, folder / f"seed-{seed}", set=QUICK, epochs=2, seed=seed, memory=True)
    return folder


def test_an_ensemble_stands_beside_the_mean_of_its_runs(seeds: Path, log: Log) -> None:
    (found,) = averaged(seeds)
    singles = [Run.open(seeds / f"seed-{seed}") for seed in (0, 1)]
    assert found.keys() == PLAIN | {"memory", "ensemble"} and found["model"] == "sasrec"
    assert found["protocol"]["seeds"] == [0, 1] and found["run"] == str(seeds)
    for kind in ("metrics", "memory"):
        worths = [each.evaluate()[kind] for each in singles]
        worths = [each.get("metrics", each)["ndcg@20"] for each in worths]
        mean = found[kind].get("metrics", found[kind])["ndcg@20"]
        assert mean == pytest.approx(np.mean(worths))
    assert found["ensemble"]["name"] == "ensemble of 2 sasrec"
    card = Folder(seeds / "ensemble").card()
    mixed = Ensemble([each.model for each in singles], card["temperatures"])
    measured = ranks(mixed, Questions(leave_one_out(log).test, max_len=6))
    cases = singles[0].folder.array("cases_test.npy")
    assert found["ensemble"]["metrics"] == metrics(measured, cases)
    assert found["ensemble"]["memory"]["weight"] == card["memory"]["weight"]


def test_an_ensemble_is_measured_once_and_again_when_a_run_changed(seeds: Path, tmp_path: Path) -> None:
    shutil.copytree(seeds, tmp_path / "runs")
    (found,) = averaged(tmp_path / "runs")
    kept = Folder(tmp_path / "runs" / "ensemble")
    first = kept.card()
    assert first["temperatures"] and [each.path.name for each in folders(tmp_path)] == ["seed-0", "seed-1"]
    kept.write_card(first | {"model": "as it was kept"})
    assert averaged(tmp_path / "runs")[0]["ensemble"]["name"] == "as it was kept"
    shutil.copy(tmp_path / "runs/seed-0/weights.safetensors", tmp_path / "runs/seed-1/weights.safetensors")
    (other,) = averaged(tmp_path / "runs")
    assert other["ensemble"]["name"] == found["ensemble"]["name"]
    assert other["ensemble"]["metrics"] != found["ensemble"]["metrics"]


def test_an_ensemble_recommends_as_it_was_measured(seeds: Path) -> None:
    (run,) = averaged_runs(seeds)
    assert isinstance(run.recommender, Remembering) and isinstance(run.recommender.model, Ensemble)
    assert len(Counter(run).for_items(["item-1"], 4)) == 4 and run.title == str(seeds / "ensemble")


def test_an_ensemble_never_goes_by_the_name_of_a_model(seeds: Path) -> None:
    averaged(seeds)
    found = {entry.name: entry for entry in entries([seeds], ensembles=True)}
    assert len(found) == 4 and sum(name.startswith("ensemble of 2 sasrec") for name in found) == 2
    assert all(
        entry.model.startswith("ensemble") == name.startswith("ensemble") for name, entry in found.items()
    )


def test_a_lone_run_may_stand_beside_an_ensemble(seeds: Path, data: Path, tmp_path: Path) -> None:
    averaged(seeds)
    Run.train("popularity", data, tmp_path / "run")
    found = [entry.name for entry in entries([seeds, tmp_path / "run"], ensembles=True)]
    assert "popularity" in found and sum(name.startswith("ensemble") for name in found) == 2


def test_an_ensemble_wants_runs_of_one_setting(seeds: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"several runs of one setting; .* has one: seed-0"):
        groups(seeds / "seed-0")
    shutil.copytree(seeds / "seed-0", tmp_path / "runs" / "a")
    Run.train("popularity", data, tmp_path / "runs" / "b")
    with pytest.raises(RunError, match="has 2 of 2 settings"):
        averaged(tmp_path / "runs")
    shutil.rmtree(tmp_path / "runs" / "b")
    shutil.copytree(seeds / "seed-1", tmp_path / "runs" / "b")
    with pytest.raises(RunError, match=r"evaluate .* --ensemble"):
        entries([tmp_path / "runs"], ensembles=True)


def test_the_command_line_shows_with_beside_without(seeds: Path, monkeypatch, capsys) -> None:
    def said(*words: object) -> str:
        monkeypatch.setattr("sys.argv", ["twoview", *map(str, words)])
        with pytest.raises(SystemExit):
            cli.main()
        return capsys.readouterr().out

    one = json.loads(said("evaluate", seeds / "seed-0", "--json"))
    assert one.keys() == PLAIN | {"memory"} and one["memory"].keys() == {"weight", "metrics"}
    both = json.loads(said("evaluate", seeds, "--ensemble", "--json"))
    assert both["ensemble"].keys() == {"name", "metrics", "memory"}
    drawn = said("evaluate", seeds, "--ensemble")
    for row in (
        "sasrec with memory (weight",
        "ensemble of 2 sasrec ",
        "ensemble of 2 sasrec with memory (wei",
    ):
        assert row in drawn
    assert len(json.loads(said("compare", seeds, "--ensemble", "--json"))["rows"]) == 4
    items = json.loads(said("recommend", seeds, "--ensemble", "--items", "item-1", "-k", 3, "--json"))[
        "items"
    ]
    assert len(items) == 3


def test_the_card_of_an_ensemble_is_plain(seeds: Path) -> None:
    averaged(seeds)
    card = json.loads((seeds / "ensemble" / "card.json").read_text())
    assert card["seeds"] == [0, 1] and card["members"].keys() == {"seed-0", "seed-1"}
    assert len(card["temperatures"]) == 2 and card["memory"]["weight"] in WEIGHTS
