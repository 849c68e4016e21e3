"""Report: pictures of runs and a page that opens without a network."""

from __future__ import annotations

from dagsail.evaluation.report.charts import jct_distribution
from dagsail.evaluation.report.gantt import gantt, write_gantt
from dagsail.evaluation.report.heatmap import use_heatmap
from dagsail.evaluation.report.page import write_report

__all__ = ["gantt", "jct_distribution", "use_heatmap", "write_gantt", "write_report"]
