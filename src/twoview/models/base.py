"""What every model is, said once: what it may know, what it claims, how it is trained and asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from ..config import Part
from ..data.log import Log
from ..nn.match import Match
from ..types import Batch, History, Terms


@dataclass(frozen=True)
class Facts:
    """All that a model may know of the data before it has seen any."""

    n_users: int
    n_items: int
    n_events: int  # of the training log
    max_len: int
    has_times: bool = False
    n_attributes: int = 0

    @classmethod
    def of(cls, train: Log, max_len: int) -> "Facts":
        n_attributes = len(train.attribute_ids)
        return cls(
            train.n_users, train.n_items, train.n_events, max_len, train.times is not None, n_attributes
        )


@dataclass(frozen=True, kw_only=True)
class Claims:
    """Which laws a model is held to."""

    causal: bool = False  # encode: a place's state depends on nothing after it
    ordered: bool = False  # the order of a history matters to its scores
    folds_in: bool = True  # answers for users it was not trained on
    stackable: bool = False  # several lift into one by torch.func.vmap
    learns: bool = True  # has parameters and a loss; False for a model that counts


class Optimiser(Part):
    """An optimiser of a phase's own, where the recipe's does not fit."""

    kind: str = "adam"
    lr: float = 1e-3
    weight_decay: float = 0.0


@dataclass(frozen=True)
class Phase:
    """A loss with the parameters that it moves; phases are cycled, each step sees its own batch."""

    loss: Callable[[Batch, Tensor], Terms]
    moves: Mapping[Optimiser | None, Sequence[nn.Parameter]]  # None: the recipe's optimiser
    steps: int = 1  # in a row, before the next phase has its turn
    before: Callable[[], None] | None = None  # done when the phase's turn comes


class Model(nn.Module):
    """A recommender that is trained: a file in `models/`, a Config, a loss, a score."""

    claims: ClassVar[Claims] = Claims()
    room: int = 0  # hidden places wanted behind each history

    def __init__(self, config: Part, facts: Facts) -> None:
        super().__init__()
        self.facts = facts

    @property
    def phases(self) -> tuple[Phase, ...]:
        return (Phase(self.loss, {None: list(self.parameters())}),)

    def prepare(self, train: Log, epoch: int) -> None:
        """Count, look up or build from the training log; before each epoch; buffers keep their shape."""

    def loss(self, batch: Batch, step: Tensor) -> Terms:
        """Named, weighted terms; reads parameters, buffers and the batch, and nothing else."""
        return {}

    def score(self, history: History, /) -> Tensor:
        """A finite float32 score for every item: [B, I]"""
        raise TypeError(f"{type(self).__name__} is a model without a score")


class SequenceModel(Model):
    """A state per place, matched with a table of items."""

    match: Match

    @property
    def item_table(self) -> Tensor:
        """One row per item: [I, D]"""
        raise TypeError(f"{type(self).__name__} is a sequence model without an item_table")

    def encode(self, history: History) -> Tensor:
        """What is expected after each place: [R, W, D]"""
        raise TypeError(f"{type(self).__name__} is a sequence model without an encode")

    def score(self, history: History, /) -> Tensor:
        states = self.encode(history).flatten(0, 1)[history.newest]
        return self.match.scores(states, self.item_table)
