"""Each task on the next node in turn that has room."""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.rule import Rule
from dagsail.policies.rotation import next_in_turn

POLICY = Rule("round-robin", select=next_in_turn)
