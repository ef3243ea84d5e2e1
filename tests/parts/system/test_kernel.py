"""Kernels are made with their first call, and are Numba's dispatchers from then on."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from oop_engine.operators.kernels.time_order import time_order
from oop_engine.system.kernel import Kernel, njit


@njit()
def doubled(n):
    """Return twice ``n``."""
    return 2 * n


@njit()
def four_times(n):
    return doubled(doubled(n))


@njit(inline="always")
def one_more(n):
    return n + 1


@njit(nogil=True)
def applied(f, n):
    return f(n) + one_more(n)


def test_nothing_is_made_before_the_first_call() -> None:
    kernel = Kernel(lambda n: n + 1, {})
    assert "_made" not in vars(kernel)
    assert kernel(1) == 2
    assert isinstance(kernel.func, Dispatcher)
    assert kernel(2) == 3


def test_kernels_call_kernels_and_take_them() -> None:
    assert four_times(3) == 12
    assert applied(four_times, 3) == 16
    assert applied(doubled, 3) == 10


def test_the_attributes_are_those_of_the_dispatcher() -> None:
    assert doubled.__doc__ == "Return twice ``n``."
    assert doubled.py_func(4) == 8
    doubled(2.0)
    assert len(doubled.signatures) >= 1
    with pytest.raises(AttributeError):
        doubled.nothing  # noqa: B018


def test_a_kernel_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(time_order)) is time_order


def test_threads_that_are_first_get_one_dispatcher() -> None:
    kernel = Kernel(lambda a: a.sum(), {"nogil": True})
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda n: kernel(np.arange(n)), range(20)))
    assert found == [n * (n - 1) // 2 for n in range(20)]
