"""The version of whyact."""

__version__ = "0.1.0"
