"""Resource requests of a pod, by the exact arithmetic of Kubernetes.

`component-helpers/resource/helpers.go`: the sum over the containers and the sidecars (init
containers that restart always), but for each resource at least what any init container needs
while it runs; pod-level requests replace the result. Where a container has a limit but no
request for a resource, the limit is the request, as the API server defaults it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from dagsail.domain.errors import FormatError
from dagsail.domain.units import CPU, MEMORY, parse_amount
from dagsail.workloads.argo.fields import mapping, sequence
from dagsail.workloads.argo.values import is_known
from dagsail.workloads.reading import Repairs

Amounts = dict[str, int]
"""Resource name to amount, in the units of `dagsail.domain.units`."""


def pod_request(pod: Mapping[str, Any], where: str, repairs: Repairs) -> Amounts:
    """What a pod requests; cpu or memory is missing where nothing in it states any.

    Args:
        pod: `containers`, `initContainers` and pod-level `resources` of a pod spec.
        where: names the file and template in messages.
        repairs: told about amounts that name a parameter without a value.

    Raises:
        FormatError: on a malformed or absurd quantity.
    """
    total: Counter[str] = Counter()
    for value in sequence(pod.get("containers"), where):
        container = mapping(value, f"{where}: a container")
        total.update(_container_request(container, where, repairs))
    sidecars: Counter[str] = Counter()
    peak: Amounts = {}
    for value in sequence(pod.get("initContainers"), f"{where}: initContainers"):
        container = mapping(value, f"{where}: an init container")
        request = _container_request(container, where, repairs)
        if container.get("restartPolicy") == "Always":
            sidecars.update(request)
            total.update(request)
            request = dict(sidecars)
        else:
            for resource, amount in sidecars.items():
                request[resource] = request.get(resource, 0) + amount
        for resource, amount in request.items():
            peak[resource] = max(peak.get(resource, 0), amount)
    merged = dict(total)
    for resource, amount in peak.items():
        merged[resource] = max(merged.get(resource, 0), amount)
    for resource, amount in _pod_level(pod, merged, where, repairs).items():
        merged[resource] = amount
    return {r: merged[r] for r in sorted(merged) if merged[r] or r in (CPU, MEMORY)}


def _container_request(container: Mapping[str, Any], where: str, repairs: Repairs) -> Amounts:
    container_name = container.get("name") or "main"
    place = f"{where}, container '{container_name}'"
    resources = mapping(container.get("resources"), f"{place}: resources")
    if resources.get("claims"):
        repairs.note("resource claims are not modelled and left out", place)
    limits = _amounts(resources.get("limits"), f"{place}: limits", repairs)
    return limits | _amounts(resources.get("requests"), f"{place}: requests", repairs)


def _pod_level(
    pod: Mapping[str, Any], containers: Amounts, where: str, repairs: Repairs
) -> Amounts:
    resources = mapping(pod.get("resources"), f"{where}: pod resources")
    limits = _amounts(resources.get("limits"), f"{where}: pod limits", repairs)
    requests = _amounts(resources.get("requests"), f"{where}: pod requests", repairs)
    missing = {r: amount for r, amount in limits.items() if r not in containers}
    level = missing | requests
    return {
        r: amount for r, amount in level.items() if r in (CPU, MEMORY) or r.startswith("hugepages-")
    }


def _amounts(value: object, where: str, repairs: Repairs) -> Amounts:
    found: Amounts = {}
    for resource, quantity in mapping(value, where).items():
        if isinstance(quantity, str) and not is_known(quantity):
            repairs.note(
                "requests name a parameter without a value and are left out",
                f"{where}.{resource} {quantity}",
            )
            continue
        if isinstance(quantity, list | dict):
            raise FormatError(f"{where}.{resource}: must be a quantity such as '500m' or '1Gi'")
        try:
            found[resource] = parse_amount(resource, quantity)
        except ValueError as error:
            raise FormatError(f"{where}.{resource}: {error}") from None
    return found
