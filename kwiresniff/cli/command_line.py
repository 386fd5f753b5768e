"""Ordinary command lines, read by the definitions of their options alone.

Ordinary is what most people type: options spelt out, each with its value behind it or after ``=``, letters without a
value together (``-vv``), and names of captures. It has the values that click would give it, and whatever else there is
on a line, click looks at.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from kwiresniff.base.light_typing import Any
from kwiresniff.cli.options import Option


def values_of(options: Sequence[Option], words: Sequence[str]) -> dict[str, Any] | None:
    """The values of all ``options``, and as ``captures`` what else stands on the line behind the command's name.

    None when the line is not ordinary: help, a mistake, a value right behind its letter, ``--``, or on Windows, where
    click replaces patterns.
    """
    by_flag = {flag: option for option in options for flag in option.flags}
    texts: dict[str, list[str]] = {}
    captures: list[str] = []
    rest = iter([one for word in words for one in _apart(word, by_flag)])
    for word in rest:
        if _is_text(word):
            captures.append(word)
            continue
        flag, equals, text = word.partition("=")
        option = by_flag.get(flag)
        if option is None:
            return None
        if _is_bare(option):
            if equals:
                return None
        elif not equals:
            text = next(rest, "")
        elif not flag.startswith("--"):
            return None
        if not (_is_text(text) or _is_bare(option)):
            return None
        texts.setdefault(option.name, []).append(text)
    if os.name == "nt":
        return None
    values: dict[str, Any] = {"captures": tuple(captures)}
    try:
        for option in options:
            values[option.name] = _value(option, texts.get(option.name, []))
    except ValueError:
        return None
    return values


def _apart(word: str, by_flag: dict[str, Option]) -> list[str]:
    """``-vq`` as ``-v`` and ``-q``; any other word as it is."""
    flags = [f"-{letter}" for letter in word[1:]] if word.startswith("-") else []
    return flags if len(flags) > 1 and all(flag in by_flag and _is_bare(by_flag[flag]) for flag in flags) else [word]


def _is_bare(option: Option) -> bool:
    """Whether an option is without a value."""
    return option.is_flag or option.counts


def _is_text(word: str) -> bool:
    """Whether a word is no option; nothing at all is unusual enough not to be one."""
    return word == "-" or (word != "" and not word.startswith("-"))


def _value(option: Option, texts: list[str]) -> Any:
    """The value of an option that was there with these texts; raises ValueError where that is a mistake."""
    if option.is_flag:
        return bool(texts)
    if option.counts:
        return len(texts)
    if not texts and (option.required or (option.environment is not None and option.environment in os.environ)):
        raise ValueError(option.name)
    convert = option.kind.convert if option.kind is not None else str
    if option.multiple:
        return tuple(map(convert, texts))
    text = texts[-1] if texts else option.default
    return None if text is None else convert(text)
