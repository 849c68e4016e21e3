"""Weighted features order tasks, choose nodes and decide to wait; see `policies.scoring`."""

from __future__ import annotations

from dagsail.policies.scoring.scorer import scorer
from dagsail.policies.scoring.weights import preset

POLICY = scorer("scorer", preset())
