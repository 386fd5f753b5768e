"""Schemas in files: ``7.avsc`` by id, ``orders-value.avsc`` by subject, and others by the names that these refer to."""

from __future__ import annotations

import os
from pathlib import Path

from kwiresniff_values.limits import MAX_FILES, MAX_SCHEMA_BYTES
from kwiresniff_values.problems import Unusable
from kwiresniff_values.references import references_in
from kwiresniff_values.schemas import Schema

#: What the endings of files say of their schemas.
KINDS = {".avsc": "AVRO", ".proto": "PROTOBUF", ".desc": "PROTOBUF", ".pb": "PROTOBUF", ".json": "JSON"}
_TEXTS = (".avsc", ".proto", ".json")


class Folder:
    """A folder of schemas and those below it, or a single file. The constructor raises Unusable."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._files: dict[str, Path] = {}
        if self._path.is_file():
            if self._path.suffix not in KINDS:
                raise Unusable(f"{path} is no schema; its name must end in {', '.join(KINDS)}")
            self._add(self._path, self._path.name)
        elif self._path.is_dir():
            self._scan()
        else:
            raise Unusable(f"schemas {path}: no such file or folder")

    def _scan(self) -> None:
        count = 0
        for folder, folders, files in os.walk(self._path, onerror=_refuse):
            folders.sort()
            named = sorted(name for name in files if Path(name).suffix in KINDS)
            for name in named:
                file = Path(folder, name)
                self._add(file, file.relative_to(self._path).as_posix())
            count += len(named)
            if count > MAX_FILES:
                raise Unusable(f"schemas {self._path}: more than {MAX_FILES} files")

    def _add(self, file: Path, relative: str) -> None:
        """By its path, its name and its name without the ending; the first of a name counts."""
        for name in (relative, file.name, file.stem):
            self._files.setdefault(name, file)

    def by_id(self, by: str, id: str) -> Schema | None:
        """The file that is called as the id, whatever kind of id it is."""
        return self.by_name(id)

    def by_name(self, name: str) -> Schema | None:
        """A file by its path, its name, or its name without the ending; the last part of a name with dots will do."""
        file = self._files.get(name) or self._files.get(name.rpartition(".")[2])
        return None if file is None else self._read(file)

    def _read(self, file: Path) -> Schema:
        try:
            with file.open("rb") as stream:
                data = stream.read(MAX_SCHEMA_BYTES + 1)
            if len(data) > MAX_SCHEMA_BYTES:
                raise Unusable(f"schema {file} has more than {MAX_SCHEMA_BYTES} bytes")
            text = data.decode("utf-8") if file.suffix in _TEXTS else data
        except UnicodeDecodeError:
            raise Unusable(f"schema {file} is no text in UTF-8") from None
        except OSError as error:
            raise Unusable(f"schema {file} cannot be read: {error.strerror}") from None
        kind = KINDS[file.suffix]
        return Schema(file.stem, kind, text, self._imports(kind, text), self.by_name)

    def _imports(self, kind: str, text: str | bytes) -> tuple[str, ...]:
        """The files that a .proto file or a JSON Schema refers to, as far as they are here; Avro's are looked for."""
        if kind == "AVRO" or isinstance(text, bytes):
            return ()
        return tuple(name for name in references_in(kind, text) if self._files.get(name))


def _refuse(error: OSError) -> None:
    raise Unusable(f"schemas {error.filename} cannot be read: {error.strerror}; its schemas would be missing")
