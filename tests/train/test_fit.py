"""The loop keeps the best, stops in time, alternates phases, and goes on to the bit after a restart."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from twoview.data.augment import AnyConfig, KeepConfig
from twoview.data.log import Log
from twoview.data.rows import Rows, RowsConfig
from twoview.data.synthetic import markov
from twoview.error import TrainingError
from twoview.models.base import Facts, Model, Phase
from twoview.models.contrastvae import Branch, Config, ContrastVAE
from twoview.nn.gaussian import StacksConfig
from twoview.nn.samplers import VariationalDropoutConfig
from twoview.nn.transformer import TransformerConfig
from twoview.train.fit import Fit, FitConfig
from twoview.types import Batch, History, Recommender, Terms

TRAIN: Log = markov(n_users=26, n_items=9, length=6, predictability=0.9, seed=0)
FACTS = Facts.of(TRAIN, 6)
N_STEPS = 3  # of 8 of 26 histories in an epoch


class Counter(Model):
    """Its one weight rises by 1 in every step."""

    def __init__(self) -> None:
        super().__init__(KeepConfig(), FACTS)
        self.weight = nn.Parameter(torch.zeros(()))
        self.prepared: list[int] = []

    def prepare(self, train: Log, epoch: int) -> None:
        self.prepared.append(epoch)

    def loss(self, batch: Batch, step: Tensor) -> Terms:
        assert self.training
        return {"fall": -self.weight}

    def score(self, history: History, /) -> Tensor:
        return self.weight.expand(history.n_histories, 9)


class TwoPhases(Counter):
    """Two steps of one phase, then three of the other; each says when its turn comes."""

    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Parameter(torch.zeros(()))
        self.said: list[str] = []

    @property
    def phases(self) -> tuple[Phase, ...]:
        def said(phase: str) -> Callable[[Batch, Tensor], Terms]:
            def loss(batch: Batch, step: Tensor) -> Terms:
                self.said.append(f"{phase} {int(step)}")
                return {phase: -self.weight - self.other}

            return loss

        return (
            Phase(said("a"), {None: [self.weight]}, steps=2, before=lambda: self.said.append("a comes")),
            Phase(said("b"), {None: [self.other]}, steps=3, before=lambda: self.said.append("b comes")),
        )


def fit_of(model: Model, validate=None, *, seed: int = 0, **settings) -> Fit:
    plain = {"optimiser": "sgd", "lr": 1.0, "clip": None, "precision": "float32", "epochs": 6}
    rows = Rows(
        TRAIN,
        RowsConfig(max_len=6, batch=8),
        generator=torch.Generator().manual_seed(seed),
        device=torch.device("cpu"),
    )
    return Fit(model, rows, TRAIN, FitConfig(**plain | settings), validate)


class Judge:
    """Gives the values it was told, one for each time it is asked, and remembers the weights it saw."""

    def __init__(self, *values: float) -> None:
        self.values, self.seen = iter(values), list[float]()

    def __call__(self, model: Recommender) -> float:
        assert isinstance(model, Counter) and not model.training
        self.seen.append(model.weight.item())
        return next(self.values)


def finished(fit: Fit) -> list[dict[str, float]]:
    return list(fit.epochs())


def test_an_epoch_is_prepared_trained_and_told() -> None:
    model = Counter()
    fit = fit_of(model, Judge(0.1, 0.2), epochs=2)
    told: list[tuple[int, int]] = []
    records = list(fit.epochs(lambda done, of, terms: told.append((done, of))))
    assert model.prepared == [0, 1]
    assert told == [(1, 3), (2, 3), (3, 3)] * 2
    assert [(r["epoch"], r["step"], r["validation"]) for r in records] == [(1, 3, 0.1), (2, 6, 0.2)]
    assert [r["fall"] for r in records] == [-1.0, -4.0]  # the mean of a falling loss over three steps
    assert model.weight.item() == 6.0


def test_the_best_weights_are_kept_and_not_the_last() -> None:
    fit = fit_of(Counter(), Judge(0.1, 0.5, 0.3, 0.5, 0.2, 0.4))
    finished(fit)
    assert fit.selected["weight"] == 2 * N_STEPS
    assert (fit.progress.best, fit.progress.best_epoch, fit.progress.epoch) == (0.5, 2, 6)


def test_patience_counts_validations_without_a_better_one() -> None:
    fit = fit_of(Counter(), Judge(0.1, 0.1, 0.2, 0.1, 0.1, 0.9), patience=2)
    finished(fit)
    assert (fit.progress.epoch, fit.progress.best_epoch, fit.progress.waited) == (5, 3, 2)
    assert fit.selected["weight"] == 3 * N_STEPS


def test_validation_comes_every_few_epochs_and_after_the_last() -> None:
    judge = Judge(0.1, 0.2, 0.3)
    records = finished(fit_of(Counter(), judge, epochs=5, validate_every=2))
    assert ["validation" in record for record in records] == [False, True, False, True, True]
    assert judge.seen == [6.0, 12.0, 15.0]


def test_without_a_number_to_choose_by_the_last_weights_are_kept() -> None:
    fit = fit_of(Counter(), epochs=4, patience=1)
    records = finished(fit)
    assert fit.selected["weight"] == 4 * N_STEPS
    assert not any("validation" in record for record in records)
    assert math.isnan(fit.progress.best) and fit.progress.best_epoch == 4


def test_a_validation_that_is_no_number_is_never_the_best() -> None:
    fit = fit_of(Counter(), Judge(math.nan, 0.1, math.nan), epochs=3)
    finished(fit)
    assert fit.progress.best_epoch == 2


def test_averaged_weights_are_what_is_validated_and_kept() -> None:
    judge = Judge(0.1, 0.2)
    fit = fit_of(Counter(), judge, epochs=2, average=0.9)
    finished(fit)
    mean, seen = 0.0, []
    for step in range(1, 7):
        keep = min(0.9, (1 + step) / (10 + step))
        mean = keep * mean + (1 - keep) * step
        seen.append(mean)
    assert judge.seen == pytest.approx([seen[2], seen[5]])
    assert fit.selected["weight"].item() == pytest.approx(seen[5])
    assert fit.model.weight.item() == 6.0


def test_what_is_kept_is_a_copy_that_training_leaves_alone() -> None:
    fit = fit_of(Counter(), Judge(0.9, 0.1), epochs=2)
    epochs = fit.epochs()
    next(epochs)
    kept = fit.selected["weight"]
    next(epochs)
    assert kept == N_STEPS and fit.selected["weight"] is kept


class Broken(Counter):
    """One of its terms becomes no number in the second epoch."""

    def loss(self, batch: Batch, step: Tensor) -> Terms:
        return {"fall": -self.weight, "kl": torch.where(step < 4, 1.0, math.nan) * self.weight}


def test_a_loss_that_is_no_number_is_refused_by_name_and_epoch() -> None:
    fit = fit_of(Broken(), Judge(*[0.1] * 6))
    epochs = fit.epochs()
    next(epochs)
    with pytest.raises(
        TrainingError, match=r"finite loss was wanted; fall, kl became nan in epoch 2"
    ) as said:
        next(epochs)
    assert "\n" not in str(said.value)


def test_phases_alternate_by_their_steps_whatever_an_epoch_s_length() -> None:
    model = TwoPhases()
    fit = fit_of(model, epochs=4)
    records = finished(fit)
    turns = [said for said in model.said if "comes" not in said]
    assert turns == [f"{'aabbb'[k % 5]} {k}" for k in range(12)]
    assert [said[0] for said in model.said if "comes" in said] == list("ababa")
    assert model.said[:3] == ["a comes", "a 0", "a 1"] and model.said[3:5] == ["b comes", "b 2"]
    assert (model.weight.item(), model.other.item()) == (6.0, 6.0)
    assert ["b" in record for record in records] == [True, True, True, True]
    assert ["a" in record for record in records] == [True, True, True, True]


def test_one_phase_has_its_turn_once_and_for_good() -> None:
    class OnePhase(TwoPhases):
        @property
        def phases(self) -> tuple[Phase, ...]:
            return super().phases[:1]

    model = OnePhase()
    finished(fit_of(model, epochs=2))
    assert model.said == ["a comes", *(f"a {step}" for step in range(6))]


def test_a_model_that_learns_nothing_is_prepared_and_judged_once() -> None:
    class Fixed(Counter):
        def __init__(self) -> None:
            super().__init__()
            self.weight.requires_grad_(False)

    model, judge = Fixed(), Judge(0.7)
    fit = fit_of(model, judge, average=0.9)
    records = finished(fit)
    assert len(records) == 1 and model.prepared == [0]
    assert fit.selected["weight"] == 0 and fit.progress.best == 0.7


def small_vae() -> ContrastVAE:
    """ContrastVAE with everything drawn that can be: views, noise, dropout, negatives."""
    torch.manual_seed(1)
    body = TransformerConfig(heads=1, dropout=0.3, attention_dropout=0.3)
    config = Config(
        dim=8,
        posterior=StacksConfig(transformer=body),
        decoder=body,
        first=Branch(view=AnyConfig()),
        second=Branch(view=AnyConfig(), sampler=VariationalDropoutConfig()),
    )
    return ContrastVAE(config, FACTS)


def steadily(model: Recommender) -> float:
    """A number that depends on the weights alone."""
    assert isinstance(model, nn.Module)
    return sum(float(p.detach().double().square().sum()) for p in model.parameters())


REAL = {"optimiser": "adam", "lr": 0.01, "clip": 1.0, "average": 0.9, "epochs": 4}
MAKERS: Sequence[tuple[str, Callable[[], Model], dict[str, object]]] = (
    ("contrastvae", small_vae, REAL),
    ("two phases", TwoPhases, {**REAL, "average": None}),
)


@pytest.mark.parametrize("make, settings", [m[1:] for m in MAKERS], ids=[m[0] for m in MAKERS])
@pytest.mark.parametrize("done", [1, 3])
def test_a_restored_training_ends_with_the_same_weights_to_the_bit(make, settings, done) -> None:
    torch.manual_seed(0)
    whole = fit_of(make(), steadily, **settings)
    records = finished(whole)

    torch.manual_seed(0)
    killed = fit_of(make(), steadily, **settings)
    epochs = killed.epochs()
    for _ in range(done):
        next(epochs)
    kept = {name: tensor.clone() for name, tensor in killed.state().items()}

    torch.manual_seed(99)
    again = fit_of(make(), steadily, seed=5, **settings)
    torch.rand(7)
    again.restore(kept, killed.progress)
    rest = finished(again)

    names = set(records[0]) - {"train seconds", "validation seconds"}
    assert [{n: r[n] for n in names & set(r)} for r in rest] == [
        {n: r[n] for n in names & set(r)} for r in records[done:]
    ]
    assert again.progress == whole.progress
    for tensors, wanted in (
        (again.model.state_dict(), whole.model.state_dict()),
        (again.selected, whole.selected),
        (again.averages.state(), whole.averages.state()),
        (again.state(), whole.state()),
    ):
        assert tensors.keys() == wanted.keys()
        assert all(torch.equal(tensors[name], wanted[name]) for name in wanted)


def test_what_is_drawn_in_a_loss_is_the_seed_s() -> None:
    ends = []
    for seed in (0, 0, 1):
        model = small_vae()
        torch.manual_seed(seed)
        fit = fit_of(model, steadily, **{**REAL, "epochs": 1})
        finished(fit)
        ends.append(fit.selected["embed.items.weight"])
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[0], ends[2])


def test_training_lowers_the_loss() -> None:
    torch.manual_seed(0)
    records = finished(fit_of(small_vae(), **{**REAL, "epochs": 8, "average": None}))
    assert records[-1]["likelihood"] < 0.9 * records[0]["likelihood"]


@pytest.mark.parametrize(
    "setting", [{"epochs": 0}, {"patience": 0}, {"validate_every": 0}, {"average": 1.0}, {"average": 0.0}]
)
def test_settings_that_train_or_keep_nothing_are_refused(setting) -> None:
    with pytest.raises(ValidationError, match=next(iter(setting))):
        FitConfig(**setting)
