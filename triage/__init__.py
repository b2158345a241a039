"""triage sorts a shared inbox: one decision per mail, written back as a label in the mailbox."""

__version__ = "0.1.0"
