"""Asking decision models: the chain of providers, their wire formats, and what makes an answer usable."""
