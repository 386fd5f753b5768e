from __future__ import annotations

from kwiresniff.model import Problem
from kwiresniff.render.problems import problem_line


def test_a_problem_is_one_line_with_its_place() -> None:
    problem = Problem("gap", "1,448 bytes were lost", 4_096, "topics[0].name", packet=(1 << 40) + 12)
    assert problem_line(problem) == "1,448 bytes were lost (packet 12, byte 4,096, topics[0].name)"


def test_a_problem_of_a_file_names_it() -> None:
    problem = Problem("cut", "the file ends in the middle of a packet", details={"file": "a.pcap"})
    assert problem_line(problem) == "the file ends in the middle of a packet (a.pcap)"


def test_a_problem_without_a_place_is_its_message() -> None:
    assert problem_line(Problem("x", "something")) == "something"


def test_a_hostile_message_stays_on_its_line() -> None:
    line = problem_line(Problem("x", "a\n\x1b[2Jb", path="p\r", details={"file": "\u202e"}))
    assert line == "a\\n\\x1b[2Jb (\\u202e, p\\r)"
