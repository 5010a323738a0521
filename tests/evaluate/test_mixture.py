"""Mixtures: their formulas by hand, and the laws that hold whatever they are made of."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from twoview.data.layout import Columns, shown
from twoview.data.log import Log
from twoview.data.split import Cases, leave_one_out
from twoview.data.synthetic import markov
from twoview.evaluate.metrics import metrics
from twoview.evaluate.mixture import FLOOR, WEIGHTS, Ensemble, Remembering, chosen, fitted_temperature
from twoview.evaluate.ranks import Questions, cases_table, ranks
from twoview.models import model_file, names
from twoview.models.base import Facts, Model
from twoview.recipe import amendments, recipe_file, resolved
from twoview.train.plan import SECTIONS
from twoview.types import History

N_USERS, N_ITEMS, MAX_LEN = 60, 12, 6


@dataclass
class Told:
    """Scores each user as it was told to, and counts how often it was asked."""

    scores: Tensor  # [U, I]
    asked: int = 0

    def score(self, history: History, /) -> Tensor:
        self.asked += history.n_histories
        return self.scores[history.users]


@pytest.fixture(scope="module")
def log() -> Log:
    return markov(N_USERS, N_ITEMS, 7, 0.8, 0)


@pytest.fixture(scope="module")
def cases(log: Log) -> Cases:
    return leave_one_out(log).valid


def questions_of(cases: Cases, budget_bytes: int | None = None) -> Questions:
    return Questions(cases, max_len=MAX_LEN, budget_bytes=budget_bytes)


def told(seed: int, *, positive: bool = False) -> Told:
    scores = torch.randn(N_USERS, N_ITEMS, generator=torch.Generator().manual_seed(seed))
    return Told(scores.exp() if positive else scores)


def history_of(log: Log, users: list[int]) -> History:
    which = np.array(users)
    columns = Columns(log.items, log.times, torch.device("cpu"))
    return shown(columns, log.offsets[which], log.offsets[which + 1], which, max_len=MAX_LEN)


def probabilities(scores: Tensor) -> Tensor:
    return torch.softmax(scores.double(), dim=1)


def test_a_remembering_by_hand(log: Log) -> None:
    model = Told(torch.tensor([[2.0, 0.0, 1.0]]))
    memory = Told(torch.tensor([[0.0, 1.0, 3.0]]))
    scores = Remembering(model, memory, 0.5, temperature=2.0).score(history_of(log, [0]))[0]
    p_model = [math.exp(s / 2) for s in (2, 0, 1)]
    p_model = [p / sum(p_model) for p in p_model]
    p_memory = [0, 1 / 4, 3 / 4]
    wanted = [math.log(a) + 0.5 * math.log(b + FLOOR) for a, b in zip(p_model, p_memory, strict=True)]
    found = scores / 2  # scores are in the model's own unit, its temperature
    assert (found - found[0]).tolist() == pytest.approx([each - wanted[0] for each in wanted], abs=1e-5)


def test_an_ensemble_by_hand(log: Log) -> None:
    first, second = Told(torch.tensor([[0.0, math.log(3)]])), Told(torch.tensor([[2 * math.log(4), 0.0]]))
    scores = Ensemble([first, second], [1.0, 2.0]).score(history_of(log, [0]))
    assert scores.exp()[0].tolist() == pytest.approx([(1 / 4 + 4 / 5) / 2, (3 / 4 + 1 / 5) / 2])


def test_a_memory_that_knows_nothing_changes_no_rank(cases: Cases) -> None:
    model, silent = told(0), Told(torch.zeros(N_USERS, N_ITEMS))
    questions = questions_of(cases)
    assert np.array_equal(ranks(Remembering(model, silent, 1.0), questions), ranks(model, questions))


def test_a_heavy_memory_decides_alone(cases: Cases) -> None:
    model, memory = told(0), told(1, positive=True)
    alone, questions = ranks(memory, questions_of(cases)), questions_of(cases)
    assert not np.array_equal(ranks(Remembering(model, memory, 0.5), questions), alone)
    assert np.array_equal(ranks(Remembering(model, memory, 1e6), questions), alone)


def test_weight_nought_gives_the_models_own_scores_bit_for_bit(log: Log) -> None:
    model, memory = told(0), told(1, positive=True)
    history = history_of(log, list(range(N_USERS)))
    scores = Remembering(model, memory, 0.0, temperature=0.3).score(history)
    assert torch.equal(scores, model.score(history))


def test_an_ensemble_sums_to_one_and_each_of_its_kind_is_the_model(log: Log) -> None:
    history = history_of(log, list(range(N_USERS)))
    model, other = told(0), told(1)
    torch.testing.assert_close(Ensemble([model, other]).score(history).exp().sum(1), torch.ones(N_USERS))
    for models in ([model], [model] * 3):
        torch.testing.assert_close(
            Ensemble(models).score(history).exp().double(), probabilities(model.scores), atol=1e-6, rtol=1e-5
        )


def test_an_ensemble_of_one_ranks_as_the_model_does(cases: Cases) -> None:
    questions = questions_of(cases)
    assert np.array_equal(ranks(Ensemble([told(0)], [0.7]), questions), ranks(told(0), questions))


def test_the_order_of_an_ensembles_models_is_irrelevant(log: Log) -> None:
    history = history_of(log, list(range(N_USERS)))
    models, temperatures = [told(0), told(1), told(2)], [0.5, 1.0, 3.0]
    there = Ensemble(models, temperatures).score(history)
    torch.testing.assert_close(there, Ensemble(models[::-1], temperatures[::-1]).score(history))
    assert not torch.allclose(there, Ensemble(models, temperatures[::-1]).score(history))


def test_extreme_scores_stay_finite(log: Log) -> None:
    scale = torch.tensor([1e30, -1e30, 0.0, 1e-30]).repeat(3)
    model, counts = Told(scale.expand(N_USERS, -1)), Told(scale.abs().expand(N_USERS, -1))
    history = history_of(log, [0, 1])
    for each in (Remembering(model, counts, 2.0), Ensemble([model, told(0)])):
        assert bool(each.score(history).isfinite().all())


@pytest.mark.parametrize("wanted", [0.2, 1.0, 40.0])
def test_the_temperature_of_scores_that_are_scaled_logits_is_the_scale(wanted: float) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3000, N_ITEMS)) * 1.5
    items = (logits + rng.gumbel(size=logits.shape)).argmax(1)  # drawn from their softmax
    histories = np.stack([rng.integers(N_ITEMS, size=3000), items, items], axis=1)
    log = Log(
        offsets=np.arange(0, 9001, 3),
        items=histories.ravel().astype(np.int32),
        times=None,
        user_ids=[f"u{u}" for u in range(3000)],
        item_ids=[f"i{i}" for i in range(N_ITEMS)],
    )
    model = Told(torch.from_numpy(logits * wanted).float())
    found = fitted_temperature(model, questions_of(leave_one_out(log).valid))
    assert found == pytest.approx(wanted, rel=0.06)


def test_a_temperature_is_fitted_on_some_chunks_and_scores_without_spread_have_none(cases: Cases) -> None:
    model = told(0)
    fitted_temperature(model, questions_of(cases, 10 * 6 * N_ITEMS))  # ten cases at once
    assert model.asked == 3 * 10
    assert fitted_temperature(Told(torch.zeros(N_USERS, N_ITEMS)), questions_of(cases)) == 1.0


def test_the_weight_and_the_memory_chosen_are_the_best_and_everybody_is_asked_once(cases: Cases) -> None:
    model, other, memory = told(0), told(2, positive=True), told(1, positive=True)
    targets = torch.from_numpy(cases.targets)
    model.scores[torch.arange(N_USERS), targets] += 0.7
    memory.scores[torch.arange(N_USERS), targets] *= 4
    table = cases_table(cases, leave_one_out(cases.log).train)

    def worth(found):
        return metrics(found, table)["ndcg@5"]

    for budget_bytes in (None, 7 * 6 * N_ITEMS):
        questions = questions_of(cases, budget_bytes)
        assert chosen(model, [other, memory, memory], questions, worth, temperature=0.8)[0] == 1
        model.asked = memory.asked = 0
        _, weight = chosen(model, [memory], questions, worth, temperature=0.8)
        assert model.asked == memory.asked == N_USERS
        worths = [
            worth(ranks(Remembering(model, memory, each, temperature=0.8), questions)) for each in WEIGHTS
        ]
        assert weight == WEIGHTS[int(np.argmax(worths))] > 0


def test_a_memory_that_misleads_gets_no_weight(cases: Cases) -> None:
    model, memory = told(0), told(1, positive=True)
    memory.scores[torch.arange(N_USERS), torch.from_numpy(cases.targets)] = 0
    table = cases_table(cases, leave_one_out(cases.log).train)
    assert chosen(model, [memory], questions_of(cases), lambda r: metrics(r, table)["ndcg@5"]) == (0, 0.0)


def built(name: str, log: Log) -> Model:
    """A model as its recipe makes it, narrow, untrained."""
    file = model_file(name)
    narrow = {"dim": 8} if "dim" in file.form.model_fields else {}
    best = amendments(recipe_file(file.recipes, name, "best"))
    recipe = resolved(file.form, SECTIONS, best, narrow, {"rows": {"max_len": MAX_LEN}})
    torch.manual_seed(0)
    train = leave_one_out(log).train
    model = file.model(recipe.model, Facts.of(train, MAX_LEN))
    model.prepare(train, 0)
    return model.eval()


@pytest.mark.parametrize("name", names())
def test_every_model_can_be_in_a_mixture(name: str, log: Log, cases: Cases) -> None:
    model, memory = built(name, log), built("item_knn", log)
    questions = Questions(cases, max_len=MAX_LEN, room=model.room)
    temperature = fitted_temperature(model, questions)
    assert 0 < temperature < math.inf
    remembering = Remembering(model, memory, 0.0, temperature=temperature)
    assert np.array_equal(ranks(remembering, questions), ranks(model, questions))
    mixtures = (Remembering(model, memory, 0.5, temperature=temperature), Ensemble([model, memory]))
    for each in (*mixtures, Ensemble([*mixtures, model], [1.0, 1.0, temperature])):
        for chunk in questions:
            scores = each.score(chunk.history)
            assert scores.shape == (len(chunk.targets), N_ITEMS) and scores.dtype == torch.float32
            assert bool(scores.isfinite().all())


def test_mixtures_are_made_of_mixtures(log: Log) -> None:
    nested = Remembering(Ensemble([told(0), Remembering(told(1), told(2, positive=True), 0.3)]), told(3), 0.0)
    assert nested.score(history_of(log, [1, 2])).shape == (2, N_ITEMS)
