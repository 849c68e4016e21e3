"""What Argo files say about time and urgency: annotations of ours, priorities, class names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dagsail.domain.errors import FormatError
from dagsail.domain.units import MEMORY, parse_amount
from dagsail.domain.workflow import Priority
from dagsail.workloads.argo.fields import integer, mapping, seconds
from dagsail.workloads.argo.values import is_known
from dagsail.workloads.reading import Repairs

RUNTIME_ANNOTATION: Final = "dagsail.io/expected-seconds"
OUTPUT_ANNOTATION: Final = "dagsail.io/output-bytes"
DEADLINE_ANNOTATION: Final = "dagsail.io/deadline-seconds"
PRIORITY_ANNOTATION: Final = "dagsail.io/priority"


@dataclass(frozen=True, slots=True)
class Hints:
    """What the annotations of a template or task say about it; None where they are silent."""

    runtime_s: float | None = None
    output_bytes: int | None = None

    def over(self, other: Hints) -> Hints:
        """These hints, with those of `other` where they are silent."""
        return Hints(
            other.runtime_s if self.runtime_s is None else self.runtime_s,
            other.output_bytes if self.output_bytes is None else self.output_bytes,
        )


def annotations_of(owner: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The annotations under `metadata:`."""
    metadata = mapping(owner.get("metadata"), f"{where}: metadata")
    return mapping(metadata.get("annotations"), f"{where}: annotations")


def read_hints(found: Mapping[str, Any], where: str, repairs: Repairs) -> Hints:
    """Expected run time in seconds and output in bytes (or as a quantity such as `2Gi`).

    Raises:
        FormatError: if one is not a number, negative or absurd.
    """
    known = {
        key: found[key]
        for key in (RUNTIME_ANNOTATION, OUTPUT_ANNOTATION)
        if found.get(key) is not None
    }
    for key, value in known.items():
        if isinstance(value, str) and not is_known(value):
            repairs.note("annotations name a parameter without a value and are left out", where)
            known = {k: v for k, v in known.items() if k != key}
    runtime, output = known.get(RUNTIME_ANNOTATION), known.get(OUTPUT_ANNOTATION)
    try:
        output_bytes = None if output is None else parse_amount(MEMORY, output)
    except ValueError as error:
        raise FormatError(f"{where}: annotation {OUTPUT_ANNOTATION}: {error}") from None
    return Hints(
        None if runtime is None else seconds(runtime, f"{where}: annotation {RUNTIME_ANNOTATION}"),
        output_bytes,
    )


def priority_of(number: object, class_name: object, where: str) -> Priority | None:
    """Priority by Argo's integer (larger is more urgent), else by the name of a priority class.

    100 and more is P0, 10 to 99 P1, 0 to 9 P2, below 0 P3. Class names: `system-*` is P0,
    `high*` P1, `low*` P3; others say nothing.

    Raises:
        FormatError: if `number` is not a whole number.
    """
    if number is not None:
        value = integer(number, f"{where}: priority")
        if value < 0:
            return Priority.P3
        return Priority.P0 if value >= 100 else Priority.P1 if value >= 10 else Priority.P2
    prefixes = {"system-": Priority.P0, "high": Priority.P1, "low": Priority.P3}
    for prefix, priority in prefixes.items():
        if isinstance(class_name, str) and class_name.startswith(prefix):
            return priority
    return None


def annotated_priority(value: object, where: str) -> Priority:
    """The priority that a workflow's annotation names.

    Raises:
        FormatError: if it is none of P0 to P3.
    """
    if not isinstance(value, str) or value not in Priority.__members__:
        raise FormatError(
            f"{where}: annotation {PRIORITY_ANNOTATION} is {str(value)[:40]!r};"
            f" allowed are {', '.join(Priority.__members__)}"
        )
    return Priority[value]
