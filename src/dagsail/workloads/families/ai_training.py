"""AI training: shards prepared on CPUs, then one training or a sweep on GPUs, then release.

```
prepare --> tokenize --+            +--> train (1-4 workers) ---+
prepare --> tokenize --+--> pack ---+            or             +--> evaluate x 1..3 --> register
prepare --> tokenize --+            +--> trial x 4..12 > select-+
```
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from numpy.random import Generator

from dagsail.domain.cluster import GPU_MODEL_LABEL
from dagsail.domain.placement import ANYWHERE, Placement, Preference, Requirement, Term
from dagsail.domain.units import GIB, MIB
from dagsail.domain.workflow import Workflow
from dagsail.workloads.families.dag_builder import DagBuilder, Image, Program, request
from dagsail.workloads.families.draws import LogNormal, Shares, pick
from dagsail.workloads.families.family import Family
from dagsail.workloads.families.urgency import TENANTS, Urgencies, Urgency, draw_priority


@dataclass(frozen=True, slots=True, kw_only=True)
class AiTrainingParameters:
    """Sizes and durations of AI training workflows.

    GPU jobs of the openb trace ask for 10 cores and 31 GiB a GPU at the median (4 cores and
    11 GiB at the 25th percentile) and last 11 min (median) to 4.7 h (95th percentile); trainings
    of the Philly trace last 3 h (median) and more. Between the two: half an hour to six hours.
    """

    num_shards: LogNormal = LogNormal(8, 0.5, 2, 32)
    """Shards of the raw data, each prepared and tokenised by its own task (assumption)."""
    shard_bytes: LogNormal = LogNormal(3e9, 0.7, 0.2e9, 30e9)
    """Raw data of one shard, drawn per workflow (assumption)."""
    prepare_s: LogNormal = LogNormal(300, 0.6, 30, 1800)
    tokenize_s: LogNormal = LogNormal(240, 0.5, 30, 1800)
    pack_s: LogNormal = LogNormal(180, 0.4, 30, 900)
    """Run times of the CPU stages (assumption)."""
    sweep_ratio: float = 0.3
    """Share of workflows that try many settings instead of training one model (assumption)."""
    num_trials: tuple[int, int] = (4, 12)
    """Range of the settings tried in a sweep, each on one GPU."""
    trial_s: LogNormal = LogNormal(2400, 0.5, 900, 7200)
    """Run time of one trial; trials of one sweep differ by the early stop of bad settings."""
    train_s: LogNormal = LogNormal(5400, 0.6, 1800, 21600)
    """Run time of a training: 30 min to 6 h."""
    train_shape: Shares[tuple[int, int]] = (
        ((1, 1), 0.46),
        ((1, 2), 0.18),
        ((1, 4), 0.16),
        ((2, 2), 0.06),
        ((4, 1), 0.04),
        ((2, 4), 0.06),
        ((4, 2), 0.04),
    )
    """Workers and GPUs of each: most jobs use one GPU (openb), a tenth use eight (Philly)."""
    comm_bytes_per_s: LogNormal = LogNormal(0.1e9, 0.5, 0.02e9, 0.4e9)
    """What each worker exchanges per second of training: gradients of some 0.1-1 GB a step."""
    checkpoint_bytes: LogNormal = LogNormal(2e9, 1.0, 0.1e9, 30e9)
    """Weights and optimiser state: 16 bytes a parameter, so 125 million at the median."""
    evaluate_s: LogNormal = LogNormal(480, 0.5, 120, 1800)
    num_evaluations: tuple[int, int] = (1, 3)
    """Run time and range of the number of evaluation suites, each on one GPU."""
    model_preference_ratio: float = 0.34
    """Share of workflows that prefer some GPU models; openb: 34 % of GPU pods name some."""
    preferred_models: Shares[tuple[str, ...]] = (
        (("A100", "H100"), 0.6),
        (("V100", "A100"), 0.25),
        (("T4", "A10"), 0.15),
    )
    """Values of the node label `nvidia.com/gpu.product` that such a workflow would like."""
    urgencies: Urgencies = (
        Urgency(share=0.05, slack_ratio=(1.5, 2.5), start_deadline_s=300),
        Urgency(share=0.2, slack_ratio=(2, 3), start_deadline_s=900),
        Urgency(share=0.45, slack_ratio=(2.5, 5), start_deadline_s=3600),
        Urgency(share=0.3, slack_ratio=(4, 8), start_deadline_s=None),
    )
    """P0 must start within 5 minutes; the rest is assumed."""


_PREPARE_IMAGE: Final = Image("ai-data-prep:2.4", 1200 * MIB)
_TRAIN_IMAGE: Final = Image("ai-train:2.4-cuda12", 6 * GIB)
_REGISTRY_IMAGE: Final = Image("ai-model-registry:1.8", 220 * MIB)

_PREPARE: Final = Program(
    kind="prepare",
    image=_PREPARE_IMAGE,
    request=request(2000, 8 * GIB),
    io_demand=0.3,
    memory_bandwidth_demand=0.1,
)
_TOKENIZE: Final = Program(
    kind="tokenize",
    image=_PREPARE_IMAGE,
    request=request(4000, 8 * GIB),
    io_demand=0.1,
    memory_bandwidth_demand=0.2,
)
_PACK: Final = Program(
    kind="pack",
    image=_PREPARE_IMAGE,
    request=request(4000, 32 * GIB),
    io_demand=0.4,
    memory_bandwidth_demand=0.3,
    placement=Placement(wants_local_ssd=True),
)
_TRAIN: Final = Program(
    kind="train",
    image=_TRAIN_IMAGE,
    request={},
    io_demand=0.1,
    memory_bandwidth_demand=0.2,
    max_retries=2,
    is_critical=True,
)
_TRIAL: Final = replace(
    _TRAIN, kind="trial", request=request(4000, 16 * GIB, 1), max_retries=1, is_critical=False
)
_EVALUATE: Final = replace(_TRIAL, kind="evaluate")
_SELECT: Final = Program(
    kind="select", image=_REGISTRY_IMAGE, request=request(500, GIB), is_critical=True
)
_REGISTER: Final = replace(_SELECT, kind="register", io_demand=0.2)

_WORKER_REQUEST: Final = {
    1: request(4000, 16 * GIB, 1),
    2: request(6000, 32 * GIB, 2),
    4: request(8000, 48 * GIB, 4),
}
_SELECT_S: Final = LogNormal(20, 0.4, 5, 120)
_REGISTER_S: Final = LogNormal(45, 0.4, 10, 300)
_TOKENS_RATIO: Final = 0.4
_METRICS_BYTES: Final = 1e6


def generate(parameters: AiTrainingParameters, rng: Generator, index: int) -> Workflow:
    """AI training workflow number `index`."""
    dag = DagBuilder()
    placement = _gpu_preference(parameters, rng)
    dataset = _prepare_dataset(dag, parameters, rng)
    if rng.random() < parameters.sweep_ratio:
        model = _sweep(dag, parameters, rng, placement, dataset)
    else:
        model = _train(dag, parameters, rng, placement, dataset)
    evaluate = replace(_EVALUATE, placement=placement)
    evaluations = [
        dag.add(
            evaluate,
            runtime_s=parameters.evaluate_s.draw(rng),
            output_bytes=_METRICS_BYTES,
            after=[model],
        )
        for _ in range(int(rng.integers(*parameters.num_evaluations, endpoint=True)))
    ]
    dag.add(_REGISTER, runtime_s=_REGISTER_S.draw(rng), after=evaluations)
    priority = draw_priority(rng, parameters.urgencies)
    urgency = parameters.urgencies[priority]
    return dag.build(
        f"ai-training-{index:04d}",
        "ai-training",
        tenant=pick(rng, TENANTS),
        priority=priority,
        deadline_s=urgency.deadline_s(rng, dag.critical_path_s),
        start_deadline_s=urgency.start_deadline_s,
    )


def _gpu_preference(parameters: AiTrainingParameters, rng: Generator) -> Placement:
    if rng.random() >= parameters.model_preference_ratio:
        return ANYWHERE
    models = pick(rng, parameters.preferred_models)
    return Placement(
        preferred=(Preference(80, Term((Requirement(GPU_MODEL_LABEL, "In", models),))),)
    )


def _prepare_dataset(dag: DagBuilder, parameters: AiTrainingParameters, rng: Generator) -> str:
    """Prepare and tokenise each shard, then pack all into one dataset; returns the packing task."""
    shard_bytes = parameters.shard_bytes.draw(rng)
    prepare_s = parameters.prepare_s.draw(rng)
    tokenize_s = parameters.tokenize_s.draw(rng)
    tokenized = []
    for _ in range(math.ceil(parameters.num_shards.draw(rng))):
        skew = float(rng.uniform(0.7, 1.3))
        prepared = dag.add(
            _PREPARE,
            runtime_s=prepare_s * skew,
            input_bytes=shard_bytes * skew,
            output_bytes=shard_bytes * skew,
        )
        tokens = dag.add(
            _TOKENIZE,
            runtime_s=tokenize_s * skew,
            output_bytes=shard_bytes * skew * _TOKENS_RATIO,
            after=[prepared],
        )
        tokenized.append(tokens)
    return dag.add(
        _PACK,
        runtime_s=parameters.pack_s.draw(rng),
        output_bytes=dag.output_bytes(tokenized),
        after=tokenized,
    )


def _train(
    dag: DagBuilder,
    parameters: AiTrainingParameters,
    rng: Generator,
    placement: Placement,
    dataset: str,
) -> str:
    """One training, on several workers if its shape says so; returns its task."""
    num_workers, gpus_per_worker = pick(rng, parameters.train_shape)
    runtime_s = parameters.train_s.draw(rng)
    exchanged = parameters.comm_bytes_per_s.draw(rng) * runtime_s if num_workers > 1 else 0
    program = replace(_TRAIN, request=_WORKER_REQUEST[gpus_per_worker], placement=placement)
    return dag.add(
        program,
        runtime_s=runtime_s,
        output_bytes=parameters.checkpoint_bytes.draw(rng),
        after=[dataset],
        num_workers=num_workers,
        comm_bytes=exchanged,
    )


def _sweep(
    dag: DagBuilder,
    parameters: AiTrainingParameters,
    rng: Generator,
    placement: Placement,
    dataset: str,
) -> str:
    """Trials of many settings and the choice of the best; returns the choosing task."""
    checkpoint_bytes = parameters.checkpoint_bytes.draw(rng)
    trial = replace(_TRIAL, placement=placement)
    trials = [
        dag.add(
            trial,
            runtime_s=parameters.trial_s.draw(rng),
            output_bytes=checkpoint_bytes,
            after=[dataset],
        )
        for _ in range(int(rng.integers(*parameters.num_trials, endpoint=True)))
    ]
    return dag.add(
        _SELECT,
        runtime_s=_SELECT_S.draw(rng),
        output_bytes=checkpoint_bytes,
        after=trials,
        share=1 / len(trials),
    )


FAMILY: Final = Family("ai-training", AiTrainingParameters(), generate)
