"""The base class of transports that are written in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Carrier(ABC):
    """A `Transport`, or `RemoteFiles`."""

    #: Its name in messages.
    name: str = ""

    def close(self) -> None:
        """Called when the exchange no longer uses it. Does nothing unless overridden."""

    @abstractmethod
    def _new_handle(self) -> Any:
        """Returns a `TransportHandle` through which the library calls it."""
