"""Workers: where simulations are played. Each keeps a bench between calls; calls go to all of them.

What is computed depends on how the work was split, never on who was done first.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

from dagsail.domain.errors import DagsailError, InputError
from dagsail.training.settings import Spec
from dagsail.training.worlds import Worlds

Job = Callable[..., Any]
"""A function of a module, called with the bench and what `call` was given."""


@dataclass(slots=True)
class Bench:
    """What a worker keeps between calls: the settings, the worlds, and what jobs leave there."""

    spec: Spec
    worlds: Worlds
    kept: dict[str, Any] = field(default_factory=dict)


def make_bench(spec: Spec) -> Bench:
    """An empty bench; its process computes on one thread from now on."""
    import torch

    torch.set_num_threads(1)
    return Bench(spec, Worlds(spec.worlds, spec.workloads, spec.clusters))


class Workers(Protocol):
    """So many workers."""

    count: int

    def call(self, job: Job, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """One call on every worker, with its own arguments; the results in order."""
        ...

    def close(self) -> None:
        """End them."""
        ...


class Inline:
    """One bench a worker, all in this process."""

    def __init__(self, spec: Spec) -> None:
        self.count = spec.workers.count
        self._benches = [make_bench(spec) for _ in range(self.count)]

    def call(self, job: Job, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """One after the other."""
        return [job(bench, *given) for bench, given in zip(self._benches, arguments, strict=True)]

    def close(self) -> None:
        """Nothing to end."""


class Processes:
    """Processes of this machine, each with a pipe."""

    def __init__(self, spec: Spec) -> None:
        self.count = spec.workers.count
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes = []
        for _ in range(self.count):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, spec), daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)

    def call(self, job: Job, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """All at the same time.

        Raises:
            DagsailError: what a job raised of its own.
            RuntimeError: if a process has died or a job failed otherwise.
        """
        for pipe, given in zip(self._pipes, arguments, strict=True):
            with contextlib.suppress(BrokenPipeError):  # noticed below
                pipe.send((job, given))
        results = []
        for number, pipe in enumerate(self._pipes):
            try:
                result = pipe.recv()
            except (EOFError, ConnectionError):
                raise RuntimeError(f"worker {number} has ended; is there enough memory?") from None
            results.append(result)
        for result in results:
            if isinstance(result, Exception):
                raise result
        return results

    def close(self) -> None:
        """End them."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(timeout=10)
            process.terminate()


def _serve(pipe: Connection, spec: Spec) -> None:
    bench: Bench | None = None
    while True:
        try:
            job, given = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            bench = make_bench(spec) if bench is None else bench
            result = job(bench, *given)
        except DagsailError as error:
            result = error
        except KeyboardInterrupt:
            return
        except Exception as error:
            result = RuntimeError(f"{type(error).__name__}: {error}")
        with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
            pipe.send(result)


class RayActors:
    """Actors of a Ray cluster, of one CPU each."""

    def __init__(self, spec: Spec) -> None:
        try:
            import ray
        except ModuleNotFoundError:
            raise InputError(
                "workers on Ray need the package ray, which is not installed;"
                " run: pip install 'dagsail[ray]'"
            ) from None
        self.count = spec.workers.count
        self._ray = ray
        address = spec.workers.address
        self._began = not ray.is_initialized()
        if self._began:
            cpus = None if address else self.count
            ray.init(
                address=address,
                num_cpus=cpus,
                include_dashboard=False,
                log_to_driver=False,
                configure_logging=False,
            )
        actor: Any = ray.remote(num_cpus=1)(_Actor)
        self._actors: list[Any] = [actor.remote(spec) for _ in range(self.count)]

    def call(self, job: Job, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """All at the same time.

        Raises:
            DagsailError: what a job raised of its own.
        """
        calls = zip(self._actors, arguments, strict=True)
        results = self._ray.get([actor.run.remote(job, given) for actor, given in calls])
        for result in results:
            if isinstance(result, Exception):
                raise result
        return list(results)

    def close(self) -> None:
        """End them, and the cluster if it was begun here."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._began:
            self._ray.shutdown()


class _Actor:
    def __init__(self, spec: Spec) -> None:
        self._bench = make_bench(spec)

    def run(self, job: Job, given: tuple[Any, ...]) -> Any:
        try:
            return job(self._bench, *given)
        except DagsailError as error:
            return error


@contextlib.contextmanager
def crew(spec: Spec) -> Iterator[Workers]:
    """Workers as the settings say, for the length of a `with` block.

    Raises:
        InputError: if the backend is not installed.
    """
    backends: dict[str, Callable[[Spec], Workers]] = {
        "inline": Inline,
        "processes": Processes,
        "ray": RayActors,
    }
    workers = backends[spec.workers.backend](spec)
    try:
        yield workers
    finally:
        workers.close()


def shared(items: Sequence[Any], count: int) -> list[list[Any]]:
    """Items for each of `count` workers, in turn."""
    return [list(items[index::count]) for index in range(count)]
