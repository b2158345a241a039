"""The pages: a module per subject, each a function from what is known to a `Page`."""
