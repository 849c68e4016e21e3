"""The request of a pod, by hand from the rules of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from dagsail.domain.errors import FormatError
from dagsail.domain.units import GIB, MIB
from dagsail.workloads.argo.requests import pod_request
from dagsail.workloads.reading import Repairs


def container(requests: object = None, limits: object = None, **extra: object) -> dict[str, Any]:
    return {"resources": {"requests": requests, "limits": limits}, **extra}


def request_of(**pod: object) -> dict[str, int]:
    return pod_request(pod, "template 'x'", Repairs("f"))


def test_containers_add_up() -> None:
    assert request_of(
        containers=[
            container({"cpu": "500m", "memory": "1Gi"}),
            container({"cpu": 1, "ephemeral-storage": "1Ki"}),
        ]
    ) == {"cpu": 1500, "memory": GIB, "ephemeral-storage": 1024}


def test_a_limit_stands_in_for_a_missing_request() -> None:
    assert request_of(
        containers=[
            container({"cpu": "100m"}, {"cpu": 2, "memory": "64Mi", "nvidia.com/gpu": 1}),
        ]
    ) == {"cpu": 100, "memory": 64 * MIB, "nvidia.com/gpu": 1}


def test_init_containers_raise_each_resource_to_their_own_peak() -> None:
    assert request_of(
        containers=[container({"cpu": 2, "memory": "1Gi"})],
        initContainers=[container({"cpu": 1, "memory": "3Gi"}), container({"cpu": 3})],
    ) == {"cpu": 3000, "memory": 3 * GIB}


def test_sidecars_run_beside_everything_that_starts_after_them() -> None:
    sidecar = container({"cpu": "200m", "memory": "1Gi"}, restartPolicy="Always")
    # Containers and sidecar: 300m and 2 GiB. Last init container beside the sidecar: 5200m.
    # The first init container is over before the sidecar starts: 4 GiB, not 5.
    assert request_of(
        containers=[container({"cpu": "100m", "memory": "1Gi"})],
        initContainers=[container({"memory": "4Gi"}), sidecar, container({"cpu": 5})],
    ) == {"cpu": 5200, "memory": 4 * GIB}


def test_pod_level_requests_replace_the_sum() -> None:
    assert request_of(
        containers=[container({"cpu": 4, "memory": "1Gi"})],
        resources={"requests": {"cpu": 1, "nvidia.com/gpu": 3}, "limits": {"memory": "9Gi"}},
    ) == {"cpu": 1000, "memory": GIB}


def test_nothing_stated_is_nothing_requested_and_no_gpu_is_no_request() -> None:
    assert request_of(containers=[{}]) == {}
    assert request_of(containers=[container({"cpu": 0, "nvidia.com/gpu": 0})]) == {"cpu": 0}


@pytest.mark.parametrize(
    ("quantity", "message"),
    [
        ("1K", "'1K' is not a quantity"),
        ("-1", "is negative"),
        ("9e99", "absurdly large"),
        (None, "is not a quantity"),
        ([1], "must be a quantity"),
        (True, "is not a quantity"),
        (float("nan"), "is not a finite quantity"),
    ],
)
def test_bad_quantities_are_refused(quantity: object, message: str) -> None:
    with pytest.raises(FormatError, match=f"container 'main': requests.memory: .*{message}"):
        request_of(containers=[container({"memory": quantity})])


def test_a_request_by_an_unknown_parameter_is_left_out_and_reported() -> None:
    repairs = Repairs("f")
    pod = {"containers": [container({"cpu": "{{inputs.parameters.c}}", "memory": 1})]}
    assert pod_request(pod, "template 'x'", repairs) == {"memory": 1}
    assert "requests name a parameter without a value" in repairs.warnings()[0]
