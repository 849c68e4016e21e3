"""Reader of Argo Workflows: `Workflow`, `CronWorkflow`, `WorkflowTemplate` and their cluster kin.

A workflow is read as the DAG of pods that it runs when everything succeeds:

- `dag` and `steps` templates are flattened; a task inside `outer` is called `outer.inner`, the
  item of a loop `task(0)`. What waits for a nested template waits for the last tasks in it.
- `depends` is decided for success: a task that only runs where another fails is left out. So is
  one whose `when` is false; a condition that only a run can decide counts as true.
- Loops over literal items, sequences and parameters with a literal list are repeated; one over
  the output of a task counts once. A template that calls itself counts once.
- `onExit` and exit hooks come after all that they wait for.
- Requests follow the arithmetic of Kubernetes; `podSpecPatch` and `templateDefaults` are applied.
- Argo states no run times. They come from the annotation `dagsail.io/expected-seconds` of a
  template, from `status.nodes` of a workflow that ran, from the duration of a `suspend`, or are
  the default. `dagsail.io/output-bytes` (on a template) flows to every dependent;
  `dagsail.io/deadline-seconds` and `dagsail.io/priority` (P0 to P3, on a workflow) override
  `activeDeadlineSeconds` and `priority` (see `hints.priority_of` for its direction).

Whatever is assumed or left out is counted in the warnings of the reading.
Format: https://argo-workflows.readthedocs.io/en/latest/fields/ (v1alpha1).
"""

from __future__ import annotations

from dagsail.workloads.argo.reader import looks_like, read

__all__ = ["looks_like", "read"]
