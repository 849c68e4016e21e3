"""The report in a real browser: every chart appears, and choosing a policy draws its charts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import Cluster, Node
from dagsail.domain.scenario import Scenario
from dagsail.domain.units import GIB
from dagsail.domain.workflow import Arrival, Task, Workflow
from dagsail.evaluation.benchmark import compare
from dagsail.evaluation.report import write_report
from dagsail.policies.heuristics import fifo, sjf

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=20000",
    "--dump-dom",
)

WATCH = """<script>
const faults = [];
const note = (fault) => {
  faults.push(String(fault));
  document.documentElement.dataset.faults = faults.join(" | ");
};
addEventListener("error", (event) => note(event.message));
addEventListener("unhandledrejection", (event) => note(event.reason));
addEventListener("securitypolicyviolation", (event) => note(event.blockedURI));
console.error = console.warn = (...parts) => note(parts.join(" "));
</script>"""

CHOOSE = """<script>
const box = document.getElementById("policy");
const first = setInterval(() => {
  if (document.documentElement.dataset.shown !== box.options[0].value) return;
  clearInterval(first);
  box.selectedIndex = 1;
  box.dispatchEvent(new Event("change"));
}, 50);
</script>"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of two policies, small but with everything that a chart can show."""
    nodes = tuple(
        Node(
            name=f"n{i}",
            allocatable={"cpu": 2000, "memory": 8 * GIB} | ({"nvidia.com/gpu": 1} if i else {}),
            price_usd_per_h=1.0,
        )
        for i in range(2)
    )
    arrivals = [
        Arrival(
            float(i),
            Workflow(
                id=f"w{i}",
                tasks=tuple(
                    Task(id=f"t{j}", runtime_s=10.0 + i + j, request={"cpu": 1000})
                    for j in range(3)
                ),
                priority=i % 4,  # type: ignore[arg-type]
                deadline_s=60,
            ),
        )
        for i in range(12)
    ]
    cluster = Cluster(name="small", nodes=nodes)
    policies = [fifo.POLICY, sjf.POLICY]
    found = compare(lambda seed: arrivals, cluster, policies, Scenario(), [0, 1], "fifo")
    runs = {rule.name: Simulation(arrivals, cluster, seed=0).run(rule) for rule in policies}
    folder = tmp_path_factory.mktemp("report")
    return write_report(runs, found.to_json(), folder).read_text("utf-8")


def with_scripts(text: str, first: str, last: str = "") -> str:
    """The page with a script before all of its own and one after them."""
    head, body = text.split("<head>", 1)
    body, end = body.rsplit("</body>", 1)
    return f"{head}<head>{first}{body}{last}</body>{end}"


def rendered(text: str, folder: Path, width: int = 1280) -> str:
    """The document as it is once all scripts have run."""
    (folder / "page.html").write_text(text, encoding="utf-8")
    assert CHROMIUM is not None
    result = subprocess.run(
        [
            *(CHROMIUM, *OPTIONS),
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},1000",
            (folder / "page.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return result.stdout


def attribute(document: str, name: str) -> str | None:
    found = re.search(rf'<html[^>]*\bdata-{name}="([^"]*)"', document)
    return found and found[1]


def options(text: str) -> list[str]:
    """Policies to choose from."""
    found = re.findall(r"<option>(\w+)</option>", text)
    assert sorted(found) == ["fifo", "sjf"]
    return found


def drawn(document: str) -> dict[str, str]:
    """What stands in the place of each chart: `svg`, `canvas` or nothing."""
    places = re.split(r'<div class="chart', document)[1:]
    kinds = {}
    for place in places:
        name = re.search(r'id="(\w+)"', place)
        kind = re.search(r"<(svg|canvas)\b", place.split("</figure>")[0])
        assert name is not None
        kinds[name[1]] = kind[1] if kind else ""
    return kinds


CHARTS = {
    "jct": "svg",
    "deadlines": "svg",
    "cost": "svg",
    "wait": "svg",
    "use": "canvas",
    "gantt": "canvas",
}


@pytest.mark.parametrize("width", [1280, 500])
def test_every_chart_appears_without_a_fault(report: str, tmp_path: Path, width: int) -> None:
    document = rendered(with_scripts(report, WATCH), tmp_path, width)
    assert attribute(document, "faults") is None
    assert drawn(document) == CHARTS
    assert attribute(document, "shown") == options(report)[0]


def test_choosing_a_policy_draws_its_charts(report: str, tmp_path: Path) -> None:
    document = rendered(with_scripts(report, WATCH, CHOOSE), tmp_path)
    assert attribute(document, "faults") is None
    chosen = options(report)[1]
    assert attribute(document, "shown") == chosen
    assert drawn(document) == CHARTS
    notes = re.findall(r'<figcaption id="(?:use|gantt)-note">(\w+):', document)
    assert notes == [chosen, chosen]


def test_a_fault_would_be_seen(report: str, tmp_path: Path) -> None:
    broken = '<script src="https://example.com/x.js"></script><script>nothing.at.all()</script>'
    document = rendered(with_scripts(report, WATCH, broken), tmp_path)
    faults = attribute(document, "faults")
    assert faults is not None
    assert "nothing is not defined" in faults
    assert "https://example.com/x.js" in faults
