"""Spark finds data sources by itself in packages with names like this one: ``format("kwiresniff")`` just works."""

from kwiresniff.pipeline.spark_source import CaptureSource as DefaultSource

__all__ = ["DefaultSource"]
