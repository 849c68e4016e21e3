"""Aims, the composite of them, and how a policy is judged beside the best rule."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dagsail
from dagsail.cli import run as command
from dagsail.evaluation.aims import AIM_METRICS, aims, composite
from dagsail.evaluation.comparison import Comparison
from dagsail.evaluation.judgement import judge
from dagsail.evaluation.load import Load
from dagsail.evaluation.metrics import METRICS, measure
from dagsail.policies.scoring.objective import objective_of


def comparison(values: dict[str, dict[str, list[float]]]) -> Comparison:
    """Two seeds; what is not given is 1."""
    metrics = {
        policy: tuple(
            {metric.name: given.get(metric.name, [1.0, 1.0])[seed] for metric in METRICS}
            for seed in range(2)
        )
        for policy, given in values.items()
    }
    loads: dict[str, tuple[Load, ...]] = dict.fromkeys(values, ())
    return Comparison("x", (0, 1), "kube", metrics, loads, (1, 1), (1, 1))


def test_composite_is_the_weighted_sum_of_ratios_and_of_lateness() -> None:
    objective = objective_of({"completion": 5, "deadline": 3, "cost": 2})
    reference = np.array([100.0, 0.1, 8.0, 0.5])
    assert composite(reference, reference, objective) == pytest.approx(0.5 + 0.3 * 1.1 + 0.2)
    better = np.array([50.0, 0.0, 4.0, 9.0])
    assert composite(better, reference, objective) == pytest.approx(0.25 + 0.3 + 0.1)


def test_aims_of_a_run_are_its_metrics() -> None:
    run = dagsail.simulate(dagsail.read("ai-training:6"), cluster="edge", policy="fifo")
    found = measure(run)
    assert aims(run) == pytest.approx([found[name] for name in AIM_METRICS])


def test_the_best_rule_is_one_for_all_seeds() -> None:
    found = comparison(
        {
            "kube": {"jct_mean_s": [30.0, 50.0], "jct_bound_s": [10.0, 10.0]},
            "a": {"jct_mean_s": [10.0, 40.0], "cost_usd": [9.0, 9.0]},
            "b": {"jct_mean_s": [20.0, 20.0]},
            "mine": {"jct_mean_s": [12.0, 18.0], "jct_bound_s": [10.0, 10.0]},
        }
    )
    objective = objective_of({"cost": 1})
    judged = judge(found, "somewhere", "mine", ("kube", "a", "b"), "kube", objective)
    assert judged.best_rule == "b"
    assert judged.against_best.ratio == pytest.approx(15 / 20)
    assert judged.against_reference.ratio == pytest.approx(15 / 40)
    assert judged.gap_closed == pytest.approx((40 - 15) / (40 - 10))
    assert judged.is_contended
    assert judged.best_composite == "kube"
    assert judged.composite.ratio == pytest.approx(1.0)


def test_the_composite_is_that_of_the_policy_which_has_it_as_its_objective() -> None:
    found = comparison(
        {
            "kube": {"jct_mean_s": [30.0, 50.0], "jct_bound_s": [10.0, 10.0]},
            "mine": {"jct_mean_s": [12.0, 18.0], "cost_usd": [8.0, 8.0]},
            "mine:cost=1": {"jct_mean_s": [40.0, 60.0], "cost_usd": [0.5, 0.5]},
        }
    )
    objective = objective_of({"cost": 1})
    judged = judge(found, "here", "mine", ("kube",), "kube", objective, "mine:cost=1")
    plain = judge(found, "here", "mine", ("kube",), "kube", objective)
    assert judged.jct_s == plain.jct_s == 15.0
    assert judged.composite.ratio == pytest.approx(plain.composite.ratio / 16)


def test_command_judges_scorer_and_bundle(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", "learned", "etl:3", "--cluster", "edge", "--seeds", "2"]
    assert command([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["policy"] for one in document["judgements"]] == ["scorer", "learned"]
    for one in document["judgements"]:
        assert one["jct_mean_s"] >= one["jct_bound_s"]
        assert one["best_rule"] not in ("scorer", "learned")
    assert command(arguments) == 0
    assert "JCT to kube" in capsys.readouterr().out
