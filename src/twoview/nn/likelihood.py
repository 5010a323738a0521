"""How likely the items that followed were: parts with negatives of their own."""

from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor, nn

from ..config import Part
from ..data.layout import unpacked
from ..data.log import Log
from ..data.negatives import Negatives
from ..objectives.ranking import binary, generalised_binary, sampled_softmax
from ..objectives.softmax import softmax
from ..types import Batch, History


class Likelihood(nn.Module):
    """-log p of what followed, the mean over the places asked."""

    def prepare(self, train: Log) -> None:
        """Remembers what it needs of the training log."""

    def forward(self, states: Tensor, table: Tensor, batch: Batch) -> Tensor:
        """[R, W, D], [I, D] -> []"""
        raise TypeError(f"{type(self).__name__} is a likelihood without a forward")


class Softmax(Likelihood):
    """Each target among all items."""

    def forward(self, states: Tensor, table: Tensor, batch: Batch) -> Tensor:
        return softmax(states.flatten(0, 1), table, batch.targets.flatten())


class OneEach(Likelihood):
    """Each target against one item the user never chose, drawn anew for each place: binary cross-entropy."""

    def __init__(self, negatives: Negatives) -> None:
        super().__init__()
        self.negatives = negatives

    def prepare(self, train: Log) -> None:
        self.negatives.prepare(train)

    def forward(self, states: Tensor, table: Tensor, batch: Batch) -> Tensor:
        other = self.negatives.draw(_users(batch.history), 1)[..., 0]
        chosen = (states * table[batch.targets.clamp(min=0)]).sum(-1)
        rejected = (states * table[other]).sum(-1)
        return binary(chosen, rejected, batch.targets >= 0)


class Drawn(Likelihood):
    """Each target against n items the user never chose, shared by all places of the history."""

    def __init__(self, negatives: Negatives, n: int, max_len: int) -> None:
        super().__init__()
        self.negatives, self.n, self.max_len = negatives, n, max_len

    def prepare(self, train: Log) -> None:
        self.negatives.prepare(train)

    def forward(self, states: Tensor, table: Tensor, batch: Batch) -> Tensor:
        place, exists = unpacked(batch.history, self.max_len)  # [B, L]
        own, targets = states.flatten(0, 1)[place], batch.targets.flatten()[place]  # [B, L, D], [B, L]
        others = table[self.negatives.draw(batch.history.users, self.n)]  # [B, n, D]
        chosen = (own * table[targets.clamp(min=0)]).sum(-1)
        return self.compared(chosen, own @ others.transpose(1, 2), exists & (targets >= 0))

    def compared(self, chosen: Tensor, rejected: Tensor, asked: Tensor) -> Tensor:
        """[B, L], [B, L, n], [B, L] -> []"""
        return sampled_softmax(chosen, rejected, asked)


class GeneralisedBinary(Drawn):
    """gSASRec's loss: binary cross-entropy whose positive side is tempered for the share of items drawn."""

    def __init__(self, negatives: Negatives, n: int, max_len: int, calibration: float) -> None:
        super().__init__(negatives, n, max_len)
        share = n / (negatives.n_items - 1)
        self.beta = 1 - calibration * (1 - min(share, 1.0))

    def compared(self, chosen: Tensor, rejected: Tensor, asked: Tensor) -> Tensor:
        return generalised_binary(chosen, rejected, asked, beta=self.beta)


def _users(history: History) -> Tensor:
    """The user of each place: [R, W]"""
    return history.users[history.owner.clamp(min=0)]


class SoftmaxConfig(Part):
    kind: Literal["softmax"] = "softmax"

    def build(self, n_users: int, n_items: int, n_events: int, max_len: int) -> Likelihood:
        return Softmax()


class BinaryConfig(Part):
    kind: Literal["binary"] = "binary"

    def build(self, n_users: int, n_items: int, n_events: int, max_len: int) -> Likelihood:
        return OneEach(Negatives(n_users, n_items, n_events))


class SampledSoftmaxConfig(Part):
    kind: Literal["sampled-softmax"] = "sampled-softmax"
    negatives: Annotated[int, Field(ge=1)] = 256

    def build(self, n_users: int, n_items: int, n_events: int, max_len: int) -> Likelihood:
        return Drawn(Negatives(n_users, n_items, n_events), self.negatives, max_len)


class GeneralisedBinaryConfig(Part):
    kind: Literal["gbce"] = "gbce"
    negatives: Annotated[int, Field(ge=1)] = 256
    calibration: Annotated[float, Field(ge=0, le=1)] = (
        0.75  # t: 0 is plain binary cross-entropy, 1 calibrated
    )

    def build(self, n_users: int, n_items: int, n_events: int, max_len: int) -> Likelihood:
        return GeneralisedBinary(
            Negatives(n_users, n_items, n_events), self.negatives, max_len, self.calibration
        )


LikelihoodConfig = Annotated[
    SoftmaxConfig | BinaryConfig | SampledSoftmaxConfig | GeneralisedBinaryConfig, Field(discriminator="kind")
]
