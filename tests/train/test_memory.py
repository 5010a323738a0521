"""A memory beside a run: chosen on validation, kept, and shown beside the plain model."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from twoview import Counter, Log, Run
from twoview.data.split import leave_one_out
from twoview.data.synthetic import markov
from twoview.error import ProtocolError
from twoview.evaluate.metrics import metrics
from twoview.evaluate.mixture import WEIGHTS, Remembering
from twoview.evaluate.ranks import Questions, ranks
from twoview.train.entry import entries
from twoview.train.folder import Folder
from twoview.train.group import wants_memory
from twoview.train.memory import SETTINGS, counted

QUICK = ("dim=8", "rows.max_len=6", "rows.batch=32", "fit.precision=float32")
CPU = torch.device("cpu")
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
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A model that has learnt little beside a memory that knows the rule."""
    return Run.train("sasrec", data, tmp_path_factory.mktemp("run") / "run", set=QUICK, epochs=1, memory=True)


def ranks_by(run: Run, recommender, log: Log, name: str):
    cases = leave_one_out(log).held[name]
    return ranks(recommender, Questions(cases, max_len=6))


def test_a_run_keeps_its_memory_and_the_card_says_what_was_chosen(run: Run) -> None:
    added = {"memory.safetensors", "ranks_memory_valid.npy", "ranks_memory_test.npy"}
    assert added <= {each.name for each in run.path.iterdir()}
    told = run.folder.card()["memory"]
    assert told["weight"] in WEIGHTS and told["temperature"] > 0
    assert told["settings"]["window"] == 50
    assert {name: told["settings"][name] for name in SETTINGS[0]} in SETTINGS


def test_a_memory_lifts_a_model_that_has_learnt_little(run: Run) -> None:
    found = run.evaluate()
    assert found.keys() == PLAIN | {"memory"}
    assert found["memory"]["weight"] > 0
    assert found["memory"]["metrics"]["ndcg@5"] > found["metrics"]["ndcg@5"]


def test_an_opened_run_ranks_as_it_was_measured_without_and_with(run: Run, log: Log) -> None:
    opened = Run.open(run.path)
    for name in ("valid", "test"):
        without, beside = (run.folder.array(f"{kind}_{name}.npy") for kind in ("ranks", "ranks_memory"))
        assert np.array_equal(ranks_by(opened, opened.model, log, name), without)
        assert np.array_equal(ranks_by(opened, opened.recommender, log, name), beside)
        assert not np.array_equal(without, beside)


def test_the_weight_is_the_best_of_validation(run: Run, log: Log) -> None:
    told, cases = run.folder.card()["memory"], run.folder.array("cases_valid.npy")
    assert run.memory is not None
    worths = []
    for weight in WEIGHTS:
        mixed = Remembering(run.model, run.memory, weight, temperature=told["temperature"])
        worths.append(metrics(ranks_by(run, mixed, log, "valid"), cases)["ndcg@20"])
    assert told["weight"] == WEIGHTS[int(np.argmax(worths))]


def test_the_model_is_the_same_with_a_memory_as_without(run: Run, data: Path, tmp_path: Path) -> None:
    plain = Run.train("sasrec", data, tmp_path / "run", set=QUICK, epochs=1)
    for name in ("weights.safetensors", "ranks_test.npy"):
        assert (plain.path / name).read_bytes() == (run.path / name).read_bytes()
    assert plain.evaluate().keys() == PLAIN and plain.recommender is plain.model


def test_nothing_held_out_reaches_the_memory(log: Log) -> None:
    ends = (log.offsets[1:, None] - np.array([1, 2])).ravel()
    items = log.items.copy()
    items[ends] = (items[ends] + 7) % log.n_items
    mine, theirs = (
        counted(leave_one_out(each).train, {}, CPU)[0].state_dict()
        for each in (log, replace(log, items=items))
    )
    assert all(torch.equal(mine[name], theirs[name]) for name in mine) and mine["nearness"].any()


def test_test_cases_choose_no_weight_and_no_temperature(
    data: Path, log: Log, run: Run, tmp_path: Path
) -> None:
    items = log.items.copy()
    last = log.offsets[1:] - 1
    items[last] = (items[last] + 7) % log.n_items
    replace(log, items=items).save(tmp_path / "log")
    other = Run.train("sasrec", tmp_path / "log", tmp_path / "run", set=QUICK, epochs=1, memory=True)
    mine, theirs = (each.folder.card()["memory"] for each in (run, other))
    assert {**mine, "seconds": 0} == {**theirs, "seconds": 0}
    assert run.evaluate()["metrics"] != other.evaluate()["metrics"]


def test_a_finished_run_gets_a_memory_when_it_is_resumed_with_one(
    data: Path, run: Run, tmp_path: Path
) -> None:
    plain = Run.train("sasrec", data, tmp_path / "run", set=QUICK, epochs=1)
    wants_memory(tmp_path / "run")
    assert not plain.folder.finished and plain.evaluate().keys() == PLAIN
    (again,) = Run.resume(tmp_path / "run")
    assert again.evaluate() == {**run.evaluate(), "run": str(again.path)}
    assert Run.resume(tmp_path / "run") == []


def test_a_run_stopped_before_its_memory_was_kept_goes_on_to_it(run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    folder = Folder(tmp_path / "run")
    card = folder.card()
    del card["memory"]
    folder.write_card(card)
    (tmp_path / "run" / "memory.safetensors").unlink()
    (resumed,) = Run.resume(tmp_path / "run")
    assert resumed.evaluate()["memory"] == run.evaluate()["memory"]
    assert [record["epoch"] for record in resumed.folder.story()] == [1]


def test_a_memory_without_validation_is_refused_before_anything_is_written(
    data: Path, tmp_path: Path
) -> None:
    with pytest.raises(ProtocolError, match="weighed on validation"):
        Run.train("popularity", data, tmp_path / "run", protocol="all", memory=True)
    assert not (tmp_path / "run").exists()
    run = Run.train("popularity", data, tmp_path / "run", protocol="all")
    with pytest.raises(ProtocolError, match="weighed on validation"):
        wants_memory(tmp_path / "run")
    assert run.folder.finished


def test_a_run_recommends_with_its_memory(run: Run, log: Log) -> None:
    with_memory = Counter(run).for_items(["item-1", "item-2"], 13)
    plain = Run.open(run.path)
    plain.recommender = plain.model
    assert with_memory != Counter(plain).for_items(["item-1", "item-2"], 13)
    assert run.recommend(user=log.user_ids[0], k=3) == Run.open(run.path).recommend(user=log.user_ids[0], k=3)


def test_a_comparison_has_a_row_without_and_a_row_with(run: Run) -> None:
    plain, beside = entries([run.path])
    assert beside.name == f"{plain.name} with memory" and beside.model == "sasrec with memory"
    assert np.array_equal(beside.ranks, run.folder.array("ranks_memory_test.npy"))
    assert np.array_equal(plain.ranks, run.folder.array("ranks_test.npy"))
