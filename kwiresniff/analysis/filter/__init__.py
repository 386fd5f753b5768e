"""Filter expressions: ``api == Fetch and latency > 100ms``.

Compiled once into closures over an exchange. A field that is an array, or is in both bodies, satisfies ``==``, ``<``,
``~`` and ``in`` when any of its values does. ``!=`` and ``not in`` are the opposite of ``==`` and ``in``: true when no
value equals, also when there is none. ``null`` stands for no value. ``size`` is request and response together, in
bytes without their 4-byte lengths; ``time`` is the first byte of the request. ``record.`` fields have the values of all
records of an exchange.
"""

from kwiresniff.analysis.filter.compile import Filter, compile_filter
from kwiresniff.analysis.filter.fields import fields

__all__ = ["Filter", "compile_filter", "fields"]
