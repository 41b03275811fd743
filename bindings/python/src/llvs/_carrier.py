"""What an exchange goes through that is written in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Carrier(ABC):
    """A `Transport`, or `RemoteFiles`."""

    #: For messages.
    name: str = ""

    def close(self) -> None:
        """The exchange is done with it. Does nothing unless overridden."""

    @abstractmethod
    def _new_handle(self) -> Any:
        """A `TransportHandle` by which the library calls it."""
