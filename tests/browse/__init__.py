"""Tests of ``kwiresniff.browse``, each in a terminal that is not there."""
