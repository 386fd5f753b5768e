"""Plugins: functions of others that read record keys and values, comment on exchanges, or are observers and causes
of ``doctor``.

A plugin is a Python file (``--plugin PATH``) or an installed entry point of the group ``kwiresniff.plugins``, with a
function ``register(hooks)`` that calls ``hooks.value_decoder(...)`` and ``hooks.annotator(...)``; docs/plugins.md
writes one, and ``plugins/`` has worked examples. It runs in this process with all its rights, so load only what you
would run.

A function that raises, or returns what has no JSON form, is reported once, counted, and switched off after
``MAX_FAILURES``; the reading goes on without it. An answer that is nested too deep or too large is left out and
reported once: that is the doing of whoever wrote the record, so it does not count. Nor does ``DoesNotFit``.

What plugins import is here; the modules of this package are for kwiresniff itself.
"""

from __future__ import annotations

from kwiresniff.plugins.answers import MAX_JSON_VALUES as MAX_JSON_VALUES
from kwiresniff.plugins.answers import Decoded as Decoded
from kwiresniff.plugins.answers import DoesNotFit as DoesNotFit
from kwiresniff.plugins.hooks import MAX_FAILURES as MAX_FAILURES
from kwiresniff.plugins.hooks import Annotator as Annotator
from kwiresniff.plugins.hooks import DoctorMaker as DoctorMaker
from kwiresniff.plugins.hooks import ExporterMaker as ExporterMaker
from kwiresniff.plugins.hooks import Hook as Hook
from kwiresniff.plugins.hooks import Hooks as Hooks
from kwiresniff.plugins.hooks import Plugin as Plugin
from kwiresniff.plugins.hooks import PluginOptions as PluginOptions
from kwiresniff.plugins.hooks import ValueDecoder as ValueDecoder
from kwiresniff.plugins.hooks import ValueRedactor as ValueRedactor
from kwiresniff.plugins.running import Plugins as Plugins
