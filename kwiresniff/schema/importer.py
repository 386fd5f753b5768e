"""From Kafka's releases to the definition files: read jars or folders, merge them, write our language.

A source is a jar (any jar: the definitions are its ``*.json`` files that are message definitions), a folder that is
searched as a whole, or one definition in a ``.json`` file. Sources are releases, and they count from the oldest to the
newest.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from kwiresniff.errors import SchemaError
from kwiresniff.schema.definition import Message, Versions
from kwiresniff.schema.definition_language import parse, print_messages
from kwiresniff.schema.index import INDEX_NAME, parse_apis, parse_data, print_index
from kwiresniff.schema.kafka_json import read_definition, read_offered
from kwiresniff.schema.merge import merge

#: The largest definition of Kafka is 20 KB; what is bigger in a jar is something else, or a bomb.
MAX_DEFINITION_BYTES = 1 << 20
#: A release has some 200 definitions; the limit is for a folder given by mistake.
MAX_DEFINITIONS = 20_000

#: What APIs were called before their definitions were JSON files (0.8 to 2.1), and by ``ApiKeys``.
EARLIER_NAMES: dict[str, tuple[str, ...]] = {
    "ListOffsets": ("Offsets",),
    "FindCoordinator": ("ConsumerMetadata", "GroupCoordinator"),
    "OffsetForLeaderEpoch": ("OffsetsForLeaderEpoch",),
    "AlterReplicaLogDirs": ("AlterReplicaDir",),
    "ListConfigResources": ("ListClientMetricsResources",),
    "DescribeGroups": ("DescribeGroup",),
    "Metadata": ("TopicMetadata",),
}

#: The file that holds the headers.
HEADERS = "headers"

_RELEASE = re.compile(r"-(\d+(?:\.\d+)+)[^/]*\.jar$")
_DEFINITION = re.compile(r'"validVersions"\s*:')


def read_source(path: Path) -> list[Message]:
    """The messages of a jar, folder or ``.json`` file. Raises SchemaError when it has none."""
    messages = []
    try:
        for name, text in _texts(path):
            if _DEFINITION.search(text):
                messages.append(read_definition(text, f"{path}:{name}"))
    except (OSError, EOFError, UnicodeDecodeError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        give = "give a jar of Kafka, a folder of its JSON or one such file"
        raise SchemaError(f"{path}: cannot be read: {why}; {give}") from error
    if not messages:
        raise SchemaError(f"{path}: no message definitions in it; kafka-clients jars have them from 2.2 on")
    return messages


def read_releases(paths: Sequence[Path]) -> dict[str, dict[int, Versions]]:
    """Offered versions by release and API key, from jars of kafka-clients. Raises SchemaError."""
    found = {}
    for path in paths:
        if path.name.startswith("kafka-clients-") and (release := release_name(path)):
            texts = ((name, text) for name, text in _texts(path) if _DEFINITION.search(text))
            offered = (read_offered(text, f"{path}:{name}") for name, text in texts)
            found[release] = dict(each for each in offered if each is not None)
    return found


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_dir():
        for file in sorted(path.rglob("*.json"))[:MAX_DEFINITIONS]:
            if file.stat().st_size <= MAX_DEFINITION_BYTES:
                yield str(file.relative_to(path)), file.read_text("utf-8")
        return
    if path.suffix == ".json":
        if path.stat().st_size <= MAX_DEFINITION_BYTES:
            yield path.name, path.read_text("utf-8")
        return
    with zipfile.ZipFile(path) as jar:
        names = [info for info in jar.infolist() if info.filename.endswith(".json")]
        for info in names[:MAX_DEFINITIONS]:
            if info.file_size <= MAX_DEFINITION_BYTES:
                yield info.filename, jar.read(info).decode("utf-8")


def release_name(path: Path) -> str:
    """The release a jar's name tells (``4.4.0``), or an empty text."""
    found = _RELEASE.search(path.name)
    return found[1] if found else ""


def in_order_of_age(paths: Sequence[Path]) -> list[Path]:
    """By release number when every name tells one, else in the order given."""
    releases = [release_name(path) for path in paths]
    if not all(releases):
        return list(paths)
    return sorted(paths, key=lambda path: [int(part) for part in release_name(path).split(".")])


def merge_sources(sources: Sequence[Sequence[Message]]) -> dict[str, tuple[Message, ...]]:
    """Definition files by name, each with its messages, merged by API key or name, oldest source first."""
    histories: dict[tuple[str, int | str], list[Message]] = {}
    for source in sources:
        for message in source:
            identity = message.api_key if message.api_key >= 0 else message.name
            histories.setdefault((message.kind, identity), []).append(message)
    names = {key: history[-1].name for (kind, key), history in histories.items() if kind == "request"}
    files: dict[str, list[Message]] = {}
    for (kind, key), history in sorted(histories.items(), key=lambda item: (str(item[0][1]), item[0][0])):
        shipped = [message for message in history if message.versions]
        if not shipped:
            continue
        merged = merge(shipped)
        if kind == "request":
            aliases = {*merged.aliases, *EARLIER_NAMES.get(merged.name, ())}
            merged = merged._replace(aliases=tuple(sorted(aliases)))
        elif kind == "response":
            merged = merged._replace(name=names.get(key, merged.name), aliases=())
        files.setdefault(HEADERS if kind == "header" else merged.name, []).append(merged)
    return {name: tuple(messages) for name, messages in sorted(files.items())}


def read_files(folder: Path) -> list[Message]:
    """The messages of the definition files in ``folder``, none when it holds no index."""
    if not (folder / INDEX_NAME).is_file():
        return []
    index = (folder / INDEX_NAME).read_text("utf-8")
    names = {*(api.name for api in parse_apis(index).values()), *parse_data(index).files.values(), HEADERS}
    files = [folder / f"{name}.txt" for name in sorted(names)]
    return [message for file in files if file.is_file() for message in parse(file.read_text("utf-8"), str(file))]


def write_files(files: dict[str, tuple[Message, ...]], folder: Path) -> None:
    """Write every definition file, and their index, into ``folder``, which is made when it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, messages in files.items():
        (folder / f"{name}.txt").write_text(print_messages(messages), "utf-8")
    (folder / INDEX_NAME).write_text(print_index(files), "utf-8")
