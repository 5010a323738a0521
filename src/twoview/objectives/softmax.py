"""-log softmax of a target among all items, without the waste: one pass, products in the context's precision.

The gradient of a place is its probabilities less one at its target. It is made where the loss is, in the
memory of the scores, so that scores are written once and nothing else is kept. Where even this does not fit
the budget, items are taken in stretches: their sums first, then their gradients from scores made once more.
"""

import torch
from torch import Tensor

BUDGET = 1 << 30  # bytes of scores at once


def softmax(states: Tensor, table: Tensor, targets: Tensor, *, budget: int = BUDGET) -> Tensor:
    """The mean over places whose target is not -1: [T, D], [I, D], [T] -> []"""
    kind = states.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype
    stretch = max(1, budget // (states.shape[0] * torch.finfo(dtype).bits // 8))
    losses: Tensor = (_Whole if stretch >= table.shape[0] else _Stretched).apply(  # type: ignore[no-untyped-call]
        states, table, targets, dtype, stretch
    )
    return losses / (targets >= 0).sum().clamp(min=1)


class _Whole(torch.autograd.Function):
    """All items at once; the sum over places."""

    @staticmethod
    def forward(ctx, states, table, targets, dtype, stretch):  # type: ignore[no-untyped-def]
        states, table = states.to(dtype), table.to(dtype)
        asked, target = targets >= 0, targets.clamp(min=0)[:, None]
        scores = states @ table.T
        behind = scores.amax(1, keepdim=True).float() - scores.gather(1, target).float()  # [T, 1]
        chances = torch.softmax(scores, dim=1, dtype=dtype)  # [T, I]
        del scores
        losses = behind - chances.amax(1, keepdim=True).float().log()  # the largest chance never vanishes
        own = (torch.arange(len(states), device=states.device), target[:, 0])
        chances.index_put_(own, chances[own] - 1)  # a scatter would copy the whole of it
        ctx.save_for_backward(states, table, chances, asked)
        return torch.where(asked[:, None], losses, 0.0).sum()

    @staticmethod
    def backward(ctx, slope):  # type: ignore[no-untyped-def]
        states, table, chances, asked = ctx.saved_tensors
        weight = (asked * slope)[:, None].to(states.dtype)  # [T, 1]
        to_states = (chances @ table) * weight
        to_table = chances.T @ (states * weight)
        return to_states.float(), to_table.float(), None, None, None


class _Stretched(torch.autograd.Function):
    """The same sum, items taken in stretches; gradients are whole when the loss is."""

    @staticmethod
    def forward(ctx, states, table, targets, dtype, stretch):  # type: ignore[no-untyped-def]
        states, table = states.to(dtype), table.to(dtype)
        asked, target = targets >= 0, targets.clamp(min=0)[:, None]
        sums = torch.full((len(states), 1), -torch.inf, device=states.device)
        for rows in table.split(stretch):
            sums = torch.logaddexp(sums, (states @ rows.T).float().logsumexp(1, keepdim=True))
        own = (states * table[target[:, 0]]).float().sum(1)
        weighted = states * asked[:, None]
        to_states = torch.zeros(states.shape, device=states.device)
        to_table = []
        for first, rows in zip(range(0, len(table), stretch), table.split(stretch), strict=True):
            chances = ((states @ rows.T).float() - sums).exp()
            here = (target >= first) & (target < first + len(rows))
            chances.scatter_add_(1, (target - first).clamp(0, len(rows) - 1), -here.float())
            to_states += (chances.to(dtype) @ rows).float()
            to_table.append(chances.to(dtype).T @ weighted)
        ctx.save_for_backward(to_states * asked[:, None], torch.cat(to_table))
        return torch.where(asked, sums[:, 0] - own, 0.0).sum()

    @staticmethod
    def backward(ctx, slope):  # type: ignore[no-untyped-def]
        to_states, to_table = ctx.saved_tensors
        return to_states * slope, to_table.float() * slope, None, None, None
