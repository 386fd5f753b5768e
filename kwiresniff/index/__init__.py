"""An index of captures: of each exchange what a list shows and sorts by, and where its packets lie.

Bodies are not kept. ``ExchangeReader`` reads one exchange from its packets when somebody looks at it.
"""

from kwiresniff.index.exchange_index import ExchangeIndex, Indexed, IndexPart
from kwiresniff.index.exchange_reader import ExchangeReader
from kwiresniff.index.index_sink import IndexSink

__all__ = ["ExchangeIndex", "ExchangeReader", "IndexPart", "IndexSink", "Indexed"]
