"""Laws that every model in the folder obeys, each by what it claims."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from twoview.data.layout import Columns, shown
from twoview.data.log import Log
from twoview.data.rows import Rows
from twoview.data.split import Split, split
from twoview.data.synthetic import best_hit, markov, random
from twoview.evaluate.metrics import metrics
from twoview.evaluate.ranks import Questions, cases_table, kept, ranks
from twoview.models import ModelFile, model_file, names
from twoview.models.base import Facts, Model
from twoview.recipe import Recipe, amendments, recipe_file, resolved
from twoview.train.fit import Fit
from twoview.train.plan import SECTIONS
from twoview.types import Batch, History

CPU = torch.device("cpu")
MAX_LEN = 8
N_ITEMS, PREDICTABILITY = 24, 0.9
FILES = [model_file(name) for name in names()]

every = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
learners = pytest.mark.parametrize(
    "file", [f for f in FILES if f.model.claims.learns], ids=lambda file: file.name
)
causal = pytest.mark.parametrize(
    "file", [f for f in FILES if f.model.claims.causal], ids=lambda file: file.name
)
ordered = pytest.mark.parametrize(
    "file", [f for f in FILES if f.model.claims.ordered], ids=lambda file: file.name
)


def recipe_of(file: ModelFile, **more: Any) -> Recipe:
    """The best recipe, narrow and quick."""
    narrow = {"dim": 32} if "dim" in file.form.model_fields else {}
    quick = {"epochs": 30, "average": "none", "lr": 0.01, "precision": "float32", "patience": 30}
    house = {"rows": {"max_len": MAX_LEN, "batch": 64}, "fit": quick}
    return resolved(
        file.form, SECTIONS, amendments(recipe_file(file.recipes, file.name, "best")), narrow, house, more
    )


@cache
def parts_of(kind: str) -> Split:
    make = {
        "rule": lambda: markov(150, N_ITEMS, 10, PREDICTABILITY, 0),
        "none": lambda: random(150, N_ITEMS, 10, 1),
    }
    return split(make[kind](), "leave-one-out")


def model_of(file: ModelFile, train: Log, seed: int = 0) -> Model:
    recipe = recipe_of(file)
    torch.manual_seed(seed)
    model = file.model(recipe.model, Facts.of(train, MAX_LEN))
    model.prepare(train, 0)
    return model


def batch_of(file: ModelFile, train: Log) -> Batch:
    generator = torch.Generator().manual_seed(0)
    rows = Rows(train, recipe_of(file).rows, generator=generator, device=CPU, room=file.model.room)
    return next(iter(rows.epoch()))


def histories(file: ModelFile, train: Log, users: list[int], drop: int = 0) -> History:
    """Some users' training events as one History, the last ones dropped."""
    which = np.array(users)
    begin, end = train.offsets[which], train.offsets[which + 1] - drop
    columns = Columns(train.items, train.times, CPU)
    return shown(columns, begin, end, which, max_len=MAX_LEN, room=file.model.room)


@cache
def trained(name: str, kind: str) -> tuple[Model, float]:
    """A model trained on a log with a rule or without one, and its hit@1 on the test cases."""
    file, parts = model_file(name), parts_of(kind)
    recipe, model = recipe_of(file), model_of(file, parts.train)
    generator = torch.Generator().manual_seed(0)
    rows = Rows(parts.train, recipe.rows, generator=generator, device=CPU, room=model.room)
    questions = Questions(parts.test, max_len=MAX_LEN, room=model.room, seen=kept)
    fit = Fit(model, rows, parts.train, recipe.fit, None)
    for _ in fit.epochs():
        pass
    model.eval()
    return model, metrics(ranks(model, questions), cases_table(parts.test, parts.train))["recall@1"]


def total(terms: dict[str, Tensor]) -> Tensor:
    return torch.stack([term.float() for term in terms.values()]).sum()


@every
def test_scores_are_one_finite_float_per_item(file: ModelFile) -> None:
    train = parts_of("rule").train
    scores = model_of(file, train).eval().score(histories(file, train, [0, 1, 2]))
    assert scores.shape == (3, N_ITEMS) and scores.dtype == torch.float32 and bool(scores.isfinite().all())


@every
def test_a_history_scores_alone_as_it_does_among_neighbours(file: ModelFile) -> None:
    train = parts_of("rule").train
    model, users = model_of(file, train).eval(), [3, 1, 4, 15, 9, 2, 6]
    together = model.score(histories(file, train, users))
    alone = torch.cat([model.score(histories(file, train, [user])) for user in users])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)


@every
def test_the_order_of_users_changes_nothing(file: ModelFile) -> None:
    train = parts_of("rule").train
    model, users = model_of(file, train).eval(), [8, 3, 5, 1]
    there, back = model.score(histories(file, train, users)), model.score(histories(file, train, users[::-1]))
    torch.testing.assert_close(there, back.flip(0), atol=1e-4, rtol=1e-4)


@every
def test_a_stranger_is_answered_by_models_that_fold_in(file: ModelFile) -> None:
    train = parts_of("rule").train
    history = replace(histories(file, train, [0]), users=torch.tensor([-1]), event=torch.tensor([-1]))
    if file.model.claims.folds_in:
        assert bool(model_of(file, train).eval().score(history).isfinite().all())


@causal
def test_the_future_cannot_change_the_past(file: ModelFile) -> None:
    train = parts_of("rule").train
    model = model_of(file, train).eval()
    history = histories(file, train, [0, 1, 2, 3])
    items = history.items.flatten()
    other = history.items.flatten().index_put((history.newest,), (items[history.newest] + 1) % N_ITEMS)
    changed = replace(history, items=other.view_as(history.items))
    before, after = model.encode(history), model.encode(changed)  # type: ignore[operator]
    past = history.real & (history.position > 0)
    assert bool((before[past] == after[past]).all())
    assert bool((before.flatten(0, 1)[history.newest] != after.flatten(0, 1)[history.newest]).any())


@causal
def test_neighbours_in_a_row_cannot_be_told_apart_from_strangers_in_another(file: ModelFile) -> None:
    train = parts_of("rule").train
    model = model_of(file, train).eval()
    history = histories(file, train, [0, 1, 2, 3, 4])
    mine = (history.owner == 0) | ~history.real
    changed = replace(history, items=torch.where(mine, history.items, (history.items + 5) % N_ITEMS))
    own = history.owner == 0
    assert bool((model.encode(history)[own] == model.encode(changed)[own]).all())  # type: ignore[operator]


@learners
def test_the_loss_gives_every_parameter_a_finite_gradient(file: ModelFile) -> None:
    train = parts_of("rule").train
    model = model_of(file, train).train()
    total(model.loss(batch_of(file, train), torch.tensor(5.0))).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and bool(parameter.grad.isfinite().all()), name
        assert bool((parameter.grad != 0).any()), f"{name} has a gradient of nothing but zeros"


@learners
def test_the_loss_reads_nothing_that_a_captured_step_could_not(file: ModelFile) -> None:
    train = parts_of("rule").train
    model, batch = model_of(file, train).train(), batch_of(file, train)
    with FakeTensorMode(allow_non_fake_inputs=True):
        total(model.loss(batch, torch.tensor(5.0))).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@learners
def test_the_loss_writes_to_nothing_of_its_batch(file: ModelFile) -> None:
    train = parts_of("rule").train
    model, batch = model_of(file, train).train(), batch_of(file, train)
    before = {name: value.clone() for name, value in vars(batch.history).items()}
    model.loss(batch, torch.tensor(0.0))
    assert all(torch.equal(value, before[name]) for name, value in vars(batch.history).items())


@learners
def test_one_batch_can_be_learnt_by_heart(file: ModelFile) -> None:
    train = parts_of("none").train
    model, batch = model_of(file, train), batch_of(file, train)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for step in range(80):
        terms = model.eval().loss(batch, torch.tensor(float(step)))
        optimiser.zero_grad()
        total(terms).backward()
        optimiser.step()
        losses.append(float(next(iter(terms.values())).detach()))
    assert np.mean(losses[-5:]) < 0.75 * losses[0]


@ordered
def test_it_learns_a_rule(file: ModelFile) -> None:
    assert trained(file.name, "rule")[1] > 0.75 * best_hit(N_ITEMS, PREDICTABILITY)


@every
def test_it_learns_nothing_from_a_log_without_a_rule(file: ModelFile) -> None:
    chance, deviation = 1 / N_ITEMS, (1 / N_ITEMS / 150) ** 0.5
    assert trained(file.name, "none")[1] < chance + 4 * deviation


@ordered
def test_the_order_of_a_history_matters(file: ModelFile) -> None:
    model, _ = trained(file.name, "rule")
    history = histories(file, parts_of("rule").train, [0])
    items = torch.where(history.real & ~history.hidden, history.items, -1).flatten()
    chosen = items[items >= 0]
    backwards = history.items.flatten().masked_scatter(items >= 0, chosen.flip(0)).view_as(history.items)
    assert not torch.allclose(model.score(history), model.score(replace(history, items=backwards)))


@every
def test_equal_seeds_give_equal_weights_and_others_others(file: ModelFile) -> None:
    train = parts_of("rule").train
    first, again, other = (model_of(file, train, seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[name], again[name]) for name in first)
    if file.model.claims.learns:
        assert any(not torch.equal(first[name], other[name]) for name in first)


@every
def test_weights_bring_a_model_back(file: ModelFile) -> None:
    model, _ = trained(file.name, "rule")
    train = parts_of("rule").train
    fresh = file.model(recipe_of(file).model, Facts.of(train, MAX_LEN)).eval()
    fresh.load_state_dict(model.state_dict())
    history = histories(file, train, [0, 7])
    assert torch.equal(fresh.score(history), model.score(history))


@every
def test_every_recipe_round_trips(file: ModelFile) -> None:
    import tomllib

    found = sorted(file.recipes.glob("*.toml"))
    for path in [None, *found]:
        recipe = resolved(file.form, SECTIONS, amendments(path))
        assert resolved(file.form, SECTIONS, tomllib.loads(recipe.to_toml())) == recipe


@every
def test_what_trains_sees_nothing_held_out(file: ModelFile) -> None:
    log = markov(60, N_ITEMS, 6, 0.5, 3)
    ends = log.offsets[1:, None] - np.array([1, 2])
    items = log.items.copy()
    items[ends.ravel()] = (items[ends.ravel()] + 7) % N_ITEMS
    models = []
    for each in (log, replace(log, items=items)):
        train = split(each, "leave-one-out").train
        model = model_of(file, train)
        terms = model.loss(batch_of(file, train), torch.tensor(0.0)) if file.model.claims.learns else {}
        models.append((model.state_dict(), terms))
    (mine, loss), (theirs, other) = models
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert all(torch.equal(loss[name], other[name]) for name in loss)
