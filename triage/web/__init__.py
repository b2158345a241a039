"""The dashboard, /healthz and /metrics of `triage serve`: read-only pages over the ledger."""
