"""Which reader a workflow file belongs to: told by its content, never by its name alone."""

from __future__ import annotations

import contextlib
import gc
import re
import reprlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from dagsail.domain.errors import FormatError
from dagsail.domain.units import MIB
from dagsail.files import parse_json, parse_yaml, read_text
from dagsail.workloads import alibaba, argo, dax, native, openb, spark, stg, wfformat
from dagsail.workloads.reading import Reading

Reader = Callable[[str, str], Reading]

ACCEPTED: Final = (
    "WfFormat JSON, Pegasus DAX, Argo YAML or JSON, Dagsail's own YAML (kind: Workflow), STG,"
    " Alibaba 2018 batch_task CSV, openb pod CSV, Spark TPC-H JSON (each also gzipped)"
)
MAX_YAML_BYTES: Final = 16 * MIB
"""YAML is read at about 1 MiB a second: more of it is hardly written by anyone."""

_HEAD_LENGTH: Final = 4096
_BY_HEAD: Final[tuple[tuple[Callable[[str], bool], Reader], ...]] = (
    (dax.looks_like, dax.read),
    (wfformat.looks_like, wfformat.read),
    (openb.looks_like_pods, openb.read_pods),
    (alibaba.looks_like, alibaba.read),
    (spark.looks_like, spark.read),
    (stg.looks_like, stg.read),
)
_YAML_SUFFIXES: Final = (".yaml", ".yml")
_KEY_LINE: Final = re.compile(r"""(- )?["']?[A-Za-z_][\w ./-]{0,200}["']?\s*:(\s|$)""")
_RECORD: Final = re.compile(r'\{[^{}]{0,200}"kind": ?"Record"')
_DURATIONS: Final = "_instance_durations.csv"
_POD_KINDS: Final = ("Pod", "PodList", "Job", "JobList", "CronJob", "Deployment")


def read_workflows(path: Path) -> Reading:
    """All workflows of a file, plain or gzipped, in any accepted format.

    Beside an Alibaba table `x.csv`, `x_instance_durations.csv` (or `.csv.gz`) is read as well.

    Raises:
        FormatError: if it cannot be read, is of no accepted format, or is malformed.
        WorkflowError: if tasks and dependencies form no valid workflow.
    """
    with _collector_paused():
        return _read(path)


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """No search for cycles while millions of small objects are made, none of them garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(path: Path) -> Reading:
    source, text = str(path), read_text(path)
    reader = find_reader(text, source)
    if reader is alibaba.read:
        beside = _durations_beside(path)
        durations = None if beside is None else read_text(beside)
        return alibaba.read(text, source, durations=durations)
    return reader(text, source)


def find_reader(text: str, source: str) -> Reader:
    """The reader that a text belongs to.

    Raises:
        FormatError: if it belongs to none; says what it is, if that is known, and what to do.
    """
    head = text[:_HEAD_LENGTH]
    _refuse_known(head, source)
    for looks_like, reader in _BY_HEAD:
        if looks_like(head):
            return reader
    start = text.lstrip()[:1]
    if start in ("{", "["):
        return _reader_of(_parse_braces(text, source), source)
    if start == "<":
        raise FormatError(f"{source}: XML, but no Pegasus DAX (<adag>); accepted are {ACCEPTED}")
    if _looks_like_yaml(head) or Path(source.removesuffix(".gz")).suffix in _YAML_SUFFIXES:
        if len(text) > MAX_YAML_BYTES:
            raise FormatError(
                f"{source}: {len(text) // MIB} MiB of YAML or of something like it;"
                f" at most {MAX_YAML_BYTES // MIB} MiB are read, write more as JSON"
            )
        return _reader_of(parse_yaml(text, source), source)
    first_line = text.strip().splitlines()[0]
    raise _unknown(source, f"it begins with {first_line[:40]!r}")


def _refuse_known(head: str, source: str) -> None:
    """Refuse what Dagsail reads, but not as workflows."""
    if openb.looks_like_nodes(head):
        raise FormatError(f"{source}: an openb list of machines; give it as --cluster {source}")
    if _RECORD.match(head):
        raise FormatError(f"{source}: a decision record; use 'dagsail replay {source}'")
    if head.startswith("job_name,task_name,mean_instance_duration"):
        raise FormatError(
            f"{source}: durations beside an Alibaba trace; name the batch_task table, and these"
            " are found by its name"
        )


def _looks_like_yaml(head: str) -> bool:
    lines = (line.strip() for line in head.splitlines())
    first = next((x for x in lines if x and not x.startswith(("#", "---", "%"))), "")
    return _KEY_LINE.match(first) is not None


def _parse_braces(text: str, source: str) -> list[Any]:
    try:
        return [parse_json(text, source)]
    except FormatError:
        if len(text) > MIB or Path(source).suffix not in _YAML_SUFFIXES:
            raise
        return parse_yaml(text, source)  # flow style


def _reader_of(documents: list[Any], source: str) -> Reader:
    if not documents:
        raise FormatError(f"{source}: holds no document; accepted are {ACCEPTED}")
    if any(argo.looks_like(document) for document in documents):
        return argo.read
    for document in documents:
        if isinstance(document, dict):
            _refuse_other_kinds(document, source)
            if native.looks_like(document):
                return native.read
            if isinstance(document.get("workflow"), dict):
                return wfformat.read
    first = documents[0]
    if isinstance(first, list) and any(isinstance(x, dict) and "n_stages" in x for x in first):
        return spark.read
    kind = first.get("kind") if isinstance(first, dict) else None
    what = f"kind {reprlib.repr(kind)}" if kind is not None else _shape_of(first)
    raise _unknown(source, what)


def _refuse_other_kinds(document: dict[str, Any], source: str) -> None:
    kind, version = document.get("kind"), str(document.get("apiVersion"))
    is_native = version.startswith("dagsail.io") or "apiVersion" not in document
    if is_native and kind == "Cluster":
        raise FormatError(f"{source}: a cluster, not a workflow; give it as --cluster {source}")
    if is_native and kind == "Scenario":
        raise FormatError(f"{source}: a scenario, not a workflow; give it as --scenario {source}")
    kinds = [kind]
    if kind == "List" and isinstance(document.get("items"), list):
        kinds = [item.get("kind") for item in document["items"] if isinstance(item, dict)]
    if any(name in ("Node", "NodeList") for name in kinds):
        raise FormatError(f"{source}: Kubernetes nodes; give them as --cluster {source}")
    if any(name in _POD_KINDS for name in kinds):
        raise FormatError(
            f"{source}: Kubernetes objects of kind {kind} without the workflow that they belong to;"
            " give the Argo Workflow, or describe tasks and dependencies as kind: Workflow"
        )
    if kind is None and any(_is_airflow_dag(value) for value in document.values()):
        raise FormatError(
            f"{source}: an Airflow DAG-factory file; it names operators but neither run times nor"
            " resources, so it is not read; describe its tasks as kind: Workflow"
        )


def _is_airflow_dag(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if any(key in value for key in ("default_args", "schedule", "schedule_interval")):
        return True
    tasks = value.get("tasks")
    entries = list(tasks.values()) if isinstance(tasks, dict) else tasks
    return isinstance(entries, list) and any(
        isinstance(task, dict) and ("operator" in task or "decorator" in task) for task in entries
    )


def _shape_of(document: object) -> str:
    if isinstance(document, dict):
        keys = ", ".join(reprlib.repr(str(key)) for key in list(document)[:4])
        return f"an object with the keys {keys}"
    return f"a {type(document).__name__}"


def _unknown(source: str, what: str) -> FormatError:
    return FormatError(
        f"{source}: no workflow file that Dagsail knows ({what}); accepted: {ACCEPTED}"
    )


def _durations_beside(path: Path) -> Path | None:
    stem = path.name.removesuffix(".gz").removesuffix(".csv")
    for name in (f"{stem}{_DURATIONS}", f"{stem}{_DURATIONS}.gz"):
        if (beside := path.with_name(name)).is_file():
            return beside
    return None
