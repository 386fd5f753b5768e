"""Keeps scapy from its cache: a pickle in the home or XDG folder, which as root may be somebody else's.

scapy 2.6 unpickles whatever lies there when its tables of protocols are imported, which runs code. kwiresniff
needs none of what it would save.
"""

from __future__ import annotations


def forgo_cache() -> None:
    """Turns scapy's cache off; to be called before anything else of scapy is imported."""
    import scapy.main

    if hasattr(scapy.main, "SCAPY_CACHE_FOLDER"):  # since 2.6
        scapy.main.SCAPY_CACHE_FOLDER = None
