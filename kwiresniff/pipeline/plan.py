"""From what the user named to units of work: which files belong together, and how a big source is shared out.

A *source* is a series of files in which connections go on from file to file: what ``tcpdump -C``, ``tcpdump -G`` or
``dumpcap -b`` wrote under one name on one host, or a single file. Connections never cross sources, so the same
addresses and ports in the captures of two hosts stay two connections. A *unit* is what one task does: a source, or
one shard of a source that is too big for one task. Every shard reads the packets of all files and follows only the
connections whose addresses hash to it; reading packets costs a tenth of decoding them, and nothing has to be
shuffled, so one connection may be most of the data and still streams through in bounded memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import takewhile

from kwiresniff.capture.paths import STANDARD_INPUT, expand
from kwiresniff.errors import CaptureError
from kwiresniff.pipeline.deduplication import Filled, LeftOut

#: A source is not split below this share: starting a task and reading the packets once more would cost what it gains.
MIN_SHARD_BYTES = 128 << 20
#: Every shard reads all packets; beyond this many that reading is more work than the decoding it shares out.
MAX_SHARDS = 16
#: A few seconds of decoding.
MIN_TASK_BYTES = 16 << 20
#: With so many for each slot the last ones still even out what is uneven; the driver keeps account of every one.
MAX_TASKS_PER_SLOT = 32

_COMPRESSED = re.compile(r"\.(gz|zst|xz|bz2|lz4)$", re.IGNORECASE)
_DATE = r"(?<!\d)(?:19|20)\d{2}-?(?:0[1-9]|1[0-2])-?(?:[0-2]\d|3[01])"
_TIME = r"\d{2}[:._-]?\d{2}(?:[:._-]?\d{2})?"
#: The marks that rotating programs leave in a name: ``x.pcap3`` (tcpdump -C), ``x_00003_20260102030405.pcap``
#: (dumpcap -b), ``x-2026-01-02T03:04:05.pcap`` or seconds since the epoch (tcpdump -G). A short number before the
#: ending is no such mark: ``broker-1.pcap`` and ``broker-2.pcap`` are two hosts.
_ROTATED = (
    re.compile(r"^(?P<before>.+\.(?:pcapng|pcap|cap|dmp))\d+(?P<after>)$", re.IGNORECASE),
    re.compile(r"^(?P<before>.*)_\d{5}_\d{14}(?P<after>\.\w+)$"),
    re.compile(rf"^(?P<before>.*?){_DATE}(?:[T _.-]?{_TIME})?Z?(?P<after>(?:\.\w+)?)$"),
    re.compile(r"^(?P<before>.*?)(?<!\d)\d{10}(?P<after>(?:\.\w+)?)$"),
)


@dataclass(frozen=True, slots=True)
class File:
    """A capture file as it was when the plan was made. ``named`` tells that the user named it and not its folder.

    ``origin`` is the URI of what ``path`` is a copy of, empty when it is no copy.
    """

    path: str
    size_bytes: int
    modified_ns: int
    named: bool = True
    origin: str = ""

    @property
    def name(self) -> str:
        """The name that the user gave."""
        return self.origin or self.path


@dataclass(frozen=True, slots=True)
class CaptureSeries:
    """Files whose connections go on from one to the next; ``name`` is the file's path, ``*`` where names differ.

    ``left_out`` are connections that another source tells of, ``filled`` is what this one takes from ``others``.
    """

    name: str
    files: tuple[File, ...]
    left_out: tuple[LeftOut, ...] = ()
    filled: tuple[Filled, ...] = ()
    others: tuple[CaptureSeries, ...] = ()

    @property
    def all_files(self) -> list[File]:
        """Every file of this series and of the others that are read with it."""
        return [*self.files, *(file for other in self.others for file in other.files)]

    @property
    def id(self) -> str:
        """A hash of the name, fit for a file name; it does not change from run to run."""
        return blake2b(self.name.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()

    @property
    def size_bytes(self) -> int:
        """The size of the files on disk."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """The work of one task: shard ``shard`` of ``shards`` of a source."""

    source: CaptureSeries
    shard: int = 0
    shards: int = 1

    @property
    def id(self) -> str:
        """The series' id and the shard, fit for a file name; it does not change from run to run."""
        return f"{self.source.id}-{self.shard}of{self.shards}"

    def fingerprint(self, settings: str) -> str:
        """A hash of the unit's files, their sizes and times, and of the settings."""
        return blake2b(f"{asdict(self)!r} {settings}".encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def find_sources(paths: Sequence[str], grouping: str = "series") -> list[CaptureSeries]:
    """The sources that files, folders and patterns hold, by name.

    ``grouping``: ``series`` puts the files of one rotation together, ``file`` makes each file a source of its own,
    ``one`` takes all of them for one series. Raises CaptureError for what is not there and for standard input.
    """
    return grouped(local_files(paths), grouping)


def file_at(path: str) -> File:
    """The file at a path that every worker sees, as it is now; raises CaptureError when there is none."""
    path = os.path.abspath(path)
    try:
        status = os.stat(path)
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror}") from error
    return File(path, status.st_size, status.st_mtime_ns)


def local_files(paths: Sequence[str]) -> list[File]:
    """The files that paths of files, folders and patterns name."""
    files = []
    for one in expand(paths) if paths else ():
        if one.path == STANDARD_INPUT or one.size_bytes is None:
            raise CaptureError(f"{one.path}: a cluster cannot read a stream; write it to a file first")
        path = os.path.abspath(one.path)
        files.append(File(path, one.size_bytes, os.stat(path).st_mtime_ns, not one.folder))
    return files


def grouped(files: Sequence[File], grouping: str) -> list[CaptureSeries]:
    """The sources that files belong to, by name; raises CaptureError when there are none."""
    if not files:
        raise CaptureError("no capture named: give one or more files or folders")
    files = sorted(files, key=lambda file: file.name)
    if grouping == "one":
        return [CaptureSeries(f"{_common_folder(files)}/*", tuple(files))]
    if grouping == "file":
        return [CaptureSeries(file.name, (file,)) for file in files]
    return sorted(_series(files), key=lambda source: source.name)


def _common_folder(files: Sequence[File]) -> str:
    """Of paths and URIs, which ``os.path.commonpath`` would take apart."""
    levels = zip(*(os.path.dirname(file.name).split("/") for file in files), strict=False)
    return "/".join(names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels))


def _series(files: Iterable[File]) -> Iterator[CaptureSeries]:
    groups: dict[str, list[tuple[File, bool]]] = {}
    for file in files:
        folder, name = os.path.split(file.name)
        series, rotated = series_name(name)
        groups.setdefault(os.path.join(folder, series), []).append((file, rotated))
    for name, members in groups.items():
        if any(rotated for _, rotated in members):
            yield CaptureSeries(name, tuple(file for file, _ in members))
        else:  # x.pcap and x.pcap.gz side by side are two captures
            yield from (CaptureSeries(file.name, (file,)) for file, _ in members)


def series_name(name: str) -> tuple[str, bool]:
    """The name of the series a file's name belongs to, and whether the name itself shows that it was rotated."""
    plain = plain_name(name)
    for pattern in _ROTATED:
        match = pattern.match(plain)
        if match:
            mark = "" if pattern is _ROTATED[0] else "*"  # tcpdump -C leaves the first name without a number
            return f"{match['before']}{mark}{match['after']}", True
    return plain, False


def series_path(path: str) -> str:
    """The path of the series that a file belongs to by its name."""
    folder, name = os.path.split(path)
    return os.path.join(folder, series_name(name)[0])


def plain_name(name: str) -> str:
    """A file's name without the ending of a compression."""
    return _COMPRESSED.sub("", name)


def plan(
    sources: Sequence[CaptureSeries], parallelism: int, *, min_shard_bytes: int = MIN_SHARD_BYTES
) -> list[WorkUnit]:
    """Units of all sources, the longest work first; a source bigger than a task's fair share is split."""
    share = max(sum(source.size_bytes for source in sources) // max(parallelism, 1), min_shard_bytes, 1)
    units = []
    for source in sources:
        shards = min(max(round(source.size_bytes / share), 1), MAX_SHARDS, max(parallelism, 1))
        units += [WorkUnit(source, shard, shards) for shard in range(shards)]
    return sorted(units, key=lambda unit: (-unit.source.size_bytes // unit.shards, unit.id))


def share_out(units: Sequence[WorkUnit], parallelism: int) -> list[list[WorkUnit]]:
    """The units in tasks: one each, but small ones together, since a task costs more to start than they take."""
    size = sum(unit.source.size_bytes // unit.shards for unit in units)
    tasks = min(max(size // MIN_TASK_BYTES, parallelism), parallelism * MAX_TASKS_PER_SLOT, len(units))
    return [list(units[at::tasks]) for at in range(tasks)]
