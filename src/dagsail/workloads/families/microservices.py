"""Microservices: one request that fans out over a tree of services and comes back as a response.

```
gateway --> orders --> pricing ----+
   |           +-----> inventory --+--> respond
   +------> search ----------------+
```
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from numpy.random import Generator

from dagsail.domain.cluster import ZONE_LABEL
from dagsail.domain.placement import Placement
from dagsail.domain.units import MIB
from dagsail.domain.workflow import Workflow
from dagsail.workloads.families.dag_builder import DagBuilder, Image, Program, request
from dagsail.workloads.families.draws import LogNormal, pick
from dagsail.workloads.families.family import Family
from dagsail.workloads.families.urgency import TENANTS, Urgencies, Urgency, draw_priority


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroserviceParameters:
    """Sizes and durations of microservice requests.

    Four fifths of Azure's durable-function DAGs have up to 3 functions, width 1 and depth 2, but
    those are single applications; a request that crosses services of several teams touches more.
    Azure's 2021 invocations last 0.1 s (25th percentile), 2.3 s (median) and minutes (tail).
    """

    num_calls: LogNormal = LogNormal(10, 0.7, 2, 60)
    """Services called for one request, the gateway included (32 at the 95th percentile)."""
    max_depth: int = 5
    """Longest chain of calls."""
    call_s: LogNormal = LogNormal(1, 0.9, 0.1, 10)
    """Run time of one call: 0.1 to 10 s, half of them below a second."""
    message_bytes: LogNormal = LogNormal(60e3, 1.2, 1e3, 20e6)
    """What one call passes on to the next (assumption: documents, sometimes a picture)."""
    urgencies: Urgencies = (
        Urgency(share=0.45, slack_ratio=(1.5, 2.5), start_deadline_s=1),
        Urgency(share=0.4, slack_ratio=(2, 4), start_deadline_s=2),
        Urgency(share=0.1, slack_ratio=(3, 6), start_deadline_s=5),
        Urgency(share=0.05, slack_ratio=(4, 8), start_deadline_s=10),
    )
    """Seconds, as a user waits for the response (assumption)."""


_NEAR: Final = Placement(near_parents=True)
_NEAR_SPREAD: Final = Placement(near_parents=True, spread_over=ZONE_LABEL)
_SLIM: Final = 45 * MIB
_FULL: Final = 160 * MIB


def _service(kind: str, cpu_millicores: int, memory_mib: int, image_bytes: int) -> Program:
    return Program(
        kind=kind,
        image=Image(f"svc-{kind}:1.0", image_bytes),
        request=request(cpu_millicores, memory_mib * MIB),
        io_demand=0.05,
        memory_bandwidth_demand=0.02,
        max_retries=2,
        placement=_NEAR_SPREAD if kind in {"gateway", "auth"} else _NEAR,
    )


_GATEWAY: Final = _service("gateway", 200, 128, _SLIM)
_RESPOND: Final = _service("respond", 100, 128, _SLIM)
_SERVICES: Final = (
    _service("auth", 100, 64, _SLIM),
    _service("users", 100, 128, _SLIM),
    _service("cart", 200, 128, _SLIM),
    _service("catalogue", 250, 256, _SLIM),
    _service("inventory", 250, 256, _SLIM),
    _service("orders", 500, 512, _FULL),
    _service("payments", 250, 256, _FULL),
    _service("pricing", 500, 256, _FULL),
    _service("recommend", 1000, 1024, _FULL),
    _service("render", 1000, 512, _FULL),
    _service("search", 1000, 1024, _FULL),
    _service("shipping", 100, 128, _SLIM),
)


def generate(parameters: MicroserviceParameters, rng: Generator, index: int) -> Workflow:
    """Microservice request number `index`."""
    dag = DagBuilder()
    gateway = _call(dag, parameters, rng, _GATEWAY, [])
    depth = {gateway: 1}
    for _ in range(math.ceil(parameters.num_calls.draw(rng)) - 1):
        callers = [call for call, level in depth.items() if level < parameters.max_depth]
        caller = callers[int(rng.integers(len(callers)))]
        service = _SERVICES[int(rng.integers(len(_SERVICES)))]
        depth[_call(dag, parameters, rng, service, [caller])] = depth[caller] + 1
    _call(dag, parameters, rng, _RESPOND, dag.leaves())
    priority = draw_priority(rng, parameters.urgencies)
    urgency = parameters.urgencies[priority]
    return dag.build(
        f"microservices-{index:04d}",
        "microservices",
        tenant=pick(rng, TENANTS),
        priority=priority,
        deadline_s=urgency.deadline_s(rng, dag.critical_path_s),
        start_deadline_s=urgency.start_deadline_s,
    )


def _call(
    dag: DagBuilder,
    parameters: MicroserviceParameters,
    rng: Generator,
    service: Program,
    callers: list[str],
) -> str:
    return dag.add(
        service,
        runtime_s=parameters.call_s.draw(rng),
        input_bytes=0 if callers else parameters.message_bytes.draw(rng),
        output_bytes=parameters.message_bytes.draw(rng),
        after=callers,
    )


FAMILY: Final = Family("microservices", MicroserviceParameters(), generate)
