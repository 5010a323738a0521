"""Runs looked into: made healthy, collapsed and saturated on purpose, and called so."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from twoview import Log, Run, cli
from twoview.analyse.diagnosis import diagnosis, refuse_no_numbers
from twoview.analyse.sample import sample
from twoview.analyse.table import drawn
from twoview.data.synthetic import markov
from twoview.error import DataError, ProtocolError, RunError, ScoreError

SMALL = (
    "dim=16",
    "rows.max_len=8",
    "rows.batch=64",
    "fit.lr=.005",
    "fit.average=none",
    "fit.precision=float32",
)
LIGHT = ("embedding.dropout=.1", "posterior.transformer.dropout=.1", "decoder.dropout=.1")
SEEN_TWICE = ("first.view=keep", "second.view=keep", "first.sampler=noise-free", "second.sampler=noise-free")
SAME = ("embedding.dropout=0", "posterior.transformer.dropout=0", "posterior.transformer.attention_dropout=0")
KEYS = ["run", "model", "verdict", "latent", "contrast", "states", "terms"]

Train = Callable[..., Run]


@pytest.fixture(scope="module")
def log() -> Log:
    return markov(200, 20, 9, 0.8, 0)


@pytest.fixture(scope="module")
def data(log: Log, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "log"
    log.save(folder)
    return folder


@pytest.fixture(scope="module")
def train(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Train:
    """A small run on the log, or on another."""

    def run(model: str, *settings: str, epochs: int = 3, on: Log | Path = data, **told: Any) -> Run:
        return Run.train(
            model, on, tmp_path_factory.mktemp("run") / model, set=settings, epochs=epochs, **told
        )

    return run


@pytest.fixture(scope="module")
def healthy(train: Train) -> Run:
    return train("contrastvae", *SMALL, *LIGHT, epochs=16)


@pytest.fixture(scope="module")
def collapsed(train: Train) -> Run:
    return train("contrastvae", *SMALL, *LIGHT, "kl.schedule.cap=100", epochs=8)


@pytest.fixture(scope="module")
def sasrec(train: Train) -> Run:
    return train("sasrec", *SMALL[:4])


def signs(found: dict[str, Any]) -> dict[str, str]:
    """Why each state is said."""
    return {sign["state"]: sign["because"] for sign in found["verdict"]}


def test_a_healthy_run_is_called_healthy(healthy: Run) -> None:
    found = diagnosis(healthy)
    assert list(signs(found)) == ["healthy"]
    assert found["latent"]["active_units"] == {"active": 16, "of": 16}
    assert found["latent"]["decoder"]["as_is"] == {
        name: pytest.approx(healthy.evaluate("valid")["metrics"][name]) for name in ("recall@20", "ndcg@20")
    }
    assert found["latent"]["decoder"]["kept"] < 0.6


def test_a_run_under_an_enormous_kl_is_called_collapsed(collapsed: Run) -> None:
    found = diagnosis(collapsed)
    assert {sign["state"] for sign in found["verdict"]} == {"collapsed"}
    said = " / ".join(sign["because"] for sign in found["verdict"])
    assert "0 of 16 units" in said and "nats of its history" in said and "ndcg@20" in said
    assert found["latent"]["kl"]["total"] < 0.05 and found["latent"]["decoder"]["kept"] >= 0.9


def test_two_views_that_are_the_same_are_called_saturated(train: Train) -> None:
    run = train("contrastvae", *SMALL, *SEEN_TWICE, *SAME, "contrast=nt_xent", epochs=4)
    found = diagnosis(run)
    assert "the two views are the same" in signs(found)["saturated"]
    assert found["contrast"]["alignment"] == pytest.approx(0, abs=1e-9)
    assert not found["latent"]["drawn"]


def test_pairs_that_are_told_apart_are_called_saturated(train: Train) -> None:
    apart = (
        "contrast.kind=nt_xent",
        "contrast.temperature=.03",
        "contrast_weight=5",
        "embedding.dropout=.02",
    )
    settings = (*SMALL[:2], "rows.batch=8", *SMALL[3:], *SEEN_TWICE, *SAME[1:], *apart)
    varied = markov(120, 80, 7, 0.2, 0)
    found = diagnosis(train("contrastvae", *settings, epochs=10, on=varied), varied)
    assert found["contrast"]["negatives"]["one_minus_p"] < 0.1
    assert found["contrast"]["negatives"]["saturation"] > 0.9
    assert "1 - p+" in signs(found)["saturated"]


def test_a_temperature_near_nothing_leaves_one_rival_and_is_called_saturated(train: Train) -> None:
    found = diagnosis(train("contrastvae", *SMALL, *LIGHT, "contrast.temperature=.002", epochs=2))
    assert "carry the weight" in signs(found)["saturated"]
    assert found["contrast"]["negatives"]["effective"] < 2


def test_a_model_without_latent_or_contrast_shows_its_states_alone(sasrec: Run) -> None:
    found = diagnosis(sasrec)
    assert found["latent"] is None is found["contrast"]
    assert "nothing to collapse" in signs(found)["healthy"]
    assert found["states"]["histories"]["dim"] == found["states"]["items"]["dim"] == 16
    assert found["terms"]["likelihood"]["gradient_share"] == pytest.approx(1)


def test_a_model_that_counts_shows_what_was_looked_at(train: Train) -> None:
    found = diagnosis(train("popularity"))
    assert found["states"]["histories"] is None is found["states"]["items"] and found["terms"] == {}
    assert list(signs(found)) == ["healthy"]


def test_a_lone_branch_has_a_latent_and_no_contrast(train: Train) -> None:
    found = diagnosis(train("contrastvae", *SMALL, "second=none"))
    assert found["contrast"] is None and found["latent"]["active_units"]["of"] == 16
    assert found["terms"].keys() == {"likelihood", "kl"}


def test_a_diagnosis_is_plain_numbers_and_the_same_each_time(healthy: Run) -> None:
    found = diagnosis(healthy)
    assert list(found) == KEYS
    assert json.loads(json.dumps(found, allow_nan=False)) == found == diagnosis(healthy)


def test_looking_changes_nothing(healthy: Run) -> None:
    before = {name: value.clone() for name, value in healthy.model.state_dict().items()}
    torch.manual_seed(5)
    state = torch.get_rng_state()
    diagnosis(healthy)
    assert torch.equal(state, torch.get_rng_state())
    assert not healthy.model.training and not healthy.model.posterior._forward_hooks  # type: ignore[union-attr]
    after = healthy.model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_a_queue_stays_what_training_left(train: Train) -> None:
    run = train("contrastvae", *SMALL, "contrast={kind=moco,n_keys=100}")
    negatives = diagnosis(run)["contrast"]["negatives"]
    assert negatives["each"] == 100 and negatives["fades"]


def test_the_kl_of_the_tables_agrees_within_itself(healthy: Run) -> None:
    latent = diagnosis(healthy)["latent"]
    assert sum(latent["kl"]["per_dimension"]) == pytest.approx(latent["kl"]["total"])
    assert latent["kl"]["per_position"][0] == pytest.approx(latent["kl"]["newest"])
    for rows in latent["groups"].values():
        n = sum(row["histories"] for row in rows)
        assert n == 200
        mean = sum(row["histories"] * row["kl"] for row in rows) / n
        assert mean == pytest.approx(latent["kl"]["newest"], rel=1e-5)
    known = latent["information"]
    assert known["dieng"] + known["aggregate_kl"] == pytest.approx(latent["kl"]["newest"], rel=1e-5)
    assert known["entropy"] == pytest.approx(known["dieng"], abs=0.5)


def test_the_shares_of_the_gradient_sum_to_one(healthy: Run) -> None:
    terms = diagnosis(healthy)["terms"]
    assert terms.keys() == {"likelihood", "kl", "contrast"}
    assert sum(row["gradient_share"] for row in terms.values()) == pytest.approx(1)


def test_test_events_are_never_looked_at(healthy: Run, log: Log) -> None:
    tests = log.offsets[1:] - 1
    other = log.items.copy()
    other[tests] = (other[tests] + 1) % log.n_items
    looked_at = [sample(healthy, each) for each in (log, Log(**{**vars(log), "items": other}))]
    assert np.array_equal(looked_at[0].cases, looked_at[1].cases)
    assert np.array_equal(looked_at[0].cases[:, 1], log.items[tests - 1])


def test_a_sample_is_bounded_seeded_and_in_order(
    healthy: Run, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twoview.analyse.sample.HISTORIES", 30)
    first, second = (sample(healthy, log, seed=seed).cases[:, 0] for seed in (0, 1))
    assert len(first) == 30 and (np.diff(first) > 0).all() and not np.array_equal(first, second)
    monkeypatch.setattr("twoview.analyse.sample.PLACES", 70)  # of 7 events each
    assert len(sample(healthy, log)) == 10


def test_a_run_on_everything_is_looked_at_where_validation_would_have_been(train: Train, log: Log) -> None:
    run = train("contrastvae", *SMALL, protocol="all", epochs=2)
    assert diagnosis(run)["states"]["split"] == "train"


def test_another_log_is_matched_and_has_no_training_steps(healthy: Run) -> None:
    users = np.repeat(np.arange(30), 5)
    items = [f"item-{i}" for i in np.random.default_rng(0).integers(0, 25, 150)]  # the run knows 20
    other = Log.from_columns(users.tolist(), items, np.arange(150))
    found = diagnosis(healthy, other)
    unknown = sum(int(item.split("-")[1]) >= 20 for item in items)
    assert found["states"]["dropped_events"] == unknown > 0
    assert found["contrast"] is None and found["terms"] == {} and found["latent"] is not None


def test_a_number_that_is_none_is_an_error_with_its_name() -> None:
    refuse_no_numbers({"latent": {"kl": [1.0, 2.0]}, "n": 3, "text": "nan", "none": None})
    with pytest.raises(ScoreError, match=r"1 are not, latent\.kl\.1 is nan"):
        refuse_no_numbers({"latent": {"kl": [1.0, float("nan")]}})


def test_weights_that_are_no_numbers_are_refused(train: Train) -> None:
    for model in ("contrastvae", "sasrec"):
        run = train(model, *SMALL[:4], epochs=1)
        with torch.no_grad():
            run.model.item_table[3] = torch.nan  # type: ignore[index]
        with pytest.raises(ScoreError, match="finite"):
            diagnosis(run)


def test_one_case_is_nothing_to_compare(healthy: Run) -> None:
    with pytest.raises(ProtocolError, match="two cases or more"):
        diagnosis(healthy, Log.from_columns(["a"] * 3, ["item-1", "item-2", "item-3"], [1, 2, 3]))


def test_a_log_in_memory_has_to_be_given_again(train: Train, log: Log) -> None:
    run = train("popularity", on=log)
    with pytest.raises(RunError, match="--data"):
        diagnosis(run)
    assert diagnosis(run, log)["model"] == "popularity"


def test_a_data_folder_that_is_gone_is_named(healthy: Run, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gone"):
        diagnosis(healthy, tmp_path / "gone")


def test_the_verdict_comes_first_on_a_terminal(collapsed: Run) -> None:
    title, verdict, advice, *_ = drawn(diagnosis(collapsed))
    assert "contrastvae" in str(title) and str(verdict).startswith("COLLAPSED: ") and "kl." in str(advice)


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def twoview(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["twoview", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            cli.main()
        return Said(int(left.value.code or 0), *capsys.readouterr())

    return run


def test_json_is_one_object_or_a_list_of_them(
    twoview: Callable[..., Said], train: Train, tmp_path: Path, data: Path
) -> None:
    for seed in (0, 1):
        Run.train("sasrec", data, tmp_path / "runs" / f"seed-{seed}", set=SMALL[:4], epochs=1, seed=seed)
    several = json.loads(twoview("diagnose", tmp_path / "runs", "--json").out)
    assert [list(each) for each in several] == [KEYS, KEYS]
    one = json.loads(twoview("diagnose", tmp_path / "runs" / "seed-1", "--json").out)
    assert one == several[1]
    assert one["verdict"][0].keys() == {"state", "because", "try"}


def test_the_command_prints_the_verdict_before_its_tables(twoview: Callable[..., Said], healthy: Run) -> None:
    said = twoview("diagnose", healthy.path)
    assert said.code == 0
    wanted = [
        "HEALTHY: ",
        "looked at 200 valid cases",
        "active units",
        "false negatives",
        "share of the gradient",
    ]
    places = [said.out.index(word) for word in wanted]
    assert places == sorted(places)


def test_a_question_that_cannot_be_answered_is_one_line(
    twoview: Callable[..., Said], healthy: Run, tmp_path: Path
) -> None:
    for words, wanted in (
        ((tmp_path / "nothing",), "there is nothing"),
        ((tmp_path,), "no whole run"),
        ((healthy.path, "--data", tmp_path / "gone"), "gone"),
    ):
        said = twoview("diagnose", *words)
        assert said.code == 2 and said.out == "" and said.err.count("\n") == 1 and wanted in said.err
