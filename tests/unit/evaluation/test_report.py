"""Pictures: what stands behind each chart, and that the page is whole and self-contained."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagsail.clusters.simulated.cluster import Run
from dagsail.clusters.simulated.world import EVICTED, FAILED
from dagsail.domain.errors import OutputError
from dagsail.domain.snapshot import CANCELLED
from dagsail.domain.workflow import Arrival, Task, Workflow
from dagsail.evaluation.comparison import Comparison
from dagsail.evaluation.load import load_of
from dagsail.evaluation.metrics import measure
from dagsail.evaluation.occupation import Occupation
from dagsail.evaluation.report import charts, gantt_bands, heatmap, page, tables
from dagsail.evaluation.report import gantt as gantt_module
from dagsail.evaluation.report.gantt import gantt, write_gantt
from dagsail.evaluation.report.heatmap import use_heatmap
from dagsail.evaluation.report.lanes import pack_lanes
from dagsail.evaluation.report.setting import describe
from dagsail.evaluation.report.usage import held_ratio, usage_of
from dagsail.evaluation.window import whole_run

Json = dict[str, Any]


def table(chart: Any, column: str) -> list[dict[str, str]]:
    """The rows behind a chart, of its data set that has the column."""
    for text in chart.to_dict()["datasets"].values():
        found = list(csv.DictReader(io.StringIO(text)))
        if found and column in found[0]:
            return found
    raise AssertionError(f"no data with column {column}")


def column(chart: Any, name: str) -> list[float]:
    return [float(row[name]) for row in table(chart, name)]


# Lanes ------------------------------------------------------------------------------------------

INTERVALS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 6)), min_size=1, max_size=40
)


@given(INTERVALS)
def test_intervals_of_one_lane_never_overlap(intervals: list[tuple[int, int, int]]) -> None:
    group, start, length = np.array(intervals).T
    end = start + length
    lane = pack_lanes(group, start, end)
    for i in range(len(group)):
        for j in range(i):
            if group[i] == group[j] and lane[i] == lane[j]:
                assert end[i] <= start[j] or end[j] <= start[i]


@given(INTERVALS)
def test_lanes_are_as_few_as_possible(intervals: list[tuple[int, int, int]]) -> None:
    group, start, length = np.array(intervals).T
    end = start + length + 1
    lane = pack_lanes(group, start, end)
    for owner in np.unique(group):
        mine = group == owner
        at_once = max(((start[mine] <= t) & (t < end[mine])).sum() for t in start[mine])
        assert lane[mine].max() + 1 == at_once


def test_a_lane_is_free_for_what_starts_where_another_ends() -> None:
    group = np.zeros(3, np.int64)
    lane = pack_lanes(group, np.array([0.0, 2.0, 1.0]), np.array([2.0, 3.0, 4.0]))
    assert lane.tolist() == [0, 0, 1]


# Heat map ---------------------------------------------------------------------------------------


def test_use_is_the_mean_over_each_stretch(two_by_two: Run) -> None:
    use = usage_of(two_by_two, max_rows=10, num_stretches=11)
    assert use.rows == ("n0", "n1")
    assert use.edges_s.tolist() == pytest.approx(list(range(0, 60, 5)))
    assert use.ratio.tolist() == [
        pytest.approx([1.0] * 10 + [0.0]),
        pytest.approx([0.0] + [1] * 10),
    ]
    halves = usage_of(two_by_two, max_rows=10, num_stretches=1)
    assert halves.ratio.tolist() == [[pytest.approx(50 / 55)], [pytest.approx(50 / 55)]]


def test_use_is_that_of_the_dominant_resource() -> None:
    held = Occupation(
        attempt=np.array([0, 1]),
        node=np.array([1, 1]),
        start_s=np.array([10.0, 12.0]),
        end_s=np.array([15.0, 20.0]),
        request=np.array([[500, 6], [250, 0]]),
    )
    allocatable = np.array([[1000, 8], [2000, 8]])
    share = held_ratio(held, allocatable, np.array([10.0, 20.0]))
    assert share[0].tolist() == [[0.0, 0.0]]
    # cpu: 0.25 for 5 of 10 s and 0.125 for 8 of 10 s; memory: 0.75 for 5 of 10 s.
    assert share[1].tolist() == [[pytest.approx(0.225), pytest.approx(0.375)]]


def test_many_nodes_share_rows(two_by_two: Run) -> None:
    use = usage_of(two_by_two, max_rows=1, num_stretches=11)
    assert use.rows == ("n0 to n1",)
    assert use.nodes_a_row == 2
    assert use.ratio.tolist() == [pytest.approx([0.5] + [1.0] * 9 + [0.5])]


def test_heat_map_shows_every_node_and_stretch(
    two_by_two: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heatmap, "NUM_STRETCHES", 11)
    rows = table(use_heatmap(two_by_two), "use")
    assert len(rows) == 22
    assert [float(row["use"]) for row in rows if row["node"] == "n1"] == [0.0] + [1.0] * 10
    assert {row["resource"] for row in rows} == {"cpu"}


# Gantt ------------------------------------------------------------------------------------------


def test_gantt_has_a_bar_for_each_attempt(two_by_two: Run) -> None:
    rows = table(gantt(two_by_two), "start_s")
    found = {
        (row["task"], row["workflow"], row["node"], float(row["start_s"]), float(row["end_s"]))
        for row in rows
    }
    assert found == {
        ("a", "first", "n0", 0.0, 10.0),
        ("b", "second", "n1", 5.0, 25.0),
        ("d", "second", "n0", 10.0, 50.0),
        ("c", "first", "n1", 25.0, 55.0),
    }
    assert {row["request"] for row in rows} == {"cpu 2"}
    assert {row["colour"] for row in rows} == {"first", "second"}
    # One after another on full nodes: two heights in all.
    assert len({row["top"] for row in rows}) == 2


def test_gantt_marks_what_did_not_finish(two_by_two: Run) -> None:
    attempts = two_by_two.attempts.copy()
    attempts["outcome"][:2] = [FAILED, EVICTED]
    rows = table(gantt(replace(two_by_two, attempts=attempts)), "colour")
    assert sorted(row["colour"] for row in rows) == ["evicted", "failed", "first", "second"]


def test_gantt_draws_every_worker_of_a_group(
    simulate: Callable[..., Run], node: Callable[..., Any]
) -> None:
    group = Task(id="g", runtime_s=10, request={"cpu": 2000}, num_workers=2)
    run = simulate([Arrival(0.0, Workflow(id="w", tasks=(group,)))], [node("n0"), node("n1")])
    rows = table(gantt(run), "start_s")
    assert sorted((row["task"], row["node"]) for row in rows) == [("g", "n0"), ("g", "n1")]


def test_gantt_leaves_out_nodes_that_ran_nothing(
    simulate: Callable[..., Run], node: Callable[..., Any]
) -> None:
    only = Workflow(id="w", tasks=(Task(id="t", runtime_s=10, request={"cpu": 100}),))
    run = simulate([Arrival(0.0, only)], [node("n0"), node("n1"), node("n2")])
    title = gantt(run).to_dict()["title"]
    assert title["subtitle"][1] == "2 of 3 nodes ran nothing and are left out"


def test_names_are_text_even_if_they_look_like_numbers(
    simulate: Callable[..., Run], node: Callable[..., Any]
) -> None:
    odd = Workflow(id='a,"b"\nc', tasks=(Task(id="1e5", runtime_s=10, request={"cpu": 100}),))
    chart = gantt(simulate([Arrival(0.0, odd)], [node("n0")]))
    (row,) = table(chart, "task")
    assert (row["workflow"], row["task"]) == ('a,"b"\nc', "1e5")
    kinds = chart.to_dict()["layer"][1]["data"]["format"]["parse"]
    assert (kinds["task"], kinds["start_s"]) == ("string", "number")


def test_too_many_bars_become_bands_that_say_so(
    two_by_two: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gantt_module, "MAX_BARS", 4)
    assert len(table(gantt(two_by_two), "task")) == 4
    monkeypatch.setattr(gantt_module, "MAX_BARS", 3)
    monkeypatch.setattr(gantt_bands, "NUM_STRETCHES", 11)
    chart = gantt(two_by_two)
    assert chart.to_dict()["title"]["subtitle"][0] == "4 bars are too many to draw one by one"
    rows = table(chart, "use")
    assert [row["node"] for row in rows] == ["n0"] * 10 + ["n1"] * 10  # empty stretches left out
    assert {float(row["use"]) for row in rows} == {1.0}
    assert {(row["top"], row["bottom"]) for row in rows} == {("0.05", "0.95"), ("1.05", "1.95")}


def test_too_many_busy_nodes_become_bands(two_by_two: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gantt_module, "MAX_HEIGHT_PX", 20)
    subtitle = gantt(two_by_two).to_dict()["title"]["subtitle"]
    assert subtitle[0] == "2 busy nodes are too many to draw task by task"


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("g.png", b"\x89PNG"),
        ("g.svg", b"<svg"),
        ("g.html", b"<!DOCTYPE html>"),
        ("g.PNG", b"\x89PNG"),
    ],
)
def test_gantt_is_written_as_its_suffix_says(
    two_by_two: Run, tmp_path: Path, name: str, beginning: bytes
) -> None:
    write_gantt(two_by_two, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert content[:500].lstrip().lower().startswith(beginning.lower())
    assert loads_from_elsewhere(content.decode(errors="ignore")) == []


def test_gantt_of_another_suffix_is_refused(two_by_two: Run, tmp_path: Path) -> None:
    with pytest.raises(
        OutputError, match=r"cannot be written as '\.pdf'; allowed are \.png, \.svg"
    ):
        write_gantt(two_by_two, tmp_path / "g.pdf")
    with pytest.raises(OutputError, match="cannot be written"):
        write_gantt(two_by_two, tmp_path / "missing" / "g.svg")
    assert list(tmp_path.iterdir()) == []


# Charts of policies -----------------------------------------------------------------------------


def test_completion_times_are_shares_of_all_workflows(two_by_two: Run) -> None:
    chart = charts.jct_distribution({"fifo": two_by_two})
    assert list(zip(column(chart, "jct"), column(chart, "share"), strict=True)) == [
        (45.0, 0.5),
        (55.0, 1.0),
    ]
    two_by_two.snapshot.workflows["state"][1] = CANCELLED
    chart = charts.jct_distribution({"fifo": two_by_two})
    assert (column(chart, "jct"), column(chart, "share")) == ([55.0], [0.5])


def test_waits_are_by_priority(two_by_two: Run) -> None:
    rows = table(charts.waits_by_priority({"fifo": two_by_two}), "mean")
    found = [(row["priority"], float(row["mean"]), float(row["high"])) for row in rows]
    # P0: 0 and 15 s; P1: 0 and 5 s.
    assert found == [("P0", 7.5, 14.25), ("P1", 2.5, 4.75)]


def test_deadlines_are_by_priority_with_their_number(two_by_two: Run, comparison: Json) -> None:
    chart = charts.deadlines_by_priority({"slow": comparison["policies"]["slow"]}, two_by_two)
    rows = table(chart, "met")
    # first has until 54 and ends at 55; second has until 50 and ends at 50.
    assert [(row["priority"], float(row["met"])) for row in rows] == [
        ("P0 (n = 1)", 0.0),
        ("P1 (n = 1)", 1.0),
    ]


def test_cost_is_split_by_kind_of_node(comparison: Json) -> None:
    rows = table(charts.costs({"slow": comparison["policies"]["slow"]}), "usd")
    # n0: 50 s at 0.001 USD/s; n1, which has a GPU: 50 s at 0.01 USD/s.
    assert {row["part"]: float(row["usd"]) for row in rows} == {
        "nodes without GPU": pytest.approx(0.05),
        "nodes with GPU": pytest.approx(0.5),
    }


def test_charts_of_nothing_are_left_out(two_by_two: Run, comparison: Json) -> None:
    policy = comparison["policies"]["slow"]
    free = policy | {key: {"mean": 0.0} for key in ("cost_usd", "gpu_cost_usd")}
    assert charts.costs({"slow": free}) is None
    for name in [name for name in policy if name.startswith("deadline_met_ratio_p")]:
        policy[name] = {"mean": None, "ci95": None}
    assert charts.deadlines_by_priority({"slow": policy}, two_by_two) is None


# Page -------------------------------------------------------------------------------------------

POLICIES = {"slow": 1.0, "fast": 0.5, "alike": 1.0}


@pytest.fixture
def comparison(two_by_two: Run) -> Json:
    """Six seeds: `fast` takes half of the reference `slow`, `alike` is above and below it."""
    base = measure(two_by_two)
    times = ("jct_mean_s", "jct_p95_s", "makespan_s")

    def at(policy: str, seed: int) -> dict[str, float]:
        factor = POLICIES[policy] * (1 + 0.01 * seed)
        factor *= 1 + (0.02 if seed % 2 else -0.02) * (policy == "alike")
        return base | {name: base[name] * factor for name in times}

    load = load_of(two_by_two, whole_run(two_by_two))
    found = Comparison(
        scenario="small",
        seeds=tuple(range(6)),
        reference="slow",
        metrics={name: tuple(at(name, seed) for seed in range(6)) for name in POLICIES},
        loads=dict.fromkeys(POLICIES, (load,) * 6),
        num_workflows=(2,) * 6,
        num_tasks=(4,) * 6,
    )
    return json.loads(json.dumps(found.to_json()))


@pytest.fixture
def runs(two_by_two: Run) -> dict[str, Run]:
    return dict.fromkeys(POLICIES, two_by_two)


def loads_from_elsewhere(text: str) -> list[str]:
    """Everything in a page that would ask the network for something."""
    pattern = (
        r"""(?:src|href)\s*=\s*["']?\s*(?:https?:|//)[^"'\s>]*|@import\b[^;]*|"""
        r"""url\(\s*["']?(?:https?:|//)[^)]*|import\s*\(?\s*["']https?:[^"']*|"""
        r"""fetch\(\s*["'`]https?:[^"'`]*"""
    )
    return re.findall(pattern, text)


class Balance(HTMLParser):
    """Collects tags that are not closed in order."""

    VOID = ("meta", "link", "br", "img", "input", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def unpacked(text: str) -> Json:
    packed = re.search(r'id="data">([^<]*)<', text)
    assert packed is not None
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))


def test_page_is_whole_and_loads_nothing(runs: dict[str, Run], comparison: Json) -> None:
    text = page.page(runs, comparison)
    balance = Balance()
    balance.feed(text)
    assert (balance.faults, balance.open) == ([], [])
    assert text.startswith("<!doctype html>")
    assert loads_from_elsewhere(text) == []
    assert "{{" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert len(text) < 3_000_000


def test_the_search_for_loads_finds_some() -> None:
    for bad in (
        '<script src="https://a/b.js">',
        "<link href=//a/b.css>",
        "@import 'x';",
        "background: url(http://a/b.png)",
        'import("https://a")',
        "fetch('https://a')",
    ):
        assert loads_from_elsewhere(bad) != [], bad


def test_page_holds_all_charts_of_all_policies(runs: dict[str, Run], comparison: Json) -> None:
    data = unpacked(page.page(runs, comparison))
    assert sorted(data["figures"]) == ["cost", "deadlines", "jct", "wait"]
    assert list(data["timelines"]) == ["fast", "slow", "alike"]
    assert sorted(data["timelines"]["fast"]) == ["gantt", "use"]
    assert data["timelines"]["fast"]["gantt"]["spec"]["width"] == "container"


def test_page_is_the_same_every_time(runs: dict[str, Run], comparison: Json) -> None:
    assert page.page(runs, comparison) == page.page(runs, comparison)


def test_page_escapes_names(two_by_two: Run, comparison: Json) -> None:
    renamed = json.loads(json.dumps(comparison).replace('"fast"', '"<b>&fast"'))
    renamed["scenario"]["warnings"] = ["<script>"]
    found = page.page({"<b>&fast": two_by_two, "slow": two_by_two}, renamed)
    assert "<b>" not in found.split("<script>")[0]
    assert "&lt;b&gt;&amp;fast" in found
    assert "<li>&lt;script&gt;</li>" in found


def test_best_and_reference_are_always_drawn(
    two_by_two: Run, comparison: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MAX_DRAWN", 2)
    monkeypatch.setattr(page, "MAX_TIMELINE_BARS", 1)
    metrics = comparison["policies"]
    metrics |= {f"p{i}": metrics["fast"] for i in range(3)}
    text = page.page(dict.fromkeys(metrics, two_by_two), comparison)
    data = unpacked(text)
    assert list(data["timelines"]) == ["fast", "slow"]
    drawn = next(iter(data["figures"]["jct"]["spec"]["datasets"].values()))
    assert {line.split(",")[0] for line in drawn.splitlines()[1:]} == {"fast", "slow"}
    assert "Shown are 2 of 6 policies" in text


def test_report_makes_its_folder(runs: dict[str, Run], comparison: Json, tmp_path: Path) -> None:
    path = page.write_report(runs, comparison, tmp_path / "a" / "b")
    assert path == tmp_path / "a" / "b" / "index.html"
    assert path.read_text("utf-8").rstrip().endswith("</html>")
    assert list(path.parent.iterdir()) == [path]


def test_report_where_none_can_be(runs: dict[str, Run], comparison: Json, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError, match="cannot be made a folder"):
            page.write_report(runs, comparison, folder)
    assert (tmp_path / "file").read_text() == "kept"


# Tables and words -------------------------------------------------------------------------------


def cells(text: str) -> list[list[str]]:
    """Rows of a table without their tags."""
    rows = re.findall(r"<tr>(.*?)</tr>", text, flags=re.DOTALL)
    return [
        [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
        for row in rows
    ]


def test_ranking_is_by_mean_completion_time(comparison: Json) -> None:
    rows = cells(tables.ranking(comparison))[1:]
    assert [row[:2] for row in rows] == [
        ["1", "fast"],
        ["2", "slow reference"],
        ["3", "alike"],
    ]
    # 50 s on average, times 0.5 and 1.025.
    assert rows[0][2].startswith("25.6 s [")
    assert rows[0][3].startswith("&minus;50.0 % ▼ better")
    assert rows[1][3] == "&ndash;"
    assert "≈ noise" in rows[2][3]


def test_ranking_marks_noise_in_every_column(comparison: Json) -> None:
    fast, slow, alike = cells(tables.ranking(comparison))[1:]
    assert [("≈" in cell) for cell in fast[5:]] == [False, False, True, True]
    assert not any("≈" in cell for cell in slow)
    assert all("≈" in cell for cell in alike[5:])


def test_words_say_what_is_noise(comparison: Json) -> None:
    text = tables.verdict(comparison)
    assert text.startswith(
        "fast has the lowest mean completion time, 50% below the reference, slow"
    )
    assert "more than noise" in text
    assert text.endswith("By mean completion time that holds for alike.")


def test_words_where_the_reference_or_noise_comes_first(comparison: Json) -> None:
    del comparison["policies"]["fast"]
    assert tables.verdict(comparison).startswith("The reference, slow, has the lowest")
    comparison["policies"]["alike"]["jct_mean_s"]["mean"] = 1.0
    assert "but the difference from the reference is noise" in tables.verdict(comparison)


def test_a_policy_that_finished_nothing_comes_last(comparison: Json) -> None:
    comparison["policies"]["fast"]["jct_mean_s"] = {"mean": None, "ci95": None}
    comparison["paired"]["against_reference"]["fast"]["jct_mean_s"]["ratio"] = None
    last = cells(tables.ranking(comparison))[-1]
    assert last[1:5] == ["fast", "&ndash;", "&ndash;", "&ndash;"]


def test_all_metrics_have_a_row(comparison: Json) -> None:
    rows = cells(tables.all_metrics(comparison))
    assert [row[0] for row in rows[1:]] == list(comparison["policies"]["slow"])
    assert rows[0][2:5] == ["fast", "slow", "alike"]


def test_setting_says_what_was_simulated(two_by_two: Run, comparison: Json) -> None:
    lines = describe(two_by_two, comparison)
    assert lines["Workload"] == "2 workflows of 4 tasks a seed"
    assert lines["Cluster"] == (
        "small: 2 nodes, 4 cores, 16 GiB memory, 1 nvidia.com/gpu, $39.60 an hour"
    )
    assert lines["Scenario"] == "small: no effects but data transfers"
    assert lines["Seeds"] == "6 (0 to 5); every policy met the same arrivals and luck"
    assert lines["Reference"] == "slow"
