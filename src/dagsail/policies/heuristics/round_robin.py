"""Each task on the next node in turn that has room."""

from __future__ import annotations

from dagsail.policies.rotation import next_in_turn
from dagsail.policies.rule import Rule

POLICY = Rule("round-robin", select=next_in_turn)
