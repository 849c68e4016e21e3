"""WfFormat, the JSON of WfCommons."""

from dagsail.workloads.wfformat.reader import looks_like, read

__all__ = ["looks_like", "read"]
