"""What can go wrong, as one tree.

```
DagsailError
├── InputError            the caller's input is wrong: one line on stderr, exit code 2
│   ├── FormatError       a file is not what it claims to be (truncated, wrong kind, bad value)
│   ├── WorkflowError     the tasks and dependencies do not form a valid workflow
│   ├── ClusterError      the nodes do not form a valid cluster
│   ├── ScenarioError     an unknown or impossible simulation setting
│   ├── UnknownNameError  no policy, family or cluster of that name (near miss suggested)
│   ├── InfeasibleError   a task fits on no node, even an empty one
│   └── OutputError       a result cannot be written where the caller wants it
├── TrainingError         a training cannot go on: a reward or loss is not a number
└── StuckError            a simulation cannot go on; names the blocked task and why
```

Every message names the object, what was found, what is allowed and what to do.
"""

from __future__ import annotations


class DagsailError(Exception):
    """Root of all errors that Dagsail raises on purpose."""


class InputError(DagsailError):
    """The caller's input is wrong; the message is one line that says how to mend it."""


class FormatError(InputError):
    """A file is not what it claims to be."""


class WorkflowError(InputError):
    """Tasks and dependencies do not form a valid workflow."""


class ClusterError(InputError):
    """Nodes do not form a valid cluster."""


class ScenarioError(InputError):
    """A simulation setting is unknown or impossible."""


class UnknownNameError(InputError):
    """No implementation is registered under that name."""


class InfeasibleError(InputError):
    """A task fits on no node of the cluster, even an empty one."""


class OutputError(InputError):
    """A result cannot be written where the caller wants it."""


class StuckError(DagsailError):
    """A simulation cannot go on: tasks are left and nothing will ever happen again."""


class TrainingError(DagsailError):
    """A training cannot go on: a reward, loss or weight is not a number."""
