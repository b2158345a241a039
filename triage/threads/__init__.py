"""Threads: which earlier mail a reply answers, and whether it may take over that mail's category. Pure."""
