"""How states meet the table: a dot product, or the angle alone."""

import torch

from twoview.nn.match import CosineConfig, DotConfig

STATES = torch.tensor([[3.0, 4.0], [0.0, -2.0]])
TABLE = torch.tensor([[1.0, 0.0], [0.0, 7.0], [-6.0, -8.0]])


def test_dot_scores_are_plain_products() -> None:
    assert DotConfig().build().scores(STATES, TABLE).tolist() == [[3, 28, -50], [0, -14, 16]]


def test_cosine_scores_are_angles_sharpened_by_the_temperature() -> None:
    scores = CosineConfig(temperature=0.5).build().scores(STATES, TABLE)
    wanted = torch.tensor([[0.6, 0.8, -1.0], [0.0, -1.0, 0.8]]) / 0.5
    torch.testing.assert_close(scores, wanted)


def test_no_norm_changes_a_cosine_score() -> None:
    match = CosineConfig().build()
    torch.testing.assert_close(match.scores(9 * STATES, TABLE / 5), match.scores(STATES, TABLE))


def test_a_cosine_of_nothing_is_no_nan() -> None:
    match = CosineConfig().build()
    states = torch.zeros(1, 2, requires_grad=True)
    scores = match.scores(states, torch.cat([TABLE, torch.zeros(1, 2)]))
    scores.sum().backward()
    assert scores.tolist() == [[0.0] * 4]
    assert states.grad is not None and states.grad.isfinite().all()


def test_scores_are_float32_whatever_meets() -> None:
    assert DotConfig().build().scores(STATES.bfloat16(), TABLE.bfloat16()).dtype == torch.float32


def test_both_sides_together_make_the_score() -> None:
    match = CosineConfig().build()
    torch.testing.assert_close(
        match.states(STATES) @ match.table(TABLE).T, match.scores(STATES, TABLE), rtol=0, atol=0
    )
