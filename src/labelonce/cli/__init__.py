"""The command line: parse, call, print. Heavy modules are imported inside the commands."""

from labelonce.cli._app import main

__all__ = ["main"]
