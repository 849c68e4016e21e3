"""`policies`, `clusters`, `families`: what there is."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from dagsail.commands.options import as_json
from dagsail.commands.output import console, table, warn, write_json

if TYPE_CHECKING:
    from dagsail.domain.cluster import Cluster


@click.command(short_help="List the policies.")
@as_json
def policies(*, as_json: bool) -> None:
    """List the policies, one line each.

    A star marks those that 'demo' and 'compare' use unless told otherwise.

    \b
    Examples:
      dagsail policies
      dagsail policies --json
    """  # noqa: D301 (\b keeps lines as they are)
    from dagsail.policies import DEFAULT_POLICIES, POLICIES

    if as_json:
        entries = [
            {"name": e.name, "summary": e.summary, "default": e.name in DEFAULT_POLICIES}
            for e in POLICIES
        ]
        write_json({"policies": entries}, "-")
        return
    rows = [(e.name, "*" if e.name in DEFAULT_POLICIES else "", e.summary) for e in POLICIES]
    console().print(table("", ("Policy", "", "What it does"), rows))
    click.echo(
        "* default. Use: dagsail simulate FILE --policy heft; dagsail compare FILE --policy all"
    )


@click.command(short_help="List the clusters, or show the nodes of one.")
@click.argument("name", required=False, metavar="[NAME]")
@as_json
def clusters(*, name: str | None, as_json: bool) -> None:
    """List the built-in clusters, or show the nodes of one.

    NAME may also be a file: Dagsail's own YAML (kind: Cluster), openb machines as CSV, or
    Kubernetes Node manifests ('kubectl get nodes -o yaml').

    \b
    Examples:
      dagsail clusters
      dagsail clusters mixed
      dagsail clusters nodes.yaml --json
    """  # noqa: D301 (\b keeps lines as they are)
    from dagsail.clusters.catalog import CLUSTERS, cluster_to_json

    if name is not None:
        from dagsail.compose import cluster_of

        cluster, warnings = cluster_of(name)
        warn(warnings)
        if as_json:
            write_json({**cluster_to_json(cluster), "warnings": list(warnings)}, "-")
        else:
            _show_nodes(cluster)
        return
    if as_json:
        write_json({"clusters": [{"name": e.name, "summary": e.summary} for e in CLUSTERS]}, "-")
        return
    rows = [(entry.name, entry.summary) for entry in CLUSTERS]
    console().print(table("", ("Cluster", "What it is"), rows))
    click.echo("Use: dagsail simulate FILE --cluster edge; your own: --cluster cluster.yaml")


def _show_nodes(cluster: Cluster) -> None:
    """One row for all nodes that differ only in name, zone and rack."""
    from dagsail.domain.units import CPU, MEMORY, format_bytes

    alike = Counter(
        (
            node.type,
            node.allocatable.get(CPU, 0),
            node.allocatable.get(MEMORY, 0),
            f"{node.num_gpus} {node.gpu_model}" if node.num_gpus else "",
            node.speed,
            node.gpu_speed if node.num_gpus else 0.0,
            node.price_usd_per_h,
            "spot" if node.is_spot else "",
        )
        for node in cluster.nodes
    )
    rows = [
        (
            type_,
            str(count),
            f"{cpu / 1000:g}",
            format_bytes(memory),
            gpus,
            f"{speed:g}",
            f"{gpu_speed:g}" if gpu_speed else "",
            f"{price:.2f}",
            spot,
        )
        for (type_, cpu, memory, gpus, speed, gpu_speed, price, spot), count in alike.items()
    ]
    columns = ("Type", ">Nodes", ">Cores", ">Memory", "GPUs", ">Speed", ">GPU speed", ">USD/h", "")
    zones = len({node.zone for node in cluster.nodes})
    title = f"{cluster.name}: {len(cluster.nodes)} nodes, {zones} zone{'s' * (zones != 1)}"
    console().print(table(title, columns, rows))


@click.command(short_help="List the families of workflows.")
@as_json
def families(*, as_json: bool) -> None:
    """List the built-in families of workflows, one line each.

    A family stands wherever a FILE may stand. It is generated anew for each seed, so results do not
    rest on one draw.

    \b
    Examples:
      dagsail families
      dagsail simulate etl:50 --cluster edge
      dagsail compare mixed --load 0.9 --seeds 10
    """  # noqa: D301 (\b keeps lines as they are)
    from dagsail.workloads.families import DEFAULT_COUNTS, FAMILIES

    if as_json:
        entries = [
            {"name": e.name, "summary": e.summary, "default_count": DEFAULT_COUNTS[e.name]}
            for e in FAMILIES
        ]
        write_json({"families": entries}, "-")
        return
    rows = [(entry.name, str(DEFAULT_COUNTS[entry.name]), entry.summary) for entry in FAMILIES]
    console().print(table("", ("Family", ">Workflows", "What it is"), rows))
    click.echo("Use: dagsail simulate etl; another number of workflows: etl:50")
