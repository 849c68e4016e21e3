"""`bundle`: what a bundle holds, and whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dagsail.commands.options import as_json
from dagsail.commands.output import write_json

if TYPE_CHECKING:
    from dagsail.policies.neural.bundle import Bundle

_folder = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))


@click.group(short_help="Verify or show a bundle.")
def bundle() -> None:
    """Verify or show a bundle, the folder that 'dagsail train' makes.

    \b
    Examples:
      dagsail bundle verify mine/current
      dagsail bundle show mine/current
      dagsail bundle use mine/bundles/mine-0123456789ab mine/current
    """  # noqa: D301 (\b keeps lines as they are)


@bundle.command(short_help="Check every file of a bundle.")
@_folder
@as_json
def verify(*, folder: Path, as_json: bool) -> None:
    """Check that a bundle is whole, unchanged and made for this version, and that it loads."""
    found = _load(folder)
    if as_json:
        write_json({"valid": True, **_described(found)}, "-")
        return
    click.echo(f"{folder}: valid ({found.name}, {found.digest[:12]})")


@bundle.command(short_help="Show what a bundle holds.")
@_folder
@as_json
def show(*, folder: Path, as_json: bool) -> None:
    """Show what a bundle was made for, how it was trained, and how it fared."""
    found = _load(folder)
    if as_json:
        write_json(_described(found), "-")
        return
    click.echo(found.card.rstrip())
    click.echo(f"\nFolder: {found.folder}\nDigest: {found.digest}")


@bundle.command(short_help="Let a link point to a bundle.")
@_folder
@click.argument("link", metavar="LINK", type=click.Path(path_type=Path))
def use(*, folder: Path, link: Path) -> None:
    """Let the symbolic link LINK point to a bundle, at once; a bad bundle changes nothing."""
    from dagsail.policies.neural.bundle import make_current

    _load(folder)
    made = make_current(link, folder)
    click.echo(f"{link} -> {made.folder} ({made.digest[:12]})")


def _load(folder: Path) -> Bundle:
    from dagsail.policies.neural.bundle import read_bundle
    from dagsail.policies.neural.model import Model

    found = read_bundle(folder)
    Model(found)
    return found


def _described(bundle: Bundle) -> dict[str, Any]:
    import msgspec

    return {
        "name": bundle.name,
        "digest": bundle.digest,
        "folder": str(bundle.folder),
        "spec": msgspec.to_builtins(bundle.spec),
    }
