"""One entry of the chain: a provider and the terms it was configured with."""

from __future__ import annotations

from dataclasses import dataclass

from triage.decide.cost import FREE, Price, find_price
from triage.decide.remote import RemoteProvider
from triage.ports import Provider


@dataclass(frozen=True, slots=True)
class Link:
    """One provider of the chain. `breaker_key` names its breaker in the store; `price` overrides the built-in table.

    `may_archive` and `archive_floor` are the policy's business; they travel with the entry they were written in.
    """

    provider: Provider
    breaker_key: str
    position: int
    price: Price | None = None
    may_archive: bool = True
    archive_floor: float = 0.0

    def price_of(self, model: str) -> Price | None:
        """The price of the model that answered, or of the one configured; None if nobody knows it.

        A model of no known price is free on this machine and in a private network.
        """
        if self.price is not None:
            return self.price
        if not isinstance(self.provider, RemoteProvider):
            return FREE
        known = find_price(self.provider.name, model) or find_price(self.provider.name, self.provider.model)
        return FREE if known is None and self.provider.private else known

    @property
    def paid(self) -> bool:
        """May asking cost money? A price nobody knows counts as one."""
        return self.price_of(self.provider.model) != FREE
