"""Reading and writing files: the one place that touches the disk for workloads and settings.

Reads plain and gzipped text with a size limit, parses YAML and JSON into plain objects, and
writes results so that a failure leaves nothing half-written.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import yaml

from dagsail.domain.errors import FormatError, OutputError

MAX_FILE_BYTES = 512 * 1024**2
_GZIP_MAGIC = b"\x1f\x8b"


def read_text(path: Path) -> str:
    """The text of a plain or gzipped UTF-8 file.

    Raises:
        FormatError: if it is missing, a directory, empty, truncated, binary or too large.
    """
    try:
        with open(path, "rb") as raw:
            head = raw.read(2)
        opener = gzip.open if head == _GZIP_MAGIC else open
        with opener(path, "rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise FormatError(f"{path}: is a directory; name a file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{path}: truncated or damaged gzip file ({error})") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FormatError(f"{str(path)!r}: cannot be read ({reason})") from None
    if len(data) > MAX_FILE_BYTES:
        raise FormatError(f"{path}: larger than {MAX_FILE_BYTES // 1024**2} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 text (byte {error.start})") from None
    if "\0" in text:
        raise FormatError(f"{path}: binary data, not text")
    if not text.strip():
        raise FormatError(f"{path}: the file is empty")
    return text


def parse_json(text: str, source: str) -> Any:
    """One JSON document; `NaN` and `Infinity` are refused.

    Raises:
        FormatError: with line and column of the first fault.
    """
    try:
        return json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicates
        )
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{source}:{error.lineno}:{error.colno}: not valid JSON ({error.msg})"
        ) from None
    except ValueError as error:
        raise FormatError(f"{source}: {error}") from None
    except RecursionError:
        raise FormatError(f"{source}: nested too deeply") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON allows; numbers must be finite")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {key[:80]!r} occurs twice in one object")
            seen.add(key)
    return values


class _StrictLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe YAML that refuses duplicate keys and reads dates as text."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key_node, _ in node.value:
                if not isinstance(key_node, yaml.ScalarNode) or key_node.value == "<<":
                    continue
                if key_node.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key '{key_node.value}' occurs twice", key_node.start_mark
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep=deep)


_StrictLoader.add_constructor(
    "tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node)
)
# YAML 1.1 reads a lone "=" as a value token, for which the safe loader has no constructor.
_StrictLoader.add_constructor(
    "tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node)
)


_StrictLoader.add_constructor(
    "tag:yaml.org,2002:set", lambda loader, node: _refuse_tag(node, "set")
)


def _refuse_tag(node: Any, name: str) -> None:
    raise yaml.constructor.ConstructorError(
        None, None, f"a {name} is not allowed here; write a list", node.start_mark
    )


def parse_yaml(text: str, source: str) -> list[Any]:
    """All non-empty documents of a YAML stream.

    Raises:
        FormatError: with line and column of the first fault.
    """
    try:
        documents = list(yaml.load_all(text, Loader=_StrictLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        problem = error.problem or error.context or "syntax error"
        raise FormatError(f"{source}{place}: not valid YAML ({problem})") from None
    except (yaml.YAMLError, ValueError) as error:
        first_line = str(error).splitlines()[0]
        raise FormatError(f"{source}: not valid YAML ({first_line})") from None
    except RecursionError:
        raise FormatError(f"{source}: nested too deeply") from None
    return [document for document in documents if document is not None]


@contextlib.contextmanager
def writing(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open `path` for writing; it appears only when the block ends without an error.

    Raises:
        OutputError: if it cannot be written there.
    """
    try:
        if path.is_dir():
            raise OutputError(f"{path}: is a directory; name a file")
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error})") from None
    try:
        encoding = None if "b" in mode else "utf-8"
        with os.fdopen(handle, mode, encoding=encoding) as stream:
            yield stream
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def check_writable(path: Path) -> None:
    """Refuse early, before minutes of work, an output that cannot be written.

    Raises:
        OutputError: if `path` is a directory or its folder does not exist or is read-only.
    """
    try:
        with writing(path.with_name(f"{path.name}.check")) as stream:
            stream.write("")
        path.with_name(f"{path.name}.check").unlink()
    except OutputError as error:
        raise OutputError(str(error).replace(f"{path.name}.check", path.name)) from None
    if path.is_dir():
        raise OutputError(f"{path}: is a directory; name a file")
