"""Loading plugins, and surviving them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.errors import PluginError
from kwiresniff.model import Problem
from kwiresniff.plugins import MAX_FAILURES, MAX_JSON_VALUES, Hooks, Plugin, Plugins
from kwiresniff.plugins.loading import load_plugins
from tests.support.command import Done
from tests.support.exchanges import exchange
from tests.support.package import HOME
from tests.support.paths import CAPTURES


def loaded(register: Callable[[Hooks], Any]) -> Plugins:
    plugin = Plugin("mine", "here")
    register(Hooks(plugin))
    return Plugins([plugin])


def records(*values: bytes | None) -> list[dict[str, Any]]:
    return [{"records": [{"key": b"k", "value": value, "headers": []} for value in values]}]


def test_what_a_decoder_returns_stands_beside_the_value() -> None:
    plugins = loaded(lambda hooks: hooks.value_decoder(lambda topic, part, data, headers: [topic, part, len(data)]))
    batches = records(b"abc", None, b"")
    plugins.decode_records("orders", batches)
    first, tombstone, empty = batches[0]["records"]
    assert first["value"] == b"abc"
    assert first["decoded"] == {
        "key": {"plugin": "mine", "data": ["orders", "key", 1]},
        "value": {"plugin": "mine", "data": ["orders", "value", 3]},
    }
    assert list(tombstone["decoded"]) == list(empty["decoded"]) == ["key"]


def test_a_decoder_that_passes_leaves_the_record_alone() -> None:
    plugins = loaded(lambda hooks: hooks.value_decoder(lambda *_: None))
    batches = records(b"abc")
    plugins.decode_records(None, batches)
    assert "decoded" not in batches[0]["records"][0]


def test_what_a_decoder_returns_goes_before_what_the_record_is_known_to_hold() -> None:
    plugins = loaded(lambda hooks: hooks.value_decoder(lambda topic, part, *_: 1 if part == "value" else None))
    batches = records(b"abc")
    batches[0]["records"][0]["decoded"] = {"key": "known", "value": "known"}
    plugins.decode_records(None, batches)
    assert batches[0]["records"][0]["decoded"] == {"key": "known", "value": {"plugin": "mine", "data": 1}}


def test_the_first_decoder_that_answers_wins() -> None:
    def register(hooks: Hooks) -> None:
        hooks.value_decoder(lambda *_: None)
        hooks.value_decoder(lambda *_: 1)
        hooks.value_decoder(lambda *_: 2)

    assert loaded(register).decode("t", "value", b"x", []) == ("mine", 1)


@pytest.mark.parametrize(
    ("returned", "notes", "problems"),
    [
        (None, [], []),
        ([], [], []),
        (["slow"], [{"plugin": "mine", "message": "slow"}], []),
        ("slow", [{"plugin": "mine", "message": "slow"}], []),
        ({"a": (1, b"x")}, [{"plugin": "mine", "a": [1, b"x"]}], []),
        (Problem("odd", "m"), [], ["odd"]),
        ([Problem("odd", "m"), {"a": 1}], [{"plugin": "mine", "a": 1}], ["odd"]),
    ],
)
def test_an_annotator_adds_notes_and_problems(returned: Any, notes: list[Any], problems: list[str]) -> None:
    given = exchange()
    loaded(lambda hooks: hooks.annotator(lambda _: returned)).annotate(given)
    assert list(given.notes) == notes
    assert [problem.code for problem in given.problems] == problems


def deep() -> Any:
    value: Any = 0
    for _ in range(5_000):
        value = [value]
    return value


def raising(error: BaseException) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise error

    return function


class Mute(Exception):
    """An error whose text is an error."""

    def __str__(self) -> str:
        raise LookupError


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (raising(ValueError("oops")), "ValueError: oops"),
        (raising(SystemExit(3)), "SystemExit: 3"),
        (raising(RecursionError("deep")), "RecursionError: deep"),
        (raising(GeneratorExit()), "GeneratorExit"),
        (raising(Mute()), "Mute, which does not say why"),
        (lambda *_: {"a": object()}, "object has no JSON form"),
        (lambda: None, "TypeError"),
    ],
)
def test_a_failure_is_told_once_and_ends_in_being_switched_off(function: Callable[..., Any], says: str) -> None:
    plugins = loaded(lambda hooks: [hooks.value_decoder(function, "d"), hooks.annotator(function, "a")])
    for _ in range(MAX_FAILURES + 5):
        assert plugins.decode("t", "value", b"x", []) is None
        plugins.annotate(exchange())
    problems = plugins.take_problems()
    assert sorted(problem.code for problem in problems) == ["plugin_disabled"] * 2 + ["plugin_failed"] * 2
    assert all(problem.message.startswith("plugin mine: ") for problem in problems)
    assert says in problems[0].message
    assert [hook.failures for hook in (*plugins.decoders, *plugins.annotators)] == [MAX_FAILURES] * 2
    assert plugins.take_problems() == []


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param({"a": deep()}, "nested deeper than 64 levels", id="deep"),
        pytest.param("x" * (256 * MAX_JSON_VALUES), "of more than 100000 values", id="long"),
        pytest.param([[]] * MAX_JSON_VALUES, "of more than 100000 values", id="many", marks=pytest.mark.slow),
    ],
)
def test_an_answer_that_is_too_much_is_left_out_and_told_once_but_is_no_failure(answer: Any, says: str) -> None:
    """Whoever writes the records must not be able to switch a plugin off."""
    given = [answer] * (MAX_FAILURES + 5) + ["fine"]
    decoded, noted = iter(given), iter(given)
    plugins = loaded(
        lambda hooks: [
            hooks.value_decoder(lambda *_: next(decoded), "d"),
            hooks.annotator(lambda _: [{"note": next(noted)}], "a"),
        ]
    )
    batches = records(*[b"x"] * (MAX_FAILURES + 6))
    for record in batches[0]["records"]:
        del record["key"]
    plugins.decode_records("t", batches)
    assert [record.get("decoded") for record in batches[0]["records"]] == [
        *[None] * (MAX_FAILURES + 5),
        {"value": {"plugin": "mine", "data": "fine"}},
    ]
    for _ in given:
        seen = exchange()
        plugins.annotate(seen)
    assert seen.notes == [{"plugin": "mine", "note": "fine"}]
    problems = plugins.take_problems()
    assert [problem.code for problem in problems] == ["plugin_answer_too_large"] * 2
    assert all(says in problem.message for problem in problems)
    assert [hook.failures for hook in (*plugins.decoders, *plugins.annotators)] == [0, 0]


def test_an_annotator_that_does_not_end_is_left_at_that() -> None:
    plugins = loaded(lambda hooks: hooks.annotator(lambda _: itertools.repeat("again")))
    seen = exchange()
    plugins.annotate(seen)
    assert list(seen.notes) == []
    (problem,) = plugins.take_problems()
    assert problem.code == "plugin_answer_too_large" and "more than 1000 notes" in problem.message


@pytest.mark.parametrize(
    "wrong",
    [
        Problem(5, "m"), Problem("odd", None), Problem("odd", "m", "x"), Problem("odd", "m", path=3),  # type: ignore[arg-type]
        Problem("odd", "m", details=3), Problem("odd", "m", details={"a": object()}),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_a_problem_that_is_none_is_the_plugin_s_failure(wrong: Problem) -> None:
    """What would end the command when the problem is written."""
    plugins = loaded(lambda hooks: hooks.annotator(lambda _: [wrong]))
    seen = exchange()
    plugins.annotate(seen)
    assert seen.problems == []
    assert [problem.code for problem in plugins.take_problems()] == ["plugin_failed"]


def test_answers_about_one_record_set_are_bounded_together() -> None:
    """Each is small enough; what comes after a million values is left out."""
    plugins = loaded(lambda hooks: hooks.value_decoder(lambda *_: [None] * 99_999))
    batches = records(*[b"x"] * 12)
    plugins.decode_records("t", batches)
    decoded = [part for record in batches[0]["records"] for part in record.get("decoded", {})]
    assert len(decoded) == 10
    plugins.decode_records("t", batches := records(b"x"))
    assert "decoded" in batches[0]["records"][0]
    assert [problem.code for problem in plugins.take_problems()] == ["plugin_answer_too_large"]


def test_one_that_fails_does_not_stop_the_next() -> None:
    plugins = loaded(lambda hooks: [hooks.value_decoder(raising(ValueError())), hooks.value_decoder(lambda *_: 5)])
    assert plugins.decode("t", "value", b"x", []) == ("mine", 5)


def test_an_interrupt_is_not_swallowed() -> None:
    plugins = loaded(lambda hooks: hooks.annotator(raising(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt):
        plugins.annotate(exchange())


def test_a_file_is_loaded_and_says_what_it_adds(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "def register(hooks):\n"
        "    @hooks.annotator\n"
        "    def look(exchange):\n"
        "        '''Looks.\n\n        Closely.'''\n"
    )
    (plugin,) = load_plugins([str(file)]).loaded
    assert (plugin.name, plugin.origin) == ("mine", str(file))
    assert [(hook.kind, hook.name, hook.summary) for hook in plugin.hooks] == [("annotator", "look", "Looks.")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1/0", "ZeroDivisionError"),
        ("not even python", "SyntaxError"),
        ("import sys; sys.exit(1)", "SystemExit"),
        ("x = 1", "has no function register"),
        ("def register(hooks): hooks.nothing()", "AttributeError"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_an_error_with_its_name(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(PluginError) as caught:
        load_plugins([str(file)])
    assert str(file) in str(caught.value)
    assert says in str(caught.value)


def install(folder: Path, target: str) -> None:
    """What an installer leaves behind for a package with an entry point."""
    info = folder / "others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kwiresniff.plugins]\nothers = {target}\n")


def test_an_installed_entry_point_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "installed_plugin")
    (tmp_path / "installed_plugin.py").write_text("def register(hooks): hooks.annotator(lambda exchange: 'hello')")
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins()
    assert [(plugin.name, plugin.origin) for plugin in plugins.loaded] == [("others", "entry point installed_plugin")]
    given = exchange()
    plugins.annotate(given)
    assert given.notes == [{"plugin": "others", "message": "hello"}]


def test_an_entry_point_that_cannot_be_loaded_is_only_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "no_such_module_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins()
    assert plugins.loaded == []
    assert [problem.code for problem in plugins.take_problems()] == ["plugin_failed"]


def test_notes_reach_the_json(tmp_path: Path) -> None:
    from kwiresniff.export.encode import json_line
    from kwiresniff.export.json_objects import exchange_json

    given = exchange()
    loaded(lambda hooks: hooks.annotator(lambda _: {"raw": b"\xff"})).annotate(given)
    assert json.loads(json_line(exchange_json(given)))["notes"] == [{"plugin": "mine", "raw": {"base64": "/w=="}}]


def test_a_folder_names_all_plugins_in_it(tmp_path: Path) -> None:
    """In the order of their names, without those that begin with an underscore; none is a mistake."""
    with pytest.raises(PluginError, match="no Python file in this folder"):
        load_plugins([str(tmp_path)])
    for name in ("two.py", "one.py", "_helper.py", "notes.txt"):
        (tmp_path / name).write_text("def register(hooks): pass\n")
    assert [plugin.name for plugin in load_plugins([str(tmp_path)]).loaded] == ["one", "two"]


def test_a_plugin_may_have_dataclasses(tmp_path: Path) -> None:
    """They look for their module among those that were imported."""
    (tmp_path / "with_class.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Row:\n    name: str\n"
        "def register(hooks): hooks.annotator(lambda exchange: Row('a').name)\n"
    )
    (plugin,) = load_plugins([str(tmp_path / "with_class.py")]).loaded
    assert plugin.hooks[0].function(None) == "a"


@pytest.mark.parametrize("first", ["", "."])
def test_nothing_of_the_current_folder_is_an_installed_plugin(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python puts it first on the import path for ``-c`` and in its console."""
    install(tmp_path, "installed_plugin")
    (tmp_path / "installed_plugin.py").write_text("raise SystemExit('this has run')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(first)
    plugins = load_plugins()
    assert (plugins.loaded, plugins.take_problems()) == ([], [])


def test_python_m_takes_no_plugin_from_the_current_folder(tmp_path: Path) -> None:
    """``python -m`` puts that folder first under its own name."""
    install(tmp_path, "installed_plugin")
    (tmp_path / "installed_plugin.py").write_text("def register(hooks): hooks.annotator(print)")
    given = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    arguments = [sys.executable, "-m", "kwiresniff", "plugins", "-o", "json"]
    given["PYTHONPATH"] = str(HOME)
    done = subprocess.run(arguments, cwd=tmp_path, env=given, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_what_plugins_print_is_no_output(tmp_path: Path, kwiresniff: Callable[..., Done]) -> None:
    """Whoever reads the output gets what it would be without them; the words are on stderr."""
    plugin = tmp_path / "chatty.py"
    plugin.write_text(
        "print('loaded')\n"
        "def register(hooks):\n"
        "    hooks.value_decoder(lambda *_: print('decoding'))\n"
        "    hooks.annotator(lambda exchange: print('annotating'))\n"
    )
    capture = str(CAPTURES / "first-look.pcap")
    done = kwiresniff("read", "-o", "jsonl", "--plugin", str(plugin), capture)
    assert done.out == kwiresniff("read", "-o", "jsonl", capture).out
    assert {"loaded", "decoding", "annotating"} <= set(done.err.split())


def test_a_library_that_may_not_be_read_any_more_is_told_from_one_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``sniff`` has given up root, and the libraries lie below a folder of root's."""
    plugin = tmp_path / "mine.py"
    plugin.write_text("import no_such_library\n")
    with pytest.raises(PluginError, match=r"No module named 'no_such_library'\Z"):
        load_plugins([str(plugin)])
    monkeypatch.setattr("sys.prefix", str(tmp_path / "gone"))
    with pytest.raises(PluginError, match=r"'no_such_library'; the user .* may not use .*gone; -Z USER"):
        load_plugins([str(plugin)])
