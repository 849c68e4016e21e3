"""What one bundle gives as its objective moves from completion time to cost, beside the rules.

Mean completion time and cost over seeds, each over those of kube-default@1.36 on the same seeds, on
the cluster mixed at load 0.9 with run times that vary by 40 %. `--chart FILE` draws it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

import dagsail
from benchmarks._report import Report, parser
from dagsail.compose import policies_of
from dagsail.policies import DEFAULT_POLICIES

REFERENCE = "kube-default@1.36"
FAMILIES = ("etl", "ai-training", "mixed")
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def policies(kind: str) -> list[str]:
    return [f"{kind}:completion={1 - share:g}+cost={share:g}" for share in SHARES]


def points(family: str, seeds: int) -> list[dict[str, Any]]:
    rules = [name for name in DEFAULT_POLICIES if name not in ("scorer", "learned")]
    names = [*rules, *policies("scorer"), *policies("learned")]
    comparison = dagsail.compare(
        dagsail.read(family),
        policies=policies_of(names),
        scenario=dagsail.scenario(load=0.9, noise=0.4),
        seeds=seeds,
        reference=REFERENCE,
    )
    rows = []
    for name in names:
        jct, cost = (
            comparison.estimate(name, metric).mean / comparison.estimate(REFERENCE, metric).mean
            for metric in ("jct_mean_s", "cost_usd")
        )
        rows.append({"policy": name, "mean JCT": jct, "cost": cost})
    return rows


def draw(tables: dict[str, list[dict[str, Any]]], path: Path) -> None:
    rows = [
        {**row, "family": family, "kind": row["policy"].partition(":")[0], "order": order}
        for family, table in tables.items()
        for order, row in enumerate(table)
    ]
    for row in rows:
        row["kind"] = row["kind"] if row["kind"] in ("scorer", "learned") else "rules"
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("mean JCT:Q", scale=alt.Scale(zero=False)),
        y=alt.Y("cost:Q", scale=alt.Scale(zero=False)),
        color=alt.Color("kind:N"),
    )
    curves = base.transform_filter("datum.kind != 'rules'").mark_line(point=True)
    chart = (curves.encode(order="order:Q") + base.mark_circle(size=40)).properties(
        width=260, height=220
    )
    chart = chart.facet("family:N", columns=3).resolve_scale(x="independent", y="independent")
    path.write_text(vl_convert.vegalite_to_svg(chart.to_json()), encoding="utf-8")


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--seeds", type=int, default=20)
    made.add_argument("--families", nargs="+", default=FAMILIES)
    made.add_argument("--chart", type=Path, help="an .svg to write")
    options = made.parse_args()
    report = Report(as_json=options.json)
    tables = {family: points(family, options.seeds) for family in options.families}
    for family, table in tables.items():
        report.table(f"{family}: over {REFERENCE}, {options.seeds} seeds", table)
    if options.chart:
        draw(tables, options.chart)
    report.close()


if __name__ == "__main__":
    main()
