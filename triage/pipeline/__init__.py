"""One run of one account: select, recover, thread, fetch, prepare, decide, label, archive."""
