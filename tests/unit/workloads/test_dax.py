"""Reading Pegasus DAX: jobs, files, stated dependencies, and refusal of bad input."""

from __future__ import annotations

import csv
import re
import time
from pathlib import Path

import pytest

from dagsail.domain.errors import FormatError, WorkflowError
from dagsail.domain.units import CPU, GIB, MEMORY
from dagsail.domain.workflow import Workflow
from dagsail.files import read_text
from dagsail.workloads import dax
from dagsail.workloads.reading import Reading

# in.dat (500 B, from outside) -> make -> mid.dat (70 B in make, 90 B in use) -> use (8 cores).
# check follows use without sharing a file and has neither run time nor cores.
PIPELINE = """\
<?xml version="1.0" encoding="ISO-8859-1"?>
<!-- three jobs -->
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="2.1" name="pipe" jobCount="3">
  <job id="ID1" namespace="Demo" name="make" runtime="1.5" cores="1">
    <uses file="in.dat" link="input" size="500"/>
    <uses file="mid.dat" link="output" size="70"/>
  </job>
  <job id="ID2" namespace="Demo" name="use" runtime="0" cores="8">
    <uses file="mid.dat" link="input" size="90"/>
  </job>
  <job id="ID3" namespace="Demo" name="check"/>
  <child ref="ID2"><parent ref="ID1"/></child>
  <child ref="ID3"><parent ref="ID2"/></child>
</adag>
"""


def read(text: str, source: str = "pipe.xml") -> Reading:
    return dax.read(text, source)


def only(reading: Reading) -> Workflow:
    (workflow,) = reading.workflows
    return workflow


def edges(workflow: Workflow) -> dict[tuple[str, str], int]:
    return {(edge.parent, edge.child): edge.data_bytes for edge in workflow.dependencies}


def test_reads_jobs_and_stated_edges_with_the_bytes_that_flow():
    workflow = only(read(PIPELINE))
    assert workflow.id == "pipe"
    assert workflow.family == "demo"
    assert [task.id for task in workflow.tasks] == ["ID1", "ID2", "ID3"]
    assert [task.kind for task in workflow.tasks] == ["make", "use", "check"]
    assert [task.runtime_s for task in workflow.tasks] == [1.5, 0.0, 60.0]
    assert edges(workflow) == {("ID1", "ID2"): 90, ("ID2", "ID3"): 0}
    assert [task.input_bytes for task in workflow.tasks] == [500, 0, 0]
    assert [task.output_bytes for task in workflow.tasks] == [90, 0, 0]


def test_cores_are_the_cpu_request_and_memory_the_default():
    assert [task.request for task in only(read(PIPELINE)).tasks] == [
        {CPU: 1000, MEMORY: GIB},
        {CPU: 8000, MEMORY: GIB},
        {CPU: 1000, MEMORY: GIB},
    ]


def test_each_assumption_is_reported():
    assert read(PIPELINE).warnings == (
        "pipe.xml: file with different sizes, the largest is used (1 x, first: mid.dat)",
        "pipe.xml: jobs state no memory, 1 GiB assumed for each (1 x)",
        "pipe.xml: job with a run time of 0 s, kept (1 x, first: ID2)",
        "pipe.xml: job without a run time, 60 s assumed (1 x, first: ID3)",
        "pipe.xml: job without cores, 1000 millicores assumed (1 x, first: ID3)",
    )


def test_a_job_count_that_differs_is_reported():
    reading = read(PIPELINE.replace('jobCount="3"', 'jobCount="25"'))
    assert "pipe.xml: jobCount is 25 but 3 jobs are there (1 x)" in reading.warnings


def test_files_alone_make_no_edge():
    text = PIPELINE.replace('<child ref="ID2"><parent ref="ID1"/></child>', "")
    assert edges(only(read(text))) == {("ID2", "ID3"): 0}


def test_a_dependency_stated_twice_is_merged_and_reported():
    reading = read(
        PIPELINE.replace('<parent ref="ID1"/>', '<parent ref="ID1"/><parent ref="ID1"/>')
    )
    assert edges(only(reading)) == {("ID1", "ID2"): 90, ("ID2", "ID3"): 0}
    assert "pipe.xml: dependency stated twice, merged (1 x, first: ID1 -> ID2)" in reading.warnings


def test_version_3_names_files_by_name_and_states_no_sizes():
    text = """\
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="3.6" name="new">
  <file name="f.a"><pfn url="file:///f.a" site="local"/></file>
  <transformation name="tool"><uses name="lib"/></transformation>
  <job id="A" name="tool"><argument>-i <file name="f.a"/></argument>
    <uses name="f.b" link="output"/></job>
  <dax id="B" file="inner.dax"><uses name="f.b" link="input"/></dax>
  <child ref="B"><parent ref="A" edge-label="x"/></child>
</adag>"""
    reading = read(text)
    assert edges(only(reading)) == {("A", "B"): 0}
    assert any("without a size, 0 bytes assumed (1 x, first: f.b)" in w for w in reading.warnings)


def test_a_file_that_is_read_and_written_comes_from_outside():
    text = PIPELINE.replace('in.dat" link="input"', 'in.dat" link="inout"')
    first = only(read(text)).tasks[0]
    assert (first.input_bytes, first.output_bytes) == (500, 590)


def test_a_file_used_twice_counts_once_and_other_links_carry_no_data():
    use = '<uses file="in.dat" link="input" size="500"/>'
    reading = read(PIPELINE.replace(use, f'{use}{use}<uses file="log" link="none" size="9"/>'))
    first = only(reading).tasks[0]
    assert (first.input_bytes, first.output_bytes) == (500, 90)
    assert "pipe.xml: job that uses a file twice, merged (1 x, first: ID1)" in reading.warnings


def test_the_generators_name_is_replaced_by_that_of_the_file():
    text = PIPELINE.replace('name="pipe"', 'name="test"')
    assert only(read(text, "a/Montage_25.xml.gz")).id == "Montage_25"


def test_negative_draws_of_the_generator_lose_their_sign_and_are_reported():
    text = PIPELINE.replace('runtime="1.5"', 'runtime="-1.5"').replace('"500"', '"-500"')
    reading = read(text.replace('name="pipe"', 'name="test"'))
    first = only(reading).tasks[0]
    assert (first.runtime_s, first.input_bytes) == (1.5, 500)
    assert sum("sign dropped (1 x, first: line" in warning for warning in reading.warnings) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"pipe\.xml:1:1: not valid XML \(no element found\)"),
        ("{}", r"pipe\.xml:1:1: not valid XML"),
        (PIPELINE[:400], r"pipe\.xml:\d+:\d+: not valid XML"),
        ("<html></html>", "not DAX: the outermost element is 'html', 'adag' is expected"),
        (PIPELINE.replace('id="ID1" ', ""), r"pipe\.xml:4: id is missing"),
        (PIPELINE.replace('ref="ID2"', ""), "ref is missing"),
        (PIPELINE.replace("make", "a&#10;b"), "name is 'a.*b'; one line of text is expected"),
        (PIPELINE.replace("pipe", "\ud800"), "not valid XML"),
    ],
)
def test_text_that_is_not_dax_is_refused(text, message):
    with pytest.raises(FormatError, match=message):
        read(text)


@pytest.mark.parametrize("value", ["-1", "NaN", "inf", "1e300", "ten", "", "1_0", "0x10"])
@pytest.mark.parametrize(
    ("old", "key", "line"),
    [('"1.5"', "runtime", 4), ('"8"', "cores", 8), ('"500"', "size", 5), ('"3"', "jobCount", 3)],
)
def test_a_value_that_is_no_possible_amount_is_refused_with_its_line(old, key, line, value):
    with pytest.raises(FormatError, match=rf"pipe\.xml:{line}: {key} is '{value}'; a number from"):
        read(PIPELINE.replace(old, f'"{value}"'))


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE adag [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE adag [<!ENTITY a SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE adag SYSTEM "http://localhost/x.dtd">',
    ],
)
def test_document_types_and_their_entities_are_refused(declaration):
    with pytest.raises(FormatError, match=r"pipe\.xml:2: a document type .* is not allowed"):
        read(PIPELINE.replace("<!-- three jobs -->", declaration))


def test_a_cycle_is_named():
    text = PIPELINE.replace("</adag>", '<child ref="ID1"><parent ref="ID3"/></child></adag>')
    with pytest.raises(WorkflowError, match=r"pipe\.xml: .* has a cycle: ID1 -> "):
        read(text)


def test_a_job_that_follows_itself_is_refused():
    with pytest.raises(WorkflowError, match="task 'ID2' depends on itself"):
        read(PIPELINE.replace('<parent ref="ID1"/>', '<parent ref="ID2"/>'))


def test_unknown_parents_and_children_are_named():
    with pytest.raises(WorkflowError, match=r"pipe\.xml: job 'ID2' has an unknown parent 'ghost'"):
        read(PIPELINE.replace('parent ref="ID1"', 'parent ref="ghost"'))
    with pytest.raises(WorkflowError, match=r"pipe\.xml: job 'ID2' has an unknown child 'ghost'"):
        read(PIPELINE.replace('child ref="ID3"', 'child ref="ghost"'))


def test_duplicate_ids_are_refused_with_their_line():
    with pytest.raises(WorkflowError, match=r"pipe\.xml:8: job id 'ID1' occurs more than once"):
        read(PIPELINE.replace('job id="ID2"', 'job id="ID1"'))


def test_a_document_without_jobs_is_refused():
    with pytest.raises(WorkflowError, match="has no tasks"):
        read("<adag/>")


def test_elements_in_the_wrong_place_are_no_jobs():
    text = PIPELINE.replace("</adag>", '<x><job id="ID4"/><uses file="f"/></x></adag>')
    assert len(only(read(text)).tasks) == 3


def test_looks_like_tells_dax_from_other_text():
    assert dax.looks_like(PIPELINE[:150])
    assert dax.looks_like("<p:adag xmlns:p='x'>")
    assert not dax.looks_like("<html><body>no</body></html>")
    assert not dax.looks_like("how to write <adag> elements")


def test_ten_thousand_jobs_are_read_in_seconds():
    jobs = "".join(
        f'<job id="j{i}" name="n" runtime="1"><uses file="f{i // 2}" link="input" size="1"/>'
        f'<uses file="f{i}" link="output" size="1"/></job>'
        for i in range(1, 10_001)
    )
    pairs = "".join(
        f'<child ref="j{i}"><parent ref="j{i // 2}"/></child>' for i in range(2, 10_001)
    )
    start = time.perf_counter()
    workflow = only(read(f'<adag name="big">{jobs}{pairs}</adag>'))
    assert time.perf_counter() - start < 10
    assert (len(workflow.tasks), len(workflow.dependencies)) == (10_000, 9_999)


class TestRealFiles:
    def test_every_file_holds_the_jobs_that_the_manifest_states(self, data_dir: Path):
        with open(data_dir / "manifest.csv", encoding="utf-8") as manifest:
            notes = {row["file"]: row["note"] for row in csv.DictReader(manifest)}
        names = [name for name in notes if name.startswith("pegasus-dax/")]
        assert len(names) >= 20
        for name in names:
            text = read_text(data_dir / name)
            assert dax.looks_like(text[:4096]), name
            workflow = only(dax.read(text, name))
            stated = re.search(r"tasks=(\d+)", notes[name])
            assert stated is not None
            assert len(workflow.tasks) == int(stated[1]), name
            # Counted without a parser: these files state no dependency twice.
            assert len(workflow.dependencies) == len(re.findall(r"<parent ref=", text)), name

    def test_the_graph_of_the_heft_paper_has_its_costs(self, data_dir):
        reading = dax.read(read_text(data_dir / "pegasus-dax" / "HEFT_paper.xml"), "HEFT_paper.xml")
        workflow = only(reading)
        assert [task.runtime_s for task in workflow.tasks][:4] == [14, 13, 11, 13]
        # 18 time units of communication in the paper (task 1 to 2), 125 bytes each.
        assert edges(workflow)["ID00001", "ID00002"] == 18 * 125
        assert any("jobCount is 25 but 10 jobs" in warning for warning in reading.warnings)

    def test_rigid_parallel_jobs_ask_for_all_their_cores(self, data_dir):
        workflow = only(dax.read(read_text(data_dir / "pegasus-dax" / "floodplain.xml"), "f.xml"))
        assert max(task.request[CPU] for task in workflow.tasks) == 256_000

    def test_impossible_draws_of_the_generator_are_reported(self, data_dir):
        name = "Epigenomics_997.xml"
        reading = dax.read(read_text(data_dir / "pegasus-dax" / name), name)
        text = "\n".join(reading.warnings)
        assert re.search(r"negative size, .* \(209 x", text)
        assert re.search(r"negative runtime, .* \(57 x", text)
        assert re.search(r"run time of 0 s, kept \(4 x", text)
