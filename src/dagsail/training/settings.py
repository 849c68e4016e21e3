"""Settings: a file `kind: Training`, which says all that a training depends on."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

import msgspec

from dagsail.documents import ApiVersion, Metadata, Strict, read_document
from dagsail.domain.errors import FormatError, InputError
from dagsail.policies import POLICIES
from dagsail.policies.neural.bundle import Sampling
from dagsail.policies.scoring.objective import AIMS, objective_of
from dagsail.scalars import describe
from dagsail.training.rewards import RewardSettings
from dagsail.workloads.families import FAMILIES

Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, msgspec.Meta(gt=0.0, le=1e9)]
NotNegative = Annotated[float, msgspec.Meta(ge=0.0, le=1e9)]

_NAME: Final = re.compile(r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$")


class WorldSettings(Strict, frozen=True, kw_only=True):
    """What worlds are drawn from: cluster, workload, load and faults are new in each."""

    families: dict[str, Count] = msgspec.field(
        default_factory=lambda: {
            "etl": 20,
            "ai-training": 30,
            "mixed": 60,
            "streaming": 60,
            "microservices": 100,
        }
    )
    """Families that take turns, and the number of workflows of a world."""
    min_load: Positive = 0.5
    """Least offered load."""
    max_load: Positive = 1.3
    """Largest offered load."""
    max_noise: NotNegative = 0.4
    """Largest deviation of run times from their estimates."""
    heavy_tail_ratio: Share = 0.15
    """Share of worlds in which 2 % of the run times have a heavy tail."""
    node_loss_ratio: Share = 0.15
    """Share of worlds in which nodes fail, each about once a day, less often if tasks are long."""
    burst_ratio: Share = 0.15
    """Share of worlds in which workflows arrive in bursts."""
    wide_ratio: Share = 0.15
    """Share of worlds with workflows of wide stages, as analytics has, instead of a family."""
    min_types: Count = 2
    """Fewest types of machines in a cluster."""
    max_types: Count = 5
    """Most types of machines in a cluster."""
    max_nodes_per_type: Count = 5
    """Most nodes of a type."""
    max_tasks: Count | None = None
    """Only workflows of so many tasks at most; a curriculum sets it."""


class ObjectiveSettings(Strict, frozen=True, kw_only=True):
    """Objectives that are drawn for the worlds."""

    default: dict[str, float] = msgspec.field(default_factory=lambda: {"completion": 1.0})
    """What the bundle weighs unless told otherwise."""
    default_ratio: Share = 0.4
    """Share of worlds with that; the others weigh one aim alone or all at random."""


Weights = dict[str, float]


class RewardsSettings(Strict, frozen=True, kw_only=True):
    """Terms that count beside the objective; see `dagsail rewards`."""

    weights: Weights = msgspec.field(default_factory=dict)
    """How much each term weighs, where 1 on `completion` equals the objective of that name."""
    by_pool: dict[str, Weights] = msgspec.field(default_factory=dict)
    """Other weights for placements on the nodes of a pool: cpu, mixed or gpu."""
    low_load: Weights = msgspec.field(default_factory=dict)
    """Other weights while the mean load of the nodes is below `low`."""
    high_load: Weights = msgspec.field(default_factory=dict)
    """Other weights while it is above `high`."""
    low: Share = 0.5
    """What a low load is."""
    high: Share = 0.8
    """What a high load is."""
    by_class: bool = False
    """Completion times over the 7-day P95 of their family, once 20 workflows of it have ended."""
    limit: Positive | None = None
    """The sum of a decision is clipped to plus and minus this; none: it is not."""

    def settings(self) -> RewardSettings:
        """The same for rewards.

        Raises:
            InputError: if a term or pool is unknown.
        """
        return RewardSettings(**msgspec.structs.asdict(self))


class NetworkSettings(Strict, frozen=True, kw_only=True):
    """Widths of the network."""

    hidden: Count = 64
    """Width of hidden layers."""
    summary: Count = 32
    """Width of what is known of a task and of a node."""
    sharpness: Positive = 10.0
    """Factor on the scorer's sums at first: the larger, the less an untrained network explores."""


class WorkerSettings(Strict, frozen=True, kw_only=True):
    """Who computes."""

    count: Annotated[int, msgspec.Meta(ge=1, le=256)] = 2
    """Processes; the result depends on it, not on when each is done."""
    backend: Literal["processes", "ray", "inline"] = "processes"
    """Processes of this machine, actors of a Ray cluster, or this very process."""
    address: str | None = None
    """Of the Ray cluster; none: a cluster of its own on this machine."""


class ValidationSettings(Strict, frozen=True, kw_only=True):
    """How it is seen whether training helps."""

    worlds: Count = 40
    """Worlds that are never trained on."""
    every: Count = 10
    """Steps between two validations."""
    patience: Count = 10
    """Validations without a better result after which a stage ends."""
    rules: list[str] = msgspec.field(
        default_factory=lambda: ["kube-default@1.36", "least-remaining-work", "scorer"]
    )
    """Policies that the summary compares with."""


class CurriculumStep(Strict, frozen=True):
    """Small workflows first."""

    until: Share
    """Share of the stage's steps up to which it holds."""
    max_tasks: Count
    """Only workflows of so many tasks at most."""


class CmaEs(Strict, frozen=True, kw_only=True, tag_field="algorithm", tag="cma-es"):
    """Tunes the scorer's weights by evolution (Hansen, 2016), all aims but the first together."""

    steps: Count = 300
    """Generations."""
    population: Annotated[int, msgspec.Meta(ge=4)] = 20
    """Candidates of a generation."""
    step_size: Positive = 0.2
    """Standard deviation of the first generation."""
    worlds: Count = 30
    """Worlds on which a generation is compared; `rotation` sets of them take turns."""
    rotation: Count = 6
    """Sets of worlds."""
    aims: list[str] = msgspec.field(default_factory=lambda: ["deadline", "cost", "balance"])
    """Aims whose weights are tuned; those of the others stay."""


class Imitation(Strict, frozen=True, kw_only=True, tag_field="algorithm", tag="imitation"):
    """Trains the network to decide like a rule."""

    steps: Count = 20
    """Rounds of playing and learning."""
    teacher: str = "least-remaining-work"
    """The rule; it does not know the objective."""
    worlds: Count = 8
    """Worlds of a round."""
    epochs: Count = 2
    """Passes over what was played."""
    batch: Count = 2048
    """Decisions of an update."""
    learning_rate: Positive = 1e-3
    """Of Adam."""


class Ppo(Strict, frozen=True, kw_only=True, tag_field="algorithm", tag="ppo"):
    """Proximal policy optimisation (Schulman et al., 2017)."""

    steps: Count = 100
    """Rounds of playing and learning."""
    worlds: Count = 8
    """Worlds of a round."""
    replicas: Annotated[int, msgspec.Meta(ge=2)] = 8
    """How often each is played, every time with the same luck."""
    baseline: Literal["replicas", "critic"] = "replicas"
    """What a return is compared with: the other replicas at the same moment, or the critic."""
    horizon: Positive = 3.0
    """With `replicas`: mean critical paths after which a reward counts 1/e."""
    gamma: Share = 0.99
    """With `critic`: discount by decision."""
    gae_lambda: Share = 0.95
    """With `critic`: of generalised advantage estimation."""
    clip: Positive = 0.2
    """Largest change of a probability's ratio that pays."""
    epochs: Count = 2
    """Passes over what was played."""
    batch: Count = 4096
    """Decisions of an update."""
    learning_rate: Positive = 3e-4
    """Of Adam."""
    value_weight: NotNegative = 0.1
    """Weight of the critic's loss."""
    critic_only: bool = False
    """Trains the critic and leaves the policy as it is."""
    entropy_start: NotNegative = 0.0
    """Bonus for entropy in the first step."""
    entropy_end: NotNegative = 0.0
    """Bonus for entropy in the last step; between them it is linear."""
    exploration_start: Share = 0.0
    """Share of decisions that any legal action may make in the first step."""
    exploration_end: Share = 0.0
    """The same in the last step; between them it is linear."""
    priority: NotNegative = 0.0
    """Power of their advantage by which decisions are replayed more often, then weighted back."""
    max_gradient: Positive = 0.5
    """Longer gradients are cut to this length."""
    curriculum: list[CurriculumStep] = msgspec.field(default_factory=list)
    """Small workflows first."""


class Lookahead(Strict, frozen=True, kw_only=True, tag_field="algorithm", tag="lookahead"):
    """Expert iteration: learns from what its likeliest answers lead to, played to the end."""

    steps: Count = 60
    """Rounds of playing and learning."""
    worlds: Count = 16
    """Worlds of a round."""
    questions: Count = 100
    """Questions of a world that are looked into, about."""
    answers: Annotated[int, msgspec.Meta(ge=2, le=16)] = 4
    """How many of the likeliest answers are played on."""
    horizon: Positive = 5.0
    """Mean critical paths after which a payment counts 1/e."""
    eagerness: Positive = 1.0
    """How far one step moves towards what gained, in mean sizes of gains."""
    memory: Count = 10
    """Rounds that are learned from."""
    updates: Count = 20
    """Updates of a round."""
    batch: Count = 1024
    """Questions of an update, for each worker."""
    learning_rate: Positive = 1e-3
    """Of Adam."""
    max_gradient: Positive = 1.0
    """Longer gradients are cut to this length."""


class Spec(Strict, frozen=True, kw_only=True):
    """What to train, on what, and how."""

    seed: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 1
    """Of all draws but the worlds, which are the same for all: same seed, same weights."""
    stages: list[CmaEs | Imitation | Lookahead | Ppo]
    """One after the other; each goes on from the best that the one before it found."""
    start: str | None = None
    """A folder with a bundle to train on; none: the weights that come with Dagsail."""
    worlds: WorldSettings = msgspec.field(default_factory=WorldSettings)
    """What it is trained on."""
    workloads: list[str] = msgspec.field(default_factory=list)
    """Workflow files of your own to train on instead of the families."""
    clusters: list[str] = msgspec.field(default_factory=list)
    """Clusters, built-in or files, to train on instead of drawn ones; speeds and prices vary."""
    objective: ObjectiveSettings = msgspec.field(default_factory=ObjectiveSettings)
    """What is weighed."""
    rewards: RewardsSettings = msgspec.field(default_factory=RewardsSettings)
    """What `ppo` is rewarded for beside the objective."""
    network: NetworkSettings = msgspec.field(default_factory=NetworkSettings)
    """How large it is."""
    sampling: Sampling = msgspec.field(default_factory=Sampling)
    """How the bundle is drawn from."""
    workers: WorkerSettings = msgspec.field(default_factory=WorkerSettings)
    """Who computes."""
    validation: ValidationSettings = msgspec.field(default_factory=ValidationSettings)
    """How it is seen whether it helps."""


class Training(Strict, frozen=True):
    """A file `kind: Training`."""

    api_version: ApiVersion
    kind: Literal["Training"]
    metadata: Metadata
    spec: Spec


def read_training(text: str, source: str) -> Training:
    """Settings of a native YAML or JSON text.

    Raises:
        FormatError: if it is not exactly one `kind: Training`, or settings contradict each other.
    """
    training = read_document(text, source, Training)
    spec = training.spec
    if not _NAME.match(training.metadata.name):
        raise FormatError(
            f"{source}: metadata.name: found {describe(training.metadata.name)}; it names folders:"
            " letters, digits, '.', '_' and '-', not '.' first"
        )
    if not spec.stages:
        raise FormatError(f"{source}: spec.stages: is empty; name an algorithm")
    _check_worlds(spec, source)
    _check_stages(spec, source)
    teachers = [stage.teacher for stage in spec.stages if isinstance(stage, Imitation)]
    try:
        objective_of(spec.objective.default)
        spec.rewards.settings()
        for name in (*spec.validation.rules, *teachers):
            POLICIES.get(name)
    except InputError as error:
        raise FormatError(f"{source}: spec: {error}") from None
    return training


def _check_worlds(spec: Spec, source: str) -> None:
    for name in spec.worlds.families:
        if name not in FAMILIES:
            raise FormatError(f"{source}: spec.worlds.families: {FAMILIES.hint(name)}no '{name}'")
    if not spec.worlds.families and not spec.workloads:
        raise FormatError(f"{source}: spec.worlds.families: is empty; name a family")
    for low, high in (("min_load", "max_load"), ("min_types", "max_types")):
        if getattr(spec.worlds, low) > getattr(spec.worlds, high):
            raise FormatError(f"{source}: spec.worlds: the least {low[4:]} is above the largest")


def _check_stages(spec: Spec, source: str) -> None:
    """Every worker must have a world, and evolution comes before what it would throw away."""
    needs = [("validation", spec.validation.worlds)]
    needs += [("stages", stage.worlds) for stage in spec.stages if not isinstance(stage, CmaEs)]
    for place, worlds in needs:
        if worlds < spec.workers.count:
            raise FormatError(
                f"{source}: spec.{place}: {worlds} worlds are too few for {spec.workers.count}"
                " workers; each needs one"
            )
    is_network = [not isinstance(stage, CmaEs) for stage in spec.stages]
    if sorted(is_network) != is_network or (spec.start is not None and not all(is_network)):
        raise FormatError(
            f"{source}: spec.stages: cma-es tunes the scorer that a network begins as; put it"
            " first, and leave out start"
        )
    for stage in spec.stages:
        if isinstance(stage, CmaEs) and not set(stage.aims) <= set(AIMS):
            raise FormatError(f"{source}: spec.stages: aims are {', '.join(AIMS)}")
        if isinstance(stage, CmaEs) and not stage.aims:
            raise FormatError(f"{source}: spec.stages: no aims to tune weights for")
    for stage in spec.stages:
        if isinstance(stage, Imitation | Ppo | Lookahead) and stage.batch < spec.workers.count:
            raise FormatError(f"{source}: spec.stages: batch: {stage.batch} is below the workers")


def plain(settings: Strict) -> dict[str, Any]:
    """Settings as plain values, for bundles and checkpoints."""
    made: dict[str, Any] = msgspec.to_builtins(settings)
    return made
