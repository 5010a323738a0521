"""Attention stays within a history, looks where its relation lets it, and is finite at empty places."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from twoview.nn.transformer import (
    BLOCKS,
    Attention,
    Transformer,
    TransformerConfig,
    both_ways,
    causal,
    glorot,
    small_normal,
)
from twoview.types import History

DIM = 8
every_block = pytest.mark.parametrize("norm", BLOCKS)


def history_of(rows: Sequence[Sequence[int]]) -> History:
    """Owners as drawn; everything else follows from them."""
    owner = torch.tensor(rows)
    flat = owner.flatten()
    newest = torch.stack([(flat == one).nonzero().max() for one in range(int(flat.max()) + 1)])
    place = torch.arange(flat.numel())
    back = torch.where(flat >= 0, newest[flat.clamp(min=0)] - place, 0).view_as(owner)
    nobody = torch.full_like(newest, -1)
    return History(
        items=torch.zeros_like(owner),
        owner=owner,
        hidden=torch.zeros_like(owner, dtype=torch.bool),
        position=back,
        times=torch.zeros_like(owner),
        newest=newest,
        users=nobody,
        event=nobody,
    )


PACKED = history_of([[0, 0, 0, 1, 1, -1], [2, 2, 2, 2, -1, -1]])


def stack(norm: str = "post", relation=causal, *, layers: int = 2) -> Transformer:
    torch.manual_seed(0)
    return Transformer(DIM, TransformerConfig(norm=norm, layers=layers), relation).eval()


def vectors(history: History, seed: int = 0) -> Tensor:
    return torch.randn(*history.owner.shape, DIM, generator=torch.Generator().manual_seed(seed))


def test_the_relations_are_as_a_loop_spells_them() -> None:
    owner = PACKED.owner.tolist()
    for row, own in enumerate(owner):
        for seeing, a in enumerate(own):
            for seen, b in enumerate(own):
                alike = seeing == seen or (a == b and a >= 0)
                assert both_ways(PACKED)[row, seeing, seen] == alike
                assert causal(PACKED)[row, seeing, seen] == (alike and seen <= seeing)


@every_block
@torch.no_grad()
def test_the_future_cannot_change_the_past(norm) -> None:
    x, changed = vectors(PACKED), vectors(PACKED)
    changed[0, 2], changed[1, 1] = 5.0, -5.0
    body = stack(norm)
    before, after = body(x, PACKED), body(changed, PACKED)
    assert torch.equal(before[0, :2], after[0, :2]) and torch.equal(before[1, :1], after[1, :1])
    assert not torch.isclose(before[0, 2], after[0, 2]).all()
    assert not torch.isclose(before[1, 3], after[1, 3]).all()


@every_block
@torch.no_grad()
def test_both_ways_the_future_is_seen(norm) -> None:
    x, changed = vectors(PACKED), vectors(PACKED)
    changed[0, 2] = torch.arange(DIM)
    body = stack(norm, both_ways)
    before, after = body(x, PACKED), body(changed, PACKED)
    assert not torch.isclose(before[0, 0], after[0, 0]).all()
    assert torch.equal(before[0, 3:5], after[0, 3:5])


@every_block
@pytest.mark.parametrize("relation", [causal, both_ways])
@torch.no_grad()
def test_neighbours_cannot_be_told_from_strangers_in_another_row(norm, relation) -> None:
    apart = history_of([[0, 0, 0, -1, -1, -1], [-1, 1, 1, -1, -1, -1], [-1, -1, 2, 2, 2, 2]])
    x = vectors(PACKED)
    far = torch.randn(3, 6, DIM)
    far[0, :3], far[1, 1:3], far[2, 2:] = x[0, :3], x[0, 3:5], x[1, :4]
    body = stack(norm, relation)
    near, away = body(x, PACKED), body(far, apart)
    torch.testing.assert_close(away[0, :3], near[0, :3], rtol=0, atol=1e-6)
    torch.testing.assert_close(away[1, 1:3], near[0, 3:5], rtol=0, atol=1e-6)
    torch.testing.assert_close(away[2, 2:], near[1, :4], rtol=0, atol=1e-6)


@every_block
@pytest.mark.parametrize("relation", [causal, both_ways])
def test_empty_places_and_empty_rows_are_never_nan(norm, relation) -> None:
    rows = replace(PACKED, owner=torch.full_like(PACKED.owner, -1))
    x = vectors(PACKED).requires_grad_()
    body = stack(norm, relation).train()
    (body(x, rows).sum() + body(x, PACKED).sum()).backward()
    assert x.grad is not None and x.grad.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in body.parameters())


@torch.no_grad()
def test_attention_equals_its_slow_spelling() -> None:
    torch.manual_seed(0)
    attention = Attention(DIM, TransformerConfig(heads=2)).eval()
    x, others = vectors(PACKED), vectors(PACKED, seed=1)
    came = attention(x, others, causal(PACKED))
    width = DIM // 2
    for row, owners in enumerate(PACKED.owner.tolist()):
        for place, own in enumerate(owners):
            seen = [k for k in range(place + 1) if owners[k] == own >= 0] or [place]
            heads = []
            for head in range(2):
                part = slice(head * width, (head + 1) * width)
                query = attention.query(x[row, place])[part]
                keys, values = attention.key(others[row, seen])[:, part], attention.value(others[row, seen])
                weights = (keys @ query / width**0.5).softmax(0)
                heads.append(weights @ values[:, part])
            if own >= 0:
                torch.testing.assert_close(came[row, place], attention.out(torch.cat(heads)))


@torch.no_grad()
def test_each_block_normalises_where_its_paper_does() -> None:
    x = vectors(PACKED)
    post, pre, query = (stack(norm, layers=1) for norm in ("post", "pre", "query"))
    sees = causal(PACKED)
    for body in (post, pre, query):
        torch.nn.init.normal_(body.blocks[0].norms[0].weight)
    a = post.blocks[0]
    y = a.norms[0](x + a.attention(x, x, sees))
    torch.testing.assert_close(post(x, PACKED), a.norms[1](y + a.feed(y)))
    b = pre.blocks[0]
    y = x + b.attention(b.norms[0](x), b.norms[0](x), sees)
    torch.testing.assert_close(pre(x, PACKED), pre.last(y + b.feed(b.norms[1](y))))
    c = query.blocks[0]
    y = c.norms[1](c.norms[0](x) + c.attention(c.norms[0](x), x, sees))
    torch.testing.assert_close(query(x, PACKED), query.last(y + c.feed(y)))


def test_dropout_is_drawn_in_training_alone() -> None:
    body, x = stack(), vectors(PACKED)
    assert torch.equal(body(x, PACKED), body(x, PACKED))
    body.train()
    assert not torch.equal(body(x, PACKED), body(x, PACKED))


def test_a_width_that_does_not_divide_by_the_heads_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple of the heads; 8 and 3 came"):
        Attention(8, TransformerConfig(heads=3))


@torch.no_grad()
def test_beginnings_have_their_spread_and_no_bias() -> None:
    torch.manual_seed(0)
    small = torch.nn.Sequential(torch.nn.Linear(300, 200), torch.nn.Embedding(500, 60)).apply(small_normal)
    uniform = torch.nn.Linear(300, 200).apply(glorot)
    assert [float(part.weight.std()) for part in small] == pytest.approx([0.02, 0.02], rel=0.03)
    assert float(uniform.weight.abs().max()) == pytest.approx((6 / 500) ** 0.5, rel=1e-3)
    assert not small[0].bias.any() and not uniform.bias.any()
