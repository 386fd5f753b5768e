"""Tests of ``kwiresniff.index``."""
