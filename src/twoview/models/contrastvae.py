"""contrastvae: a variational next-item model trained on two views of every history that must agree.

Wang, Zhang, Liu, Yang, Yu, ContrastVAE, CIKM 2022, https://arxiv.org/abs/2209.00456
A posterior per place, a latent drawn from it, a decoder that is asked for the item that followed; the same
for a second view, and the latents of both are pulled together against those of other histories.

    loss = sum over branches (-log p(target | z) + beta KL(q(z | view) || N(0, I))) + weight contrast(z, z')

Where we differ: no padding enters any term, a branch is a view and a sampler, and any likelihood or objective
can be taken. Recipe `paper` is what the paper defines, `released` what its code does, `best` what we found.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from ..config import Part
from ..data.augment import KeepConfig, ViewConfig
from ..data.layout import joined, newest_of, pooled
from ..data.log import Log
from ..nn.agreement import Agreement, Alone, ContrastConfig
from ..nn.embedding import Embedding, EmbeddingConfig
from ..nn.gaussian import PosteriorConfig, StacksConfig, sigma_of
from ..nn.kl import KLConfig
from ..nn.likelihood import BinaryConfig, LikelihoodConfig
from ..nn.match import DotConfig, MatchConfig
from ..nn.samplers import GaussianConfig, MeanConfig, ReadingConfig, SamplerConfig, Samplers
from ..nn.transformer import Transformer, TransformerConfig, causal, small_normal
from ..types import Batch, History, Terms
from .base import Claims, Facts, SequenceModel

BLOCK = TransformerConfig(heads=4, dropout=0.3, attention_dropout=0.0)


class Branch(Part):
    """How one view of a history comes about and how its latent is drawn."""

    view: ViewConfig | None = (
        None  # "none": the view of the branch before, its embedding and dropout included
    )
    sampler: SamplerConfig = GaussianConfig()


class Config(Part):
    """The paper's settings, its model augmentation."""

    dim: int = 128
    embedding: EmbeddingConfig = EmbeddingConfig(dropout=0.3)
    posterior: PosteriorConfig = StacksConfig(transformer=BLOCK)
    decoder: TransformerConfig = BLOCK
    first: Branch = Branch(view=KeepConfig())
    second: Branch | None = Branch()
    match: MatchConfig = DotConfig()
    likelihood: LikelihoodConfig = BinaryConfig()
    kl: KLConfig = KLConfig()
    contrast: ContrastConfig = ContrastConfig()
    contrast_weight: float = 0.3
    contrast_on: Literal["newest", "pooled"] = (
        "newest"  # the latent of the newest place, or the sum over places
    )
    reading: ReadingConfig = MeanConfig()


class ContrastVAE(SequenceModel):
    """See the module."""

    claims = Claims(causal=True, ordered=True)

    def __init__(self, config: Config, facts: Facts) -> None:
        super().__init__(config, facts)
        branches = [branch for branch in (config.first, config.second) if branch]
        self.embed = Embedding(facts.n_items, facts.max_len, config.dim, config.embedding)
        self.posterior = config.posterior.build(config.dim)
        self.decoder = Transformer(config.dim, config.decoder, causal)
        self.apply(small_normal)
        self.embed.begin()
        self.views = nn.ModuleList(branch.view.build() for branch in branches if branch.view)
        self.samplers = Samplers(*(branch.sampler.build() for branch in branches))
        self.sharing = len(branches) // len(self.views)  # branches of one view
        self.match, self.reading = config.match.build(), config.reading.build(config.dim)
        self.likelihood = config.likelihood.build(facts.n_users, facts.n_items, facts.n_events, facts.max_len)
        self.kl = config.kl.build(facts.max_len)
        summary = {"newest": newest_of, "pooled": pooled}[config.contrast_on]
        together = Agreement(config.contrast.build(config.dim), summary, config.contrast_weight)
        self.agreement = together if config.second else Alone()

    @property
    def item_table(self) -> Tensor:
        return self.embed.items.weight

    def prepare(self, train: Log, epoch: int) -> None:
        self.likelihood.prepare(train)

    def encode(self, history: History) -> Tensor:
        mean, log_var = self.posterior(self.embed(history), history)
        return self.decoder(self.reading.point(mean, sigma_of(log_var)), history)

    def loss(self, batch: Batch, step: Tensor) -> Terms:
        seen = [view(batch) for view in self.views]
        vectors = torch.cat([self.embed(view.history) for view in seen] * self.sharing)
        both = joined(*seen * self.sharing)
        mean, log_var = self.posterior(vectors, both.history)
        latents = self.samplers(mean, sigma_of(log_var))
        states = self.match.states(self.decoder(latents, both.history))
        n = len(self.samplers)
        return {
            "likelihood": n * self.likelihood(states, self.match.table(self.item_table), both),
            "kl": n * self.kl(mean, log_var, both.history, step),
            **self.agreement(latents, both.history),
            **self.samplers.terms(),
        }

    def score(self, history: History, /) -> Tensor:
        mean, log_var = self.posterior(self.embed(history), history)

        def scored(latents: Tensor) -> Tensor:
            return self.match.scores(newest_of(self.decoder(latents, history), history), self.item_table)

        return self.reading(mean, sigma_of(log_var), scored)
