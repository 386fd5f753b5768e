"""Texts that stand in every tree, made once: escape sequences around each kind of text, and fixed words."""

from __future__ import annotations

from typing import final

from kwiresniff.codec.text.tree_wording import Words


@final
class TreeMarks:
    """A plain record; ``x`` and ``x_off`` are what begins and what ends a text of a kind."""

    def __init__(self, words: Words) -> None:
        self.gap = words.gap
        self.ident = words.on("ident")
        self.ident_off = words.off("ident")
        self.key = words.on("key")
        self.key_off = words.off("key")
        self.name = words.on("name")
        self.name_off = words.off("name")
        self.plain = words.on("value")
        self.plain_off = words.off("value")
        self.dim = words.on("dim")
        self.dim_off = words.off("dim")
        self.arrow = words.arrow()
        self.comma = words.span("", ", ")
        self.no_comma = words.span("", "")
        self.null = words.span("dim", "null")
        self.empty = words.span("dim", "empty")
        self.tombstone = words.span("wait", "tombstone")
        self.no_clock = words.span("dim", "  " + "-".rjust(12))
        self.headers = words.span("name", "headers ")
        self.base_offset = words.span("name", "base_offset ")
        self.create_time = words.span("name", "create_time ")
        self.append_time = words.span("name", "log_append_time ")
        self.no_time = words.span("value", "none")
        self.producer_id = words.span("name", "producer_id ")
        self.epoch = words.span("name", " epoch ")
        self.sequence = words.span("name", " sequence ")
        self.transactional = words.span("meaning", "transactional")
