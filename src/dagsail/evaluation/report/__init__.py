"""Report: pictures of runs and a page that opens without a network.

`gantt.gantt`, `heatmap.use_heatmap` and the functions of `charts` return Altair charts.
"""

from __future__ import annotations

from dagsail.evaluation.report.gantt import write_gantt
from dagsail.evaluation.report.page import write_report

__all__ = ["write_gantt", "write_report"]
