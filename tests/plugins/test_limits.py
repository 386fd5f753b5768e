"""Plugins that take too long, hang or crash."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.plugins import Decoded, Hooks, Plugin, PluginOptions, Plugins
from kwiresniff.plugins.loading import load_plugins
from tests.support.command import Done
from tests.support.exchanges import exchange

REAL = str(Path(__file__).parents[2] / "captures" / "first-look.pcap")
MAX_SLOW = 3


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls may use 100 ms and wait for 400, of isolated decoders for 5 s; three may be slower."""
    for module, name, value in (
        ("calls", "CALL_MS", 100),
        ("calls", "FIRST_CALL_MS", 100),
        ("timing", "WAIT_MS", 400),
        ("isolated", "CALL_MS", 200),
        ("isolated", "WAIT_MS", 5_000),
        ("calls", "MAX_SLOW_CALLS", MAX_SLOW),
        ("hooks", "MAX_SLOW_CALLS", MAX_SLOW),
    ):
        monkeypatch.setattr(f"kwiresniff.plugins.{module}.{name}", value)


def loaded(folder: Path, code: str) -> Plugins:
    file = folder / "mine.py"
    file.write_text(code)
    return load_plugins([str(file)])


SLOW = """
import time
def decode(topic, part, data, headers):
    while data == b"slow":
        {step}
    return data.decode()
def register(hooks):
    hooks.value_decoder(decode)
    hooks.annotator(lambda exchange: time.sleep(60), "sleeper")
"""


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("step", ["pass", "time.sleep(60)", "__import__('re').match('(a+)+$', 'a' * 40 + 'b')"])
def test_a_decoder_that_takes_too_long_is_interrupted_named_and_in_the_end_switched_off(
    step: str, tmp_path: Path
) -> None:
    """Other values are decoded meanwhile; what it takes together is bounded."""
    plugins = loaded(tmp_path, SLOW.format(step=step))
    begun = time.monotonic()
    for _ in range(MAX_SLOW):
        assert plugins.decode("t", "value", b"quick", []) == ("mine", "quick")
        assert plugins.decode("t", "value", b"slow", []) is None
        plugins.annotate(exchange())
    assert time.monotonic() - begun < 10
    assert plugins.decode("t", "value", b"quick", []) is None
    codes = [problem.code for problem in plugins.take_problems()]
    assert codes == ["plugin_too_slow"] * 2 + ["plugin_disabled"] * 2


@pytest.mark.usefixtures("impatient")
def test_one_that_catches_everything_is_interrupted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm comes until the function has returned, which after one alarm it never would."""
    code = """
class Stubborn:
    caught = 0
    def __call__(self, *_):
        while self.caught < 3:
            try:
                while True: sum(range(9))
            except BaseException:
                self.caught += 1
        return "at last"
def register(hooks):
    hooks.value_decoder(Stubborn())
"""
    monkeypatch.setattr("kwiresniff.plugins.timing.WAIT_MS", 60_000)  # by use alone, which does not depend on the load
    plugins = loaded(tmp_path, code)
    # An alarm between two attempts to catch one ends it without an answer.
    assert plugins.decode("t", "value", b"x", []) in (("mine", "at last"), None)
    assert [problem.code for problem in plugins.take_problems()] == ["plugin_too_slow"]


@pytest.mark.usefixtures("impatient")
def test_no_alarm_comes_after_a_call(tmp_path: Path) -> None:
    """It would end whatever runs then."""
    plugins = loaded(tmp_path, SLOW.format(step="pass"))
    assert plugins.decode("t", "value", b"quick", []) == ("mine", "quick")
    time.sleep(0.2)


@pytest.mark.usefixtures("impatient")
def test_one_that_waits_for_a_registry_is_left_in_peace(tmp_path: Path) -> None:
    """It uses no processor, and has longer."""
    plugins = loaded(tmp_path, SLOW.format(step="time.sleep(0.2); return 'answered'"))
    assert plugins.decode("t", "value", b"slow", []) == ("mine", "answered")
    assert plugins.take_problems() == []


def test_in_another_thread_nothing_is_interrupted(tmp_path: Path) -> None:
    """Signals come to the main thread; decoding works all the same."""
    plugins = loaded(tmp_path, SLOW.format(step="pass"))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(plugins.decode("t", "value", b"quick", [])))
    thread.start()
    thread.join()
    assert found == [("mine", "quick")]


def test_one_that_is_slow_on_average_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And goes on: whoever asked for it may want to wait."""
    monkeypatch.setattr("kwiresniff.plugins.calls.NAMED_MS", 0)
    monkeypatch.setattr("kwiresniff.plugins.calls.SLOW_MS", 0)
    plugins = loaded(tmp_path, SLOW.format(step="pass"))
    for _ in range(3):
        assert plugins.decode("t", "value", b"quick", []) == ("mine", "quick")
    (problem,) = plugins.take_problems()
    assert problem.code == "plugin_too_slow"
    assert "for 1 calls so far" in problem.message


ISOLATED = """
import os, signal, time
from kwiresniff.plugins import Decoded, DoesNotFit

class Decoder:
    names = {}
    def learn(self, topic, key, value):
        self.names[key] = value.decode()
    def __call__(self, topic, part, data, headers):
        print("chatter")
        if data == b"crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if data == b"hang":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGTERM, signal.SIGINT})
            time.sleep(60)
        if data == b"spin":
            sum(range(10**12))  # a loop in C, which asks for no signals
        if data == b"raise":
            raise LookupError("no such schema")
        if data == b"misfit":
            raise DoesNotFit("s", "w")
        if data == b"large":
            return [0] * 200_000
        if data == b"big":
            return {"n": 2**80, "text": "x" * 100_000}
        if data == b"nothing":
            return None
        if data == b"bytes":
            return [b"text", b"\\xff"]
        found = [topic, part, len(data), headers[0]["value"].decode(), os.getpid()]
        return Decoded(found, self.names.get(b"id"), "own")

def register(hooks):
    hooks.annotator(lambda exchange: None)
    hooks.value_decoder(Decoder(), isolated=True)
"""
HEADERS = [{"key": "a", "value": b"b"}]


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugins]:
    plugins = loaded(tmp_path_factory.mktemp("apart"), ISOLATED)
    yield plugins
    plugins.close()


def test_an_isolated_decoder_answers_from_another_process(apart: Plugins) -> None:
    """What it prints is no answer; one process answers all."""
    pids = set()
    for size in (1, 300_000):
        found = apart.decode("orders", "key", b"k" * size, HEADERS)
        assert found is not None
        name, (data, schema, form) = found
        assert (name, data[:4], schema, form) == ("mine", ["orders", "key", size, "b"], None, "own")
        pids.add(data[4])
    assert len(pids) == 1
    assert pids != {os.getpid()}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"nothing", None),
        (b"bytes", ["text", {"base64": "/w=="}]),
        (b"big", {"n": 2**80, "text": "x" * 100_000}),
    ],
)
def test_answers_of_an_isolated_decoder_are_those_that_json_has(apart: Plugins, data: bytes, found: Any) -> None:
    """Bytes are as the output writes them."""
    assert apart.decode("t", "value", data, HEADERS) == (None if found is None else ("mine", found))


def test_errors_of_an_isolated_decoder_are_its_errors(tmp_path: Path) -> None:
    """With their class and their text; a misfit is none."""
    plugins = loaded(tmp_path, ISOLATED)
    refused: list[Any] = []
    for data in (b"misfit", b"raise", b"large"):
        assert plugins.decode("t", "value", data, HEADERS, refused=refused) is None
    assert [(name, error.schema, error.why) for name, error in refused] == [("mine", "s", "w")]
    failed, large = plugins.take_problems()
    assert "LookupError: no such schema" in failed.message
    assert large.code == "plugin_answer_too_large"
    plugins.close()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"crash", "plugin_failed"),
        (b"spin", "plugin_too_slow"),
        pytest.param(b"hang", "plugin_too_slow", marks=pytest.mark.slow),
    ],
)
def test_an_isolated_decoder_that_crashes_or_hangs_is_ended_and_started_again(
    data: bytes, code: str, tmp_path: Path
) -> None:
    """With the schemas that it has learned, whatever code it hangs in, and though it blocks signals."""
    plugins = loaded(tmp_path, ISOLATED)
    plugins.learn("_schemas", b"id", b"orders-value")
    assert plugins.decode("t", "value", b"before", HEADERS) is not None
    assert plugins.decode("t", "value", data, HEADERS) is None
    assert [problem.code for problem in plugins.take_problems()] == [code]
    _, found = plugins.decode("t", "value", b"after", HEADERS) or ("", None)
    assert isinstance(found, Decoded)
    assert found.schema == "orders-value"
    plugins.close()


CLUSTERS = """
class Decoder:
    names = {}
    def learn(self, topic, key, value):
        self.names[self.node] = value.decode()
    def enter(self, node, scope):
        self.node, self.scope = node, scope
    def __call__(self, topic, part, data, headers):
        if data == b"crash":
            __import__("os")._exit(7)
        return [name for node, name in self.names.items() if self.scope(node) == self.scope(self.node)]

def register(hooks):
    hooks.value_decoder(Decoder(), isolated=ISOLATED)
"""


@pytest.mark.parametrize("isolated", [True, False])
def test_an_isolated_decoder_is_told_the_clusters_like_any_other(isolated: bool, tmp_path: Path) -> None:
    """As they are known when it asks, and with what it has learned, also when it is started again."""
    plugins = loaded(tmp_path, CLUSTERS.replace("ISOLATED", str(isolated)))
    scopes = {0: 0, 1: 1, 2: 2}
    for node, name in enumerate((b"a", b"b", b"c")):
        plugins.enter(node, scopes.__getitem__)
        plugins.learn("_schemas", b"k", name)

    def found(node: int) -> Any:
        plugins.enter(node, scopes.__getitem__)
        return plugins.decode("t", "value", b"x", [])

    assert [found(node) for node in scopes] == [("mine", ["a"]), ("mine", ["b"]), ("mine", ["c"])]
    scopes[2] = 0  # two brokers turn out to be of one cluster
    assert [found(node) for node in scopes] == [("mine", ["a", "c"]), ("mine", ["b"]), ("mine", ["a", "c"])]
    if isolated:
        assert plugins.decode("t", "value", b"crash", []) is None
        assert [found(node) for node in (1, 2)] == [("mine", ["b"]), ("mine", ["a", "c"])]
        assert ["code 7" in problem.message for problem in plugins.take_problems()] == [True]
    plugins.close()
    assert plugins.take_problems() == []


LATER = "import sys\nif 'kwiresniff.plugins.worker' in sys.modules: {}\n"


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (
            "import no_such_library",
            "its process says: plugin {}/mine.py cannot be loaded: ModuleNotFoundError: No module",
        ),
        ("__import__('os')._exit(3)", "its process ended with code 3"),
    ],
)
def test_a_plugin_that_its_process_does_not_load_is_switched_off_at_once(there: str, why: str, tmp_path: Path) -> None:
    """In one line, which says why; the next time would be no better."""
    code = LATER.format(there) + "def register(hooks): hooks.value_decoder(lambda *_: 1, 'd', isolated=True)\n"
    plugins = loaded(tmp_path, code)
    for _ in range(3):
        assert plugins.decode("t", "value", b"x", []) is None
    (problem,) = plugins.take_problems()
    assert problem.code == "plugin_disabled"
    assert problem.message.startswith(f"plugin mine: value decoder d is switched off: {why.format(tmp_path)}")


def test_a_python_that_may_not_be_run_is_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``sniff`` has given up root, and Python lies below a folder of root's."""
    plugins = loaded(tmp_path, "def register(hooks): hooks.value_decoder(lambda *_: 1, 'd', isolated=True)\n")
    python = tmp_path / "python"
    python.write_text("")
    python.chmod(0o600)
    monkeypatch.setattr("sys.executable", str(python))
    assert plugins.decode("t", "value", b"x", []) is None
    (problem,) = plugins.take_problems()
    assert problem.message.startswith("plugin mine: value decoder d is switched off: the user ")
    assert f"may not use {python}; -Z USER names one who may" in problem.message


def test_an_isolated_decoder_has_the_options_of_the_others(tmp_path: Path) -> None:
    """Their passwords are no arguments of its process, which other users see."""
    text = (
        "import sys\ndef register(hooks):\n"
        "    hooks.value_decoder(lambda *_: [list(hooks.options.schemas), list(hooks.options.value_formats), sys.argv],"
        " isolated=True)\n"
    )
    (tmp_path / "asks.py").write_text(text)
    options = PluginOptions((str(tmp_path),), ("*=string",))
    plugins = load_plugins([str(tmp_path / "asks.py")], options)
    name, (schemas, formats, arguments) = plugins.decode("t", "value", b"x", []) or ("", ([], [], []))
    plugins.close()
    assert (name, schemas, formats) == ("asks", [str(tmp_path)], ["*=string"])
    assert arguments and not {str(tmp_path), "*=string"}.intersection(arguments)


def test_the_command_shows_what_an_isolated_decoder_says(kwiresniff: Callable[..., Done], tmp_path: Path) -> None:
    """And leaves no process behind."""
    (tmp_path / "apart.py").write_text(
        "import os\ndef register(hooks): hooks.value_decoder(lambda *_: [os.getpid()], 'd', isolated=True)\n"
    )
    out = kwiresniff("read", "-o", "jsonl", "--plugin", str(tmp_path / "apart.py"), "-Y", "api == Produce", REAL).out
    body = json.loads(out.splitlines()[0])["request"]["body"]
    (pid,) = body["topic_data"][0]["partition_data"][0]["records"][0]["records"][0]["decoded"]["key"]["data"]
    assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_process_of_a_decoder_uses_nothing_of_the_current_folder(
    kwiresniff: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither modules that Python brings nor kwiresniff itself."""
    planted = tmp_path / "here"
    planted.mkdir()
    for name in ("json", "pickle", "orjson", "kwiresniff"):
        (planted / f"{name}.py").write_text("raise SystemExit('this has run')\n")
    plugin = tmp_path / "apart.py"
    plugin.write_text("def register(hooks): hooks.value_decoder(lambda *_: 'from apart', 'd', isolated=True)\n")
    monkeypatch.chdir(planted)
    done = kwiresniff("read", "-o", "jsonl", "--plugin", "../apart.py", "-Y", "api == Produce", REAL)
    assert '"data":"from apart"' in done.out
    assert "plugin_failed" not in done.out + done.err


@pytest.mark.parametrize("kind", ["redactor", "annotator", "learn"])
def test_only_a_decoder_says_that_something_does_not_fit(kind: str, tmp_path: Path) -> None:
    """Of others it is a failure like any exception."""
    plugins = loaded(
        tmp_path,
        "from kwiresniff.plugins import DoesNotFit\n"
        "class Learner:\n"
        "    def learn(self, *_): raise DoesNotFit('a', 'b')\n"
        "    def __call__(self, *_): return None\n"
        "def refuse(*_): raise DoesNotFit('a', 'b')\n"
        "def register(hooks):\n"
        + ("    hooks.value_decoder(Learner())\n" if kind == "learn" else f"    hooks.{kind}(refuse)\n"),
    )
    batches = [{"records": [{"value": b"x", "decoded": {"value": {"plugin": "p", "data": 1}}}]}]
    plugins.learn("_schemas", b"k", b"v")
    plugins.annotate(exchange())
    plugins.redact_records("t", batches)
    (problem,) = plugins.take_problems()
    assert problem.code == "plugin_failed"


def test_a_decoder_that_no_other_process_can_load_stays_in_this_one() -> None:
    """Of a plugin that a program has put together."""
    plugin = Plugin("mine", "here")
    Hooks(plugin).value_decoder(lambda *_: os.getpid(), "d", isolated=True)
    plugins = Plugins([plugin])
    assert plugins.decode("t", "value", b"x", []) == ("mine", os.getpid())
    plugins.close()
