"""Two views agree on one latent for each history, or there is one view and nothing to say."""

import pytest
import torch

from twoview.data.layout import newest_of, pack, pooled
from twoview.error import RecipeError
from twoview.nn.agreement import Agreement, Alone, ContrastConfig
from twoview.objectives import nt_xent

HISTORY = pack(torch.zeros(6, 4, dtype=torch.int64), torch.tensor([3, 1, 4, 3, 1, 4]))
LATENTS = torch.randn(6, 4, 5, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("summary", [newest_of, pooled])
def test_the_first_half_meets_the_second_history_by_history(summary) -> None:
    part = Agreement(ContrastConfig(temperature=0.2).build(5), summary, 0.3)
    (term,) = part(LATENTS, HISTORY).values()
    own = summary(LATENTS, HISTORY)
    torch.testing.assert_close(term, 0.3 * nt_xent(own[:3], own[3:], temperature=0.2))


def test_equal_views_agree_better_than_shuffled_ones() -> None:
    part = Agreement(ContrastConfig().build(5), newest_of, 1.0)
    once = LATENTS[:3]
    alike = part(torch.cat([once, once]), HISTORY)["contrast"]
    rolled = pack(torch.zeros(6, 4, dtype=torch.int64), torch.tensor([3, 1, 4, 1, 4, 3]))
    shuffled = part(torch.cat([once, once.roll(-1, 0)]), rolled)["contrast"]
    assert alike < shuffled


def test_alone_there_is_no_term() -> None:
    assert Alone()(LATENTS, HISTORY) == {}


def test_an_unknown_contrast_lists_those_there_are() -> None:
    with pytest.raises(RecipeError, match=r"info_nec.*info_nce"):
        ContrastConfig(kind="info_nec").build(5)
