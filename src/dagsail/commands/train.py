"""`train`: a policy of your own, from one file of settings."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dagsail.commands import options
from dagsail.commands.output import console, progress, table, write_json
from dagsail.domain.errors import InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dagsail.training.run import News, Trained

_NEEDED: Final = (
    "torch", "torchrl", "tensorboard", "onnx", "onnxscript", "safetensors", "cma",
)  # fmt: skip


@click.command(short_help="Train a policy of your own.")
@click.argument("config", metavar="CONFIG", type=click.Path(path_type=Path))
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where checkpoints, curves and bundles go.  [default: the name in CONFIG]",
)
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in DIR.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def train(*, config: Path, output: Path | None, resume: bool, as_json: bool) -> None:
    """Train a policy as CONFIG says (kind: Training), and make a bundle of it.

    It is validated on worlds that it is never trained on, and ends early when it no longer gets
    better. DIR/current is the newest bundle: use it wherever a policy is named.

    \b
    Examples:
      dagsail train train.yaml
      dagsail train train.yaml --output mine --resume
      dagsail compare mixed --policy mine/current,scorer,kube-default@1.36
      tensorboard --logdir mine/curves
    """  # noqa: D301 (\b keeps lines as they are)
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise InputError(
            f"training needs the package {missing[0]}, which is not installed;"
            " run: pip install 'dagsail[train]'"
        )
    from dagsail.files import read_text
    from dagsail.training import run
    from dagsail.training.checkpoint import FILE
    from dagsail.training.release import release
    from dagsail.training.settings import read_training

    training = read_training(read_text(config), str(config))
    folder = Path(training.metadata.name) if output is None else output
    run.check(training, folder, resume)
    _make(folder)
    if not resume and (folder / FILE).exists():
        raise OutputError(
            f"{folder}: holds a training already; go on with --resume, or name another --output"
        )
    from torch.utils.tensorboard import SummaryWriter

    curves = SummaryWriter(str(folder / run.CURVES))
    with progress("training") as bar:
        trained = run.train(training, folder, curves, _teller(bar, as_json), resume)
    curves.close()
    bundle = release(training, trained, folder)
    summary = {"bundle": str(bundle.folder), "digest": bundle.digest, "policies": trained.table}
    write_json({**summary, "validations": list(trained.curve)}, folder / "summary.json")
    if as_json:
        write_json({**summary, "validations": list(trained.curve)}, "-")
        return
    _show(trained)
    click.echo(f"Bundle: {bundle.folder}")
    click.echo(f"Use: dagsail compare mixed --policy {folder}/current,scorer,kube-default@1.36")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror})") from None
    options.OutputFolder().convert(str(folder), None, None)


def _teller(bar: Callable[[int, int, str], None], quiet: bool) -> Callable[[News], None]:
    def tell(news: News) -> None:
        bar(news.step, news.steps, news.algorithm)
        if news.validation is None:
            return
        score = 100 * news.validation["score"]
        default = 100 * news.validation["score_default"]
        best = ", best so far" if news.is_best else ""
        line = (
            f"{news.algorithm} {news.step}/{news.steps}: {score:+.2f} % against the preset scorer"
            f" ({default:+.2f} % with the default objective{best}); {_minutes(news.left_s)} left"
        )
        click.echo(line, err=quiet)

    return tell


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _show(trained: Trained) -> None:
    rows = [
        (
            name,
            *(
                f"{100 * row[key]:+.2f} %" if key in row else ""
                for key in ("score", "score_default", "worst_default", "score_drawn")
            ),
        )
        for name, row in trained.table.items()
    ]
    columns = ("Policy", ">All", ">Default objective", ">Its worst world", ">Drawn objectives")
    title = "Validation: composite of the objective against the preset scorer, below 0 is better"
    console().print(table(title, columns, rows))
