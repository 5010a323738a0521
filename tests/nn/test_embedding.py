"""A place is its item and its position; where the item may not be looked at, the hidden vector is there."""

from dataclasses import replace

import pytest
import torch

from twoview.data.layout import pack
from twoview.nn.embedding import Embedding, EmbeddingConfig

HISTORY = pack(torch.tensor([[0, 1, 2], [3, 4, 0]]), torch.tensor([3, 2]))


def part(**settings) -> Embedding:
    torch.manual_seed(0)
    return Embedding(5, 3, 4, EmbeddingConfig(**settings)).eval()


def test_a_place_is_item_plus_position() -> None:
    embed = part(norm="none")
    vectors = embed(HISTORY)
    assert torch.equal(vectors[0, 0], embed.items.weight[0] + embed.positions.weight[2])
    assert torch.equal(vectors[1, 1], embed.items.weight[4] + embed.positions.weight[0])


def test_scale_is_the_root_of_the_width_and_leaves_positions_alone() -> None:
    embed = part(norm="none", scale=True)
    wanted = 2 * embed.items.weight[1] + embed.positions.weight[1]
    torch.testing.assert_close(embed(HISTORY)[0, 1], wanted)


def test_layer_norm_comes_after_the_sum() -> None:
    embed, plain = part(), part(norm="none")
    torch.testing.assert_close(embed(HISTORY), torch.nn.functional.layer_norm(plain(HISTORY), (4,)))


@pytest.mark.parametrize("item", range(5))
def test_where_an_item_is_hidden_no_item_shows_through(item) -> None:
    embed = part(norm="none")
    hidden = torch.tensor([[False, True, False], [False, False, False]])
    items = HISTORY.items.clone()
    items[0, 1] = item
    vectors = embed(replace(HISTORY, items=items, hidden=hidden))
    assert torch.equal(vectors[0, 1], embed.hidden + embed.positions.weight[1])
    assert torch.equal(vectors[~hidden], embed(HISTORY)[~hidden])


def test_a_hidden_item_has_no_gradient_and_the_hidden_vector_has_one() -> None:
    embed = part(norm="none")
    hidden = torch.tensor([[False, True, False], [False, False, False]])
    embed(replace(HISTORY, hidden=hidden)).square().sum().backward()
    assert embed.hidden.grad is not None and embed.hidden.grad.any()
    assert embed.items.weight.grad is not None
    assert embed.items.weight.grad.any(1).tolist() == [True, False, True, True, True]


def test_dropout_is_drawn_in_training_alone() -> None:
    embed = part(dropout=0.5)
    assert torch.equal(embed(HISTORY), embed(HISTORY))
    assert (embed.train()(HISTORY) == 0).any()
