"""The expert's moves as a model is offered them: by name and place, and why others do not apply."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Offer:
    """A move that applies to a kernel. What is not known is left empty."""

    name: str
    about: str = ""  # what it does
    place: str = ""  # where: arrays, loops with their lines, sizes
    parameters: tuple[str, ...] = ()  # that it adds, as a template declares them
    remedies: tuple[str, ...] = ()  # of a diagnosis, that it can be


@dataclass(frozen=True)
class Catalogue:
    reading: tuple[str, ...] = ()  # what the expert makes of the kernel, in words with line numbers
    offers: tuple[Offer, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # moves that do not apply, and why

    @property
    def available(self) -> tuple[str, ...]:
        return tuple(offer.name for offer in self.offers)

    def offer(self, name: str) -> Offer:
        """One that does not apply is its name and nothing more."""
        return next((offer for offer in self.offers if offer.name == name), Offer(name))
