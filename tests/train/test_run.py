"""A run from its first step to being asked: written whole, resumed to the same weights, opened alone."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from twoview import Counter, Log, Run
from twoview.data.synthetic import markov
from twoview.error import DataError, ProtocolError, RecipeError, RunError, ScoreError, TrainingError
from twoview.models import sasrec
from twoview.train.entry import entries
from twoview.train.folder import Folder, folders

QUICK = ("dim=8", "rows.max_len=6", "rows.batch=32", "fit.precision=float32", "fit.average=.9")
RECIPE = {"set": QUICK, "epochs": 3}
FILES = {"card.json", "cases_test.npy", "cases_valid.npy", "items.txt", "ranks_test.npy", "ranks_valid.npy"}
FILES |= {"examples.json", "recipe.toml", "story.jsonl", "weights.safetensors"}


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
    return Run.train("contrastvae", data, tmp_path_factory.mktemp("runs") / "cv", **RECIPE)


def bytes_of(path: Path, name: str = "weights.safetensors") -> bytes:
    return (path / name).read_bytes()


def test_a_run_folder_holds_plain_files_and_no_state_once_it_is_done(run: Run) -> None:
    assert {each.name for each in run.path.iterdir()} == FILES


def test_the_story_has_a_line_per_epoch_with_every_term_and_what_was_chosen_by(run: Run) -> None:
    story = run.folder.story()
    assert [record["epoch"] for record in story] == [1, 2, 3]
    assert {"likelihood", "kl", "contrast", "validation", "recall@20", "ndcg@40"} <= story[0].keys()
    assert all(record["validation"] == record["ndcg@20"] for record in story)


def test_equal_runs_are_equal_files(run: Run, data: Path, tmp_path: Path) -> None:
    again = Run.train("contrastvae", data, tmp_path / "again", **RECIPE)
    other = Run.train("contrastvae", data, tmp_path / "other", seed=1, **RECIPE)
    assert bytes_of(again.path) == bytes_of(run.path) != bytes_of(other.path)
    assert bytes_of(again.path, "ranks_test.npy") == bytes_of(run.path, "ranks_test.npy")


def test_the_selected_weights_are_those_of_the_best_validation(run: Run) -> None:
    best = max(record["ndcg@20"] for record in run.folder.story())
    assert run.evaluate("valid")["metrics"]["ndcg@20"] == pytest.approx(best, abs=1e-12)


def test_an_opened_run_scores_as_it_did_when_it_was_measured(run: Run, log: Log) -> None:
    (user,) = [int(row[0]) for row in run.folder.array("cases_test.npy")[:1]]
    opened = Run.open(run.path)
    asked = Counter(opened).for_users(log, [log.user_ids[user]], 5)
    assert [each.id for each in next(iter(asked))[1]] == [
        each.id for each in next(iter(Counter(run).for_users(log, [log.user_ids[user]], 5)))[1]
    ]


def test_nothing_seen_is_recommended_unless_it_is_asked_for(run: Run, log: Log) -> None:
    seen = {log.item_ids[i] for i in log.items[log.offsets[0] : log.offsets[1]]}
    ((_, fresh),) = Counter(run).for_users(log, [log.user_ids[0]], 15)
    ((_, every),) = Counter(run, keep_seen=True).for_users(log, [log.user_ids[0]], 15)
    assert not seen & {each.id for each in fresh} and len(fresh) == 15 - len(seen)
    assert seen <= {each.id for each in every}


def test_a_counter_recommends_only_what_it_may(run: Run) -> None:
    counter = Counter(run)
    counter.only(["item-1", "item-2", "item-3"])
    counter.excluding(["item-2"])
    assert {each.id for each in counter.for_items(["item-0"], 10)} == {"item-1", "item-3"}


def test_items_and_users_that_are_not_known_are_named(run: Run, log: Log) -> None:
    with pytest.raises(DataError, match=r"not item-99 \(near item-99"):
        Counter(run).for_items(["item-1", "item-99"], 3)
    with pytest.raises(DataError, match="no user user-9999; it has user-"):
        list(Counter(run).for_users(log, ["user-9999"], 3))


def test_another_log_is_matched_by_item_id(run: Run, log: Log) -> None:
    other = Log.from_columns(["a", "a", "a"], ["item-3", "elsewhere", "item-5"], [1, 2, 3])
    ((_, items),) = Counter(run).for_users(other, ["a"], 4)
    assert [each.id for each in items] == [
        each.id for each in Counter(run).for_items(["item-3", "item-5"], 4)
    ]


def test_a_run_that_exists_is_refused_and_replaced_only_by_force(data: Path, tmp_path: Path) -> None:
    Run.train("popularity", data, tmp_path / "run")
    with pytest.raises(RunError, match="exists; choose another folder or replace it with --force"):
        Run.train("popularity", data, tmp_path / "run")
    Run.train("popularity", data, tmp_path / "run", force=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letters.txt").write_text("dear")
    with pytest.raises(RunError, match="holds no run"):
        Run.train("popularity", data, tmp_path / "mine", force=True)
    assert (tmp_path / "mine" / "letters.txt").exists()


def test_nothing_is_written_when_something_was_misspelt(data: Path, tmp_path: Path) -> None:
    for told in ({"set": ("dimm=8",)}, {"recipe": "beste"}, {"protocol": "loo"}, {"device": "tpu"}):
        with pytest.raises(RecipeError):
            Run.train("sasrec", data, tmp_path / "run", **told)
    with pytest.raises(RecipeError, match="did you mean sasrec"):
        Run.train("sasrek", data, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_starts_from_another_run_or_from_a_recipe_trained_first(data: Path, tmp_path: Path) -> None:
    first = Run.train("sasrec", data, tmp_path / "first", set=QUICK, epochs=1)
    told = (*QUICK, "fit.lr=1e-30", f"start_from={first.path}")
    same = Run.train("sasrec", data, tmp_path / "same", set=told, epochs=1)
    mine, theirs = (each.model.state_dict() for each in (first, same))
    assert all(torch.allclose(mine[name], theirs[name], atol=1e-6) for name in mine)
    beside = tmp_path / "mine.py"
    beside.write_text(Path(sasrec.__file__).read_text().replace("from ..", "from twoview."))
    beside.write_text(beside.read_text().replace("from .base", "from twoview.models.base"))
    (tmp_path / "recipes" / "mine").mkdir(parents=True)
    quick = "dim = 8\n[rows]\nmax_len = 6\n[fit]\nepochs = 1\n"
    (tmp_path / "recipes" / "mine" / "before.toml").write_text(quick)
    (tmp_path / "recipes" / "mine" / "after.toml").write_text('start_from = "before"\n' + quick)
    Run.train(str(beside), data, tmp_path / "run", recipe="after")
    assert Folder(tmp_path / "run" / "before").finished
    assert [folder.path for folder in folders(tmp_path)] == [
        tmp_path / name for name in ("first", "run", "same")
    ]
    with pytest.raises(RecipeError, match="has no recipe"):
        Run.train("sasrec", data, tmp_path / "wrong", set=("start_from=nothing",))
    assert not (tmp_path / "wrong").exists()


def test_seeds_and_settings_get_folders_of_their_own(data: Path, tmp_path: Path) -> None:
    told = (*QUICK[1:], "dim=8,16")
    Run.train("sasrec", data, tmp_path / "run", set=told, seeds=2, epochs=1)
    found = {str(each.parent.relative_to(tmp_path / "run")) for each in (tmp_path / "run").rglob("card.json")}
    assert found == {"dim=8/seed-0", "dim=8/seed-1", "dim=16/seed-0", "dim=16/seed-1"}
    grouped = {(entry.name, entry.seed) for entry in entries([tmp_path / "run"])}
    assert grouped == {(f"sasrec dim={dim}", seed) for dim in (8, 16) for seed in (0, 1)}


def test_training_on_everything_asks_nothing(data: Path, tmp_path: Path) -> None:
    run = Run.train("sasrec", data, tmp_path / "all", set=QUICK, epochs=2, protocol="all")
    assert run.folder.card()["epochs"] == 2 and not run.folder.has("ranks_test.npy")
    assert len(Counter(run).for_items(["item-1"], 3)) == 3
    with pytest.raises(ProtocolError, match="asked nothing in test"):
        run.evaluate()


def test_strangers_are_answered_under_the_temporal_protocol(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    users, times = rng.integers(40, size=400), rng.integers(10**6, size=400)
    log = Log.from_columns(users, rng.integers(20, size=400), times + users * 10**5)
    run = Run.train("sasrec", log, tmp_path / "run", set=QUICK, epochs=1, protocol="temporal")
    assert run.evaluate()["protocol"]["protocol"] == "temporal"


def test_a_training_that_diverges_is_stopped_before_it_is_measured(data: Path, tmp_path: Path) -> None:
    with pytest.raises((TrainingError, ScoreError), match="finite"):
        told = (
            "dim=8",
            "rows.max_len=6",
            "fit.lr=1e30",
            "match=dot",
            "fit.clip=none",
            "fit.precision=float32",
        )
        Run.train("contrastvae", data, tmp_path / "run", set=told, epochs=5)


def test_a_file_of_ones_own_is_a_model(data: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        '"""mine: what came last in the alphabet."""\n'
        "import torch\n"
        "from twoview import Claims, Model, Part\n\n\n"
        "class Config(Part):\n    lift: float = 1.0\n\n\n"
        "class Mine(Model):\n"
        "    claims = Claims(learns=False)\n\n"
        "    def __init__(self, config, facts):\n"
        "        super().__init__(config, facts)\n"
        "        self.lift = config.lift\n\n"
        "    def score(self, history):\n"
        "        rising = torch.arange(self.facts.n_items).float()\n"
        "        return self.lift * rising.expand(history.n_histories, -1)\n"
    )
    run = Run.train(str(mine), data, tmp_path / "run", set=("lift=2",))
    assert [each.id for each in Counter(run).for_items(["item-1"], 1)] == [run.folder.lines("items.txt")[-1]]
    with pytest.raises(RecipeError, match=r"name it again with --model mine\.py"):
        Run.open(tmp_path / "run")
    assert Run.open(tmp_path / "run", model=str(mine)).model.lift == 2  # type: ignore[comparison-overlap]
    mine.write_text(mine.read_text() + "\n# changed\n")
    with pytest.raises(RecipeError, match="not the file that was trained"):
        Run.open(tmp_path / "run", model=str(mine))


def test_a_folder_that_is_no_run_is_named_with_what_it_lacks(run: Run, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is nothing"):
        Run.open(tmp_path / "nowhere")
    (tmp_path / "half").mkdir()
    with pytest.raises(RunError, match=r"lacks card\.json; it has nothing"):
        Run.open(tmp_path / "half")
    card = run.folder.card() | {"finished": False}
    (tmp_path / "half" / "card.json").write_text(json.dumps(card))
    with pytest.raises(RunError, match="--resume"):
        Run.open(tmp_path / "half")


@pytest.mark.parametrize("name", ["weights.safetensors", "ranks_test.npy", "card.json", "recipe.toml"])
def test_a_file_that_was_cut_short_is_a_line_and_no_traceback(run: Run, tmp_path: Path, name: str) -> None:
    for each in run.path.iterdir():
        whole = each.read_bytes()
        (tmp_path / each.name).write_bytes(whole[: len(whole) // 2] if each.name == name else whole)
    with pytest.raises(RunError, match=name):
        Run.open(tmp_path).evaluate()


SCRIPT = """
import sys, time
from twoview.train.fit import Fit
from twoview.train.run import Run
whole = Fit._trained
def slow(self, told, terms):
    done = whole(self, told, terms)
    time.sleep(0.3 * (self.progress.epoch >= 2))
    return done
Fit._trained = slow
Run.train("contrastvae", sys.argv[1], sys.argv[2], set=sys.argv[3:], epochs=6, state_every=0)
"""


def test_a_killed_run_resumes_to_the_same_weights_bit_for_bit(data: Path, tmp_path: Path) -> None:
    told: dict[str, Any] = {"set": (*QUICK, "likelihood=binary"), "epochs": 6, "state_every": 0}
    whole = Run.train("contrastvae", data, tmp_path / "whole", **told)
    command = [sys.executable, "-c", SCRIPT, str(data), str(tmp_path / "killed"), *told["set"]]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())})
    story = tmp_path / "killed" / "story.jsonl"
    while not (story.exists() and len(story.read_text().splitlines()) >= 3):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    folder = Folder(tmp_path / "killed")
    assert not folder.finished and folder.has("state.safetensors")
    (resumed,) = Run.resume(tmp_path / "killed")
    assert bytes_of(resumed.path) == bytes_of(whole.path)
    assert [record["epoch"] for record in resumed.folder.story()] == [1, 2, 3, 4, 5, 6]
    seconds = ("train seconds", "validation seconds")
    told_of = [
        [{k: v for k, v in r.items() if k not in seconds} for r in each.folder.story()]
        for each in (whole, resumed)
    ]
    assert told_of[0] == told_of[1]
    assert Run.resume(tmp_path / "killed") == []


def test_a_run_leaves_the_number_of_threads_as_it_was(data: Path, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    run = Run.train("sasrec", data, tmp_path / "run", set=QUICK, epochs=1)
    run.folder.write_card(run.folder.card() | {"finished": False, "machine": {"threads": before + 1}})
    Run.resume(tmp_path / "run")
    assert torch.get_num_threads() == before


def test_a_run_without_a_state_starts_over(data: Path, tmp_path: Path, run: Run) -> None:
    again = Run.train("contrastvae", data, tmp_path / "run", **RECIPE)
    card = again.folder.card() | {"finished": False}
    again.folder.write_card(card)
    (resumed,) = Run.resume(tmp_path / "run")
    assert bytes_of(resumed.path) == bytes_of(run.path)


def test_a_run_does_not_resume_on_other_data(data: Path, tmp_path: Path) -> None:
    run = Run.train("sasrec", data, tmp_path / "run", set=QUICK, epochs=1)
    run.folder.write_card(run.folder.card() | {"finished": False})
    markov(70, 15, 7, 0.8, 1).save(tmp_path / "other")
    with pytest.raises(RunError, match="was trained on data"):
        Run.resume(tmp_path / "run", data=tmp_path / "other")
