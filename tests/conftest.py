"""Makes `fakes` importable from every test folder."""
