"""sasrec: a causal transformer reads what was chosen; its last state is matched with every item.

Kang, McAuley, Self-Attentive Sequential Recommendation, ICDM 2018, https://arxiv.org/abs/1808.09781
Each place attends to its own past and is asked for the item that followed. One table of items is both what is
read and what is matched.

    loss = mean over places of -log p(target | state), p by the likelihood: binary (the paper), softmax, ...

Where we differ: histories are packed and positions count from the newest, which is the paper's left padding
without the padding; attention has an output projection; negatives avoid the user's training items alone.
"""

from typing import Literal

from torch import Tensor

from ..config import Part
from ..data.augment import KeepConfig, ViewConfig
from ..data.log import Log
from ..nn.embedding import Embedding, EmbeddingConfig
from ..nn.likelihood import BinaryConfig, LikelihoodConfig
from ..nn.match import DotConfig, MatchConfig
from ..nn.transformer import Transformer, TransformerConfig, causal, glorot, small_normal
from ..types import Batch, History, Terms
from .base import Claims, Facts, SequenceModel


class Config(Part):
    """The paper's settings."""

    dim: int = 50
    embedding: EmbeddingConfig = EmbeddingConfig(norm="none", scale=True)
    transformer: TransformerConfig = TransformerConfig(
        layers=2, heads=1, norm="query", activation="relu", widening=1, norm_eps=1e-8
    )
    start: Literal["glorot", "normal"] = "glorot"  # how weights begin; normal has deviation .02
    view: ViewConfig = KeepConfig()  # what training histories look like
    match: MatchConfig = DotConfig()
    likelihood: LikelihoodConfig = BinaryConfig()


class SASRec(SequenceModel):
    """See the module."""

    claims = Claims(causal=True, ordered=True)

    def __init__(self, config: Config, facts: Facts) -> None:
        super().__init__(config, facts)
        self.embed = Embedding(facts.n_items, facts.max_len, config.dim, config.embedding)
        self.body = Transformer(config.dim, config.transformer, causal)
        self.apply({"glorot": glorot, "normal": small_normal}[config.start])
        self.embed.begin()
        self.view = config.view.build()
        self.match = config.match.build()
        self.likelihood = config.likelihood.build(facts.n_users, facts.n_items, facts.n_events, facts.max_len)

    @property
    def item_table(self) -> Tensor:
        return self.embed.items.weight

    def prepare(self, train: Log, epoch: int) -> None:
        self.likelihood.prepare(train)

    def encode(self, history: History) -> Tensor:
        return self.body(self.embed(history), history)

    def loss(self, batch: Batch, step: Tensor) -> Terms:
        seen = self.view(batch)
        states, table = self.match.states(self.encode(seen.history)), self.match.table(self.item_table)
        return {"likelihood": self.likelihood(states, table, seen)}
