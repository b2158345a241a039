"""Any mail brought to what a model reads: which parts to fetch, how to read a file, what to leave out."""

from triage.prepare.choose import choose_parts
from triage.prepare.message import read_message
from triage.prepare.prepare import prepare

__all__ = ["choose_parts", "prepare", "read_message"]
