"""What names a policy: `heft`, a folder with a bundle, a file of weights; with an objective."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dagsail.domain.errors import InputError

if TYPE_CHECKING:
    from dagsail.policies.scoring.objective import Objective
    from dagsail.scheduling.ports import Policy

_OBJECTIVE: Final = re.compile(r"^(?P<policy>.+):(?P<objective>[a-z]*=[^:/]*)$")


def policy_names(text: str) -> tuple[str, ...]:
    """The policies of a comma-separated list, each once; `all` and `default` stand for many.

    Raises:
        UnknownNameError: naming the near miss.
        InputError: if the list is empty.
    """
    from dagsail.policies import DEFAULT_POLICIES, POLICIES

    groups = {"all": tuple(entry.name for entry in POLICIES), "default": DEFAULT_POLICIES}
    names: dict[str, None] = {}
    for part in text.split(","):
        name = part.strip()
        if name in groups:
            names |= dict.fromkeys(groups[name])
        elif name:
            base = _split(name)[0]
            if not _is_path(base):
                POLICIES.get(base)
            names[name] = None
    if not names:
        raise InputError("--policy: the list is empty; 'dagsail policies' lists all names")
    return tuple(names)


def only_policy(text: str, command: str) -> Policy:
    """The one policy of that name, which a command runs.

    Raises:
        UnknownNameError: naming the near miss.
        InputError: if the text names several, or as `policies_of`.
    """
    names = policy_names(text)
    if len(names) > 1:
        raise InputError(f"{command} runs one policy; 'dagsail compare' takes a list of them")
    return policies_of(names)[0]


def policies_of(names: Sequence[str]) -> list[Policy]:
    """The policies of these names.

    Raises:
        InputError: if a name is unknown, or a bundle, file or objective is not valid.
    """
    return [_policy_of(name) for name in names]


def _policy_of(name: str) -> Policy:
    from dagsail.policies import policy

    base, objective = _split(name)
    if not _is_path(base) and objective is None:
        return policy(base)
    path = Path(base)
    if base == "scorer" or (_is_path(base) and not path.is_dir()):
        return _scorer(name, path if _is_path(base) else None, objective)
    if base != "learned" and not _is_path(base):
        raise InputError(
            f"{name}: '{base}' takes no objective; 'learned' and 'scorer' do, as in learned:cost=1"
        )
    from dagsail.policies.neural.bundle import read_bundle
    from dagsail.policies.neural.learned import Learned, default_bundle

    bundle = read_bundle(path) if _is_path(base) else default_bundle()
    return Learned(name, bundle, objective)


def _scorer(name: str, path: Path | None, objective: Objective | None) -> Policy:
    from dagsail.files import read_text
    from dagsail.policies.scoring.objective import DEFAULT
    from dagsail.policies.scoring.scorer import scorer
    from dagsail.policies.scoring.weights import blend, preset_by_aim, read_weights

    by_aim = read_weights(read_text(path), str(path)) if path else preset_by_aim()
    return scorer(name, blend(by_aim, DEFAULT if objective is None else objective))


def _is_path(name: str) -> bool:
    return os.sep in name or name.endswith((".yaml", ".yml", ".json"))


def _split(name: str) -> tuple[str, Objective | None]:
    """Policy and objective of `learned:completion=2+cost=1`."""
    found = _OBJECTIVE.match(name)
    if found is None:
        return name, None
    from dagsail.policies.scoring.objective import objective_of

    weights: dict[str, float] = {}
    for part in found["objective"].split("+"):
        aim, _, text = part.partition("=")
        if aim in weights:
            raise InputError(f"{name}: '{aim}' is weighed twice")
        try:
            weights[aim] = float(text)
        except ValueError:
            raise InputError(f"{name}: {part!r} is no weight; write it as in cost=1") from None
    return found["policy"], objective_of(weights)
