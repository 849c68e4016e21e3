from __future__ import annotations

import math

import pytest

from dagsail.evaluation.waiting import queue_percentile, waits_s
from dagsail.evaluation.window import Window


def test_waits_by_task(two_by_two):
    assert waits_s(two_by_two).tolist() == [0, 15, 0, 5]


@pytest.mark.parametrize(("percent", "length"), [(50, 0), (63, 0), (64, 1), (100, 1)])
def test_one_task_waits_from_5_to_25_of_55_seconds(two_by_two, percent, length):
    assert queue_percentile(two_by_two, Window(0.0, 55.0), percent) == length


@pytest.mark.parametrize(("start_s", "end_s", "length"), [(6.0, 24.0, 1), (25.0, 55.0, 0)])
def test_only_the_window_counts(two_by_two, start_s, end_s, length):
    assert queue_percentile(two_by_two, Window(start_s, end_s), 95) == length


def test_a_window_of_no_length_has_no_queue(two_by_two):
    assert math.isnan(queue_percentile(two_by_two, Window(6.0, 6.0), 95))
