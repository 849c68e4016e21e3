"""Fair sharing between workflows, by hand."""

from __future__ import annotations

from dagsail.domain.units import GIB
from dagsail.domain.workflow import Arrival
from dagsail.policies import policy
from tests.oracles.building import cluster, ends, node, simulate, task, workflow

FAIR = policy("fair")


def test_a_late_workflow_gets_its_share_as_soon_as_a_slot_is_free() -> None:
    """Two slots: at 10 s both are free, one goes to each workflow; fifo would finish A first."""
    first = workflow([task(f"a{i}", 10.0) for i in range(4)], name="first")
    second = workflow([task(f"b{i}", 10.0) for i in range(2)], name="second")
    machines = cluster(node("m", cpu=2000))
    arrivals = [Arrival(0.0, first), Arrival(1.0, second)]
    shared = {"a0": 10.0, "a1": 10.0, "a2": 20.0, "b0": 20.0, "a3": 30.0, "b1": 30.0}
    assert ends(simulate(arrivals, machines, policy=FAIR)) == shared
    in_turn = {"a0": 10.0, "a1": 10.0, "a2": 20.0, "a3": 20.0, "b0": 30.0, "b1": 30.0}
    assert ends(simulate(arrivals, machines)) == in_turn


def test_what_counts_is_the_dominant_resource() -> None:
    """Of 10 cores and 40 GiB, a task of `lean` holds 1/10, one of `wide` 2/10 by its memory.

    Even shares are twice as many tasks of `lean` as of `wide`: 7 and 3 on 10 cores.
    """
    lean = workflow([task(f"l{i}", 5.0) for i in range(9)], name="lean")
    wide = workflow(
        [task(f"w{i}", 5.0, request={"memory": 8 * GIB}) for i in range(9)], name="wide"
    )
    machines = cluster(node("m", cpu=10_000, memory=40 * GIB))
    run = simulate([Arrival(0.0, lean), Arrival(0.0, wide)], machines, policy=FAIR)
    first = [name for name, end_s in ends(run).items() if end_s == 5.0]
    assert sum(name.startswith("l") for name in first) == 7
    assert sum(name.startswith("w") for name in first) == 3
