"""The queue and the teacher of momentum contrast."""

import math

import pytest
import torch
from torch import Tensor, nn

from twoview.objectives import MoCo, follow


def rows(n: int, *, seed: int = 0) -> Tensor:
    return torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))


def test_the_queue_is_replaced_in_order_and_the_place_returns_to_zero() -> None:
    queue = MoCo(4, n_keys=6)
    before = queue.keys.clone()
    queue(rows(2), rows(2, seed=1))
    torch.testing.assert_close(queue.keys[:2], torch.nn.functional.normalize(rows(2, seed=1), dim=1))
    torch.testing.assert_close(queue.keys[2:], before[2:])
    for seed in (2, 3):
        queue(rows(2), rows(2, seed=seed))
    assert queue.place == 0
    assert not (queue.keys == before).any()


def test_a_batch_that_does_not_divide_the_queue_wraps_around() -> None:
    queue = MoCo(4, n_keys=5)
    for seed in (1, 2):
        queue(rows(3), rows(3, seed=seed))
    assert queue.place == 1
    torch.testing.assert_close(queue.keys[0], torch.nn.functional.normalize(rows(3, seed=2), dim=1)[2])


def test_a_batch_larger_than_the_queue_leaves_its_newest_keys() -> None:
    queue = MoCo(4, n_keys=2)
    queue(rows(5), rows(5, seed=1))
    torch.testing.assert_close(queue.keys, torch.nn.functional.normalize(rows(5, seed=1), dim=1)[-2:])


def test_keys_join_the_queue_after_the_loss_and_only_in_training() -> None:
    queue = MoCo(4, n_keys=6)
    asked = queue.eval()(rows(2), rows(2, seed=1))
    assert queue.place == 0
    learned = queue.train()(rows(2), rows(2, seed=1))
    assert asked == learned
    assert queue.place == 2


def test_keys_have_no_gradient_and_queries_do_though_the_queue_moves_on() -> None:
    queue = MoCo(4, n_keys=6)
    a, b = rows(2).requires_grad_(), rows(2, seed=1).requires_grad_()
    queue(a, b).backward()
    assert a.grad is not None
    assert a.grad.any()
    assert b.grad is None


def test_equal_keys_give_log_k() -> None:
    queue = MoCo(4, n_keys=6)
    queue.keys.copy_(torch.eye(4)[0].expand(6, 4))
    query = torch.eye(4)[:1]
    assert queue.eval()(query, query).item() == pytest.approx(math.log(7))


def test_equal_seeds_start_equal_queues_of_unit_rows() -> None:
    torch.testing.assert_close(MoCo(4, seed=3).keys, MoCo(4, seed=3).keys)
    assert (MoCo(4, seed=3).keys != MoCo(4, seed=4).keys).any()
    torch.testing.assert_close(MoCo(4).keys.norm(dim=1), torch.ones(4096))


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="the queue holds rows of 4; rows of 3 came"):
        MoCo(4)(torch.ones(2, 3), torch.ones(2, 3))


def twins() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), nn.Sequential(
        nn.Linear(3, 2), nn.BatchNorm1d(2)
    )


def test_the_teacher_stays_at_momentum_one_and_copies_at_zero() -> None:
    teacher, student = twins()
    before = [p.clone() for p in teacher.parameters()]
    follow(teacher, student, 1.0)
    assert all(torch.equal(p, q) for p, q in zip(teacher.parameters(), before, strict=True))
    follow(teacher, student, 0.0)
    assert all(torch.equal(p, q) for p, q in zip(teacher.parameters(), student.parameters(), strict=True))


def test_the_teacher_moves_by_the_rest_of_momentum_and_takes_the_buffers() -> None:
    teacher, student = twins()
    student(torch.randn(8, 3))
    old, new = next(teacher.parameters()).clone(), next(student.parameters())
    follow(teacher, student, 0.9)
    torch.testing.assert_close(next(teacher.parameters()), 0.9 * old + 0.1 * new)
    assert torch.equal(teacher[1].running_mean, student[1].running_mean)


def test_a_teacher_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="a teacher wants the student's shapes"):
        follow(nn.Linear(2, 2), nn.Linear(3, 2), 0.9)
