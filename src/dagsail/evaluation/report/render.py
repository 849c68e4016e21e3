"""Rendering: charts as pictures, and the script that draws them in a page without a network."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from dagsail.domain.errors import OutputError
from dagsail.files import writing

Spec = dict[str, Any]
"""A chart as plain objects, as Vega-Lite reads it."""

_SCALE: Final = 2.0
"""Pixels of a PNG for each of the chart's, so that it stays sharp on fine screens."""


def png(spec: Spec) -> bytes:
    """A picture, drawn without a browser."""
    import vl_convert

    picture: bytes = vl_convert.vegalite_to_png(spec, vl_version=_version(), scale=_SCALE)
    return picture


def svg(spec: Spec) -> bytes:
    """The same as vectors."""
    import vl_convert

    picture: str = vl_convert.vegalite_to_svg(spec, vl_version=_version())
    return picture.encode()


def html(spec: Spec) -> bytes:
    """A page of one chart, which shows details of what lies under the pointer."""
    import vl_convert

    page: str = vl_convert.vegalite_to_html(
        {**spec, "background": "white"}, vl_version=_version(), bundle=True, renderer="canvas"
    )
    return page.encode()


def write_chart(draw: Callable[[], Spec], path: Path) -> None:
    """Draw a chart as `.png`, `.svg` or `.html`, by the suffix of the path.

    Raises:
        OutputError: on another suffix, or if the file cannot be written.
    """
    renderers = {".png": png, ".svg": svg, ".html": html}
    render = renderers.get(path.suffix.lower())
    if render is None:
        raise OutputError(
            f"{path}: a chart cannot be written as '{path.suffix}';"
            f" allowed are {', '.join(renderers)}"
        )
    with writing(path, "wb") as stream:
        stream.write(render(draw()))


@functools.cache
def script() -> str:
    """JavaScript that defines `vegaEmbed`, to stand within a `script` element."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(
        "window.vegaEmbed = vegaEmbed;", vl_version=_version()
    )
    return bundle.replace("</script", r"<\/script")


def _version() -> str:
    """The version that Altair writes, or the newest that can be drawn."""
    import altair as alt
    import vl_convert

    wanted = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    known: list[str] = vl_convert.get_vegalite_versions()
    return wanted if wanted in known else known[-1]
