"""When runs happen: fires, the worker that makes runs, the daemon around both."""
