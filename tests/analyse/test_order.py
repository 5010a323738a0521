"""A change of order reaches whom it should, random targets are found by chance, nothing held out trains."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from twoview import Run
from twoview.analyse.held import Held, held
from twoview.analyse.order import LAST, at_random, chance_test, last, order_test, shuffled, tie_share
from twoview.data.layout import Columns, shown
from twoview.data.log import Log
from twoview.data.split import leave_one_out, temporal
from twoview.data.synthetic import markov
from twoview.error import ProtocolError, RunError
from twoview.evaluate.convention import met
from twoview.evaluate.metrics import metrics
from twoview.evaluate.ranks import Chunk, Questions, kept, ranks
from twoview.types import History

N_ITEMS = 60


class Successor:
    """Scores the one item that always follows the newest, all others alike."""

    room = 0

    def __init__(self, log: Log) -> None:
        self.after = torch.zeros(N_ITEMS, dtype=torch.int64)
        self.after[torch.from_numpy(log.items[:-1].astype(np.int64))] = torch.from_numpy(
            log.items[1:].astype(np.int64)
        )
        ends = log.offsets[1:] - 1  # an event at an end is followed by another user's
        whole = torch.from_numpy(log.items[ends - 1].astype(np.int64))
        self.after[whole] = torch.from_numpy(log.items[ends].astype(np.int64))

    def score(self, history: History, /) -> Tensor:
        newest = history.items.flatten()[history.newest]
        return torch.nn.functional.one_hot(self.after[newest], N_ITEMS).float()


class Bag:
    """Scores items by how near their numbers are to those in a history, whatever their order."""

    room = 0

    def score(self, history: History, /) -> Tensor:
        sums = torch.zeros(history.n_histories, dtype=torch.float64)
        own = torch.where(history.real, history.items, 0).flatten().double()
        sums.index_add_(0, history.owner.clamp(min=0).flatten(), own)
        return -(sums[:, None] % N_ITEMS - torch.arange(N_ITEMS)).abs().float()


class Repeater:
    """Scores the newest item above all others."""

    room = 0

    def score(self, history: History, /) -> Tensor:
        return torch.nn.functional.one_hot(history.items.flatten()[history.newest], N_ITEMS).float()


class Reader:
    """Whole-number scores that depend on every item, its position and the room behind it."""

    def score(self, history: History, /) -> Tensor:
        own = torch.where(history.hidden, 5, history.items + 3) * (history.position + 1) * history.real
        sums = torch.zeros(history.n_histories, dtype=torch.int64)
        sums.index_add_(0, history.owner.clamp(min=0).flatten(), own.flatten())
        return (sums[:, None] * (torch.arange(N_ITEMS) + 2) % 7).float()


def asked(model: object, log: Log, *, seen: str = "removed", kind: type[Held] = Held) -> Held:
    """A run as far as it is asked here."""
    recipe = SimpleNamespace(rows=SimpleNamespace(max_len=6))
    plan = SimpleNamespace(recipe=recipe, how=SimpleNamespace(seen=seen))
    parts = leave_one_out(log)
    return kind(SimpleNamespace(model=model, recommender=model, plan=plan), "test", parts.test, parts.train)


@pytest.fixture(scope="module")
def log() -> Log:
    return markov(80, N_ITEMS, 8, 1.0, 0)


def histories(found: Sequence[Sequence[int]], *, room: int = 0) -> History:
    flat = np.array([item for each in found for item in each], dtype=np.int32)
    ends = np.cumsum([len(each) for each in found])
    columns = Columns(flat, None, torch.device("cpu"))
    begin = ends - [len(each) for each in found]
    return shown(columns, begin, ends, np.full(len(found), -1), max_len=20, room=room)


def items_of(history: History) -> list[list[int]]:
    """Each history's items, oldest first."""
    there = history.real & ~history.hidden
    return [
        history.items[there & (history.owner == b)][
            history.position[there & (history.owner == b)].argsort(descending=True)
        ].tolist()
        for b in range(history.n_histories)
    ]


@pytest.mark.parametrize("room", [0, 2])
def test_shuffling_keeps_each_historys_items_and_everything_else(room: int) -> None:
    found = [[1, 2, 3, 4, 5, 6], [7, 8], [9], [2, 2, 5]]
    history = histories(found, room=room)
    mixed = shuffled(history, generator=torch.Generator().manual_seed(0))
    assert [sorted(each) for each in items_of(mixed)] == [sorted(each) for each in found]
    assert items_of(mixed) != found
    assert all(
        torch.equal(getattr(mixed, name), getattr(history, name))
        for name in ("owner", "hidden", "position", "newest")
    )
    assert items_of(history) == found


def test_every_order_is_as_likely_as_any_other() -> None:
    draw, history, counts = torch.Generator().manual_seed(0), histories([[0, 1, 2], [3, 4]]), {}
    for _ in range(1200):
        order = tuple(items_of(shuffled(history, generator=draw))[0])
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6 and all(140 < count < 260 for count in counts.values())


@pytest.mark.parametrize("room", [0, 1])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_last_k_are_what_a_reader_of_k_would_see(log: Log, room: int, k: int) -> None:
    cases = leave_one_out(log).test
    short, long = (Questions(cases, max_len=n, room=room) for n in (k, 6))
    model = SimpleNamespace(score=lambda history: Reader().score(last(history, k=k)))
    assert ranks(model, long).tolist() == ranks(Reader(), short).tolist()


def test_a_rule_of_the_newest_item_needs_the_order_and_nothing_but_the_last(log: Log) -> None:
    found = order_test(asked(Successor(log), log))
    assert found["metrics"]["ndcg@20"] == 1
    rows = {row["shown"]: row["metrics"]["ndcg@20"] for row in found["rows"]}
    assert list(rows) == ["shuffled", *(f"last {k}" for k in LAST)]
    assert rows["shuffled"]["relative"] < -0.5 and rows["shuffled"]["p"] < 0.001
    assert rows["shuffled"]["low"] <= rows["shuffled"]["difference"] <= rows["shuffled"]["high"] < 0
    assert all(rows[f"last {k}"]["difference"] == 0 and rows[f"last {k}"]["p"] == 1 for k in LAST)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_model_of_sets_does_not_care_about_order_but_about_what_is_left(log: Log) -> None:
    rows = {row["shown"]: row["metrics"]["ndcg@40"] for row in order_test(asked(Bag(), log))["rows"]}
    assert rows["shuffled"]["difference"] == 0
    assert rows["last 1"]["difference"] != 0
    assert rows["last 10"]["difference"] == 0  # longer than anything the model reads


@pytest.mark.parametrize("seen", ["removed", "kept"])
def test_random_targets_are_found_by_chance_however_good_the_model(log: Log, seen: str) -> None:
    for model in (Successor(log), Bag(), Repeater()):
        found = chance_test(asked(model, log, seen=seen))
        assert found["verdict"] == "chance" and found["cases"] == 80
        assert found["metrics"]["recall@10"]["chance"] == pytest.approx(
            10 / (54 if seen == "removed" else 60), rel=0.04
        )
    assert json.loads(json.dumps(found, allow_nan=False)) == found


class Leaking(Held):
    """Questions whose histories reach one event too far."""

    def questions(self, cases=None, *, seen=None):
        honest = super().questions(cases, seen=seen)
        chosen = honest.cases
        columns = Columns(chosen.log.items, None, torch.device("cpu"))
        (chunk,) = honest
        leaked = shown(columns, chosen.begin, chosen.places + 1, chosen.users, max_len=6)
        return TooFar(replace(chunk, history=leaked), honest)


class TooFar:
    def __init__(self, chunk: Chunk, honest: Questions) -> None:
        self.chunk, self.cases, self.n_items = chunk, honest.cases, honest.n_items

    def __iter__(self) -> Iterator[Chunk]:
        return iter([self.chunk])


def test_a_history_that_reaches_its_target_is_a_leak(log: Log) -> None:
    found = chance_test(asked(Repeater(), log, kind=Leaking))
    assert found["verdict"] == "leak"
    assert found["metrics"]["recall@1"]["found"] == 1


def test_random_targets_are_any_that_are_not_barred_and_one_a_user(log: Log) -> None:
    cases = temporal(log).test
    drawn = at_random(cases, barred=met)
    assert drawn.users.tolist() == np.unique(cases.users).tolist()
    pairs = set(zip(*(part.tolist() for part in met(drawn)), strict=True))
    assert not pairs & set(enumerate(drawn.targets.tolist()))
    before = np.delete(drawn.log.items, drawn.places), np.delete(log.items, drawn.places)
    assert np.array_equal(*before)
    many = np.concatenate(
        [at_random(leave_one_out(log).test, barred=kept, seed=s).targets for s in range(200)]
    )
    assert np.bincount(many, minlength=N_ITEMS).min() > 200


def test_what_is_held_out_for_the_test_cannot_reach_the_weights(tmp_path: Path) -> None:
    own = markov(40, 12, 6, 0.7, 0)
    places = own.offsets[1:] - 1
    items = own.items.copy()
    items[places] = (items[places] + 1) % 12
    other = replace(own, items=items)
    told = {"set": ("dim=8", "rows.max_len=5", "rows.batch=16"), "epochs": 2}
    a, b = (Run.train("sasrec", each, tmp_path / name, **told) for name, each in (("a", own), ("b", other)))
    weights = [(run.path / "weights.safetensors").read_bytes() for run in (a, b)]
    assert weights[0] == weights[1]
    assert a.folder.story()[0]["likelihood"] == b.folder.story()[0]["likelihood"]
    assert not np.array_equal(*(run.folder.array("cases_test.npy") for run in (a, b)))


def test_the_cases_of_a_run_are_asked_again_as_they_were(tmp_path: Path) -> None:
    own = markov(40, 12, 6, 0.7, 0)
    run = Run.train("popularity", own, tmp_path / "run")
    for part in ("valid", "test"):
        found = held(run, part, own)
        assert np.array_equal(ranks(found.model, found.questions()), run.folder.array(f"ranks_{part}.npy"))
    with pytest.raises(RunError, match=r"was measured on data \w+; \w+ came"):
        held(run, "test", markov(40, 12, 6, 0.7, 1))
    with pytest.raises(ProtocolError, match="asked nothing in 'tset'; of its splits there are valid, test"):
        held(run, "tset", own)
    cases = run.folder.array("cases_test.npy")
    run.folder.write_array("cases_test.npy", cases[:-1])
    with pytest.raises(RunError, match="was asked other cases than its data give now"):
        held(run, "test", own)


def test_ties_lie_between_winning_and_losing_them_all() -> None:
    found, cases = np.array([[0, 0], [2, 3], [0, 59]]), np.array([[u, 0, 0, 0] for u in range(3)])
    told = tie_share(found, cases)
    assert told["share"] == pytest.approx(2 / 3)
    assert (told["mean_tied"], told["most_tied"]) == (pytest.approx(62 / 3), 59)
    assert told["metrics"]["recall@5"] == pytest.approx(
        {"won": 1, "shared": (1 + 3 / 4 + 5 / 60) / 3, "lost": 1 / 3}
    )
    assert all(each["lost"] <= each["shared"] <= each["won"] for each in told["metrics"].values())
    own = metrics(found, cases)
    assert {name: each["shared"] for name, each in told["metrics"].items()} == own
