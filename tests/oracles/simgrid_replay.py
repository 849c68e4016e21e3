"""Runs a fixed plan in SimGrid: reads a plan as JSON on stdin, writes the tasks' ends to stdout.

A program of its own, because Debian installs SimGrid's bindings for the system's Python only.

The plan: `hosts` (name, nic: bytes/s), `tiers` (latency_s, bytes_per_s), `tier` (host x host),
`tasks` (host, seconds, before: tasks that must end first), `flows` (parent, child, bytes) between
hosts, `ahead`: data leaves when its own parent ends, else when all parents of the child have;
`latency`: `link` leaves the latency to SimGrid, which then gives flows of longer latency a smaller
share; `sleep` waits before the flow, so that sharing is max-min whatever the latencies.
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

from simgrid import Actor, Comm, Engine, Host, Semaphore, this_actor

CONFIG = (
    "network/model:CM02",
    "network/TCP-gamma:0",
    "network/bandwidth-factor:1",
    "network/latency-factor:1",
    "network/weight-S:0",
    "network/crosstraffic:0",
    "network/loopback-lat:0",
    "network/optim:Full",  # the default, Lazy, is off by up to 0.6 % where flows have latencies
    "maxmin/precision:1e-9",
    "surf/precision:1e-9",
)
FLOPS = 1e9


def platform(plan: dict[str, Any]) -> str:
    """Hosts, each with a link out and a link in; a link a tier that every flow has alone."""
    parts = []
    hosts = plan["hosts"]
    for host in hosts:
        parts.append(f'<host id="{host["name"]}" speed="{FLOPS}f" core="{len(plan["tasks"])}"/>')
        for way in ("out", "in"):
            parts.append(
                f'<link id="{host["name"]}-{way}" bandwidth="{host["nic"]!r}Bps" latency="0s"/>'
            )
    for number, tier in enumerate(plan["tiers"]):
        latency_s = tier["latency_s"] if plan["latency"] == "link" else 0.0
        parts.append(
            f'<link id="tier{number}" bandwidth="{tier["bytes_per_s"]!r}Bps"'
            f' latency="{latency_s!r}s" sharing_policy="FATPIPE"/>'
        )
    for a, source in enumerate(hosts):
        for b, target in enumerate(hosts):
            if a != b:
                parts.append(
                    f'<route src="{source["name"]}" dst="{target["name"]}" symmetrical="NO">'
                    f'<link_ctn id="{source["name"]}-out"/>'
                    f'<link_ctn id="tier{plan["tier"][a][b]}"/>'
                    f'<link_ctn id="{target["name"]}-in"/></route>'
                )
    return (
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
        f'<platform version="4.1"><zone id="all" routing="Full">{"".join(parts)}</zone></platform>'
    )


class Replay:
    """The tasks and flows as actors that wait for one another."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        tasks = plan["tasks"]
        self.hosts = [Host.by_name(host["name"]) for host in plan["hosts"]]
        self.ends = [0.0] * len(tasks)
        self.after: list[list[int]] = [[] for _ in tasks]
        self.flows: list[list[tuple[int, int]]] = [[] for _ in tasks]
        self.signals = [Semaphore(0) for _ in tasks]
        self.data = [Semaphore(0) for _ in tasks]
        self.incoming: list[list[tuple[int, int]]] = [[] for _ in tasks]
        for child, task in enumerate(tasks):
            for parent in task["before"]:
                self.after[parent].append(child)
        for parent, child, size in plan["flows"]:
            self.incoming[child].append((parent, size))
            self.flows[parent].append((child, size))
        for number, task in enumerate(tasks):
            Actor.create(f"task{number}", self.hosts[task["host"]], self.run_task, number)

    def run_task(self, number: int) -> None:
        """Wait for all that must come before, compute, tell those that wait."""
        task = self.plan["tasks"][number]
        for _ in task["before"]:
            self.signals[number].acquire()
        if not self.plan["ahead"]:
            for parent, size in self.incoming[number]:
                self.send(parent, number, size)
        for _ in self.incoming[number]:
            self.data[number].acquire()
        if task["seconds"] > 0:
            this_actor.execute(task["seconds"] * FLOPS)
        self.ends[number] = Engine.clock
        if self.plan["ahead"]:
            for child, size in self.flows[number]:
                self.send(number, child, size)
        for child in self.after[number]:
            self.signals[child].release()

    def send(self, parent: int, child: int, size: int) -> None:
        """Let the data of one dependency travel on its own."""
        source = self.plan["tasks"][parent]["host"]
        target = self.plan["tasks"][child]["host"]
        name = f"flow{parent}-{child}"
        Actor.create(name, self.hosts[source], self.run_flow, source, target, child, size)

    def run_flow(self, source: int, target: int, child: int, size: int) -> None:
        """Pay the latency if SimGrid does not, then move the bytes."""
        if self.plan["latency"] == "sleep":
            tier = self.plan["tiers"][self.plan["tier"][source][target]]
            this_actor.sleep_for(tier["latency_s"])
        Comm.sendto(self.hosts[source], self.hosts[target], size)
        self.data[child].release()


def main() -> None:
    """Replay the plan on stdin."""
    plan = json.load(sys.stdin)
    arguments = ["replay", *(f"--cfg={setting}" for setting in CONFIG), "--log=root.thres:error"]
    engine = Engine(arguments)
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(platform(plan))
        file.flush()
        engine.load_platform(file.name)
    replay = Replay(plan)
    engine.run()
    json.dump(replay.ends, sys.stdout)


if __name__ == "__main__":
    main()
