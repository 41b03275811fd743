"""Files and folders with ids, as services store them, and the order in which they changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Callable, Iterator, Optional

#: Each event in a stand-in happens a second after the one before.
BEGINNING = datetime(2027, 1, 1, tzinfo=timezone.utc)


@dataclass
class Node:
    id: str
    parent: Optional[str]
    name: str
    #: None for a folder.
    data: Optional[bytes]
    made: datetime
    #: The time of the service's clock, and the time that the user gives.
    changed: datetime
    modified: datetime
    version: int = 1
    trashed: bool = False

    @property
    def is_folder(self) -> bool:
        return self.data is None


class Tree:
    def __init__(self, root: str, new_id: Callable[[int], str]) -> None:
        self._new_id = new_id
        self.count = 0
        self.time = BEGINNING
        self.root = root
        self.nodes = {root: Node(root, None, "", None, self.time, self.time, self.time)}
        #: Ids in the order in which they changed; ids of deleted items as well.
        self.changes: list[str] = []
        #: The ids of folders that were deleted.
        self.folders_gone: set[str] = set()
        #: Whether deleted items go to the user's bin, which counts for the quota until it is emptied; and the number of bytes there.
        self.has_bin = False
        self.binned = 0

    def new_id(self) -> str:
        self.count += 1
        return self._new_id(self.count)

    def tick(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time

    def children(self, id: str) -> list[Node]:
        """Returns the children in the order in which they were made."""
        return [node for node in self.nodes.values() if node.parent == id]

    def find(self, parent: str, name: str, fold: bool = False) -> Optional[Node]:
        same: Callable[[str], str] = (lambda text: text.casefold()) if fold else (lambda text: text)
        return next((node for node in self.children(parent) if same(node.name) == same(name) and not node.trashed), None)

    def add(self, parent: str, name: str, data: Optional[bytes], modified: Optional[datetime] = None, id: Optional[str] = None) -> Node:
        now = self.tick()
        node = Node(id or self.new_id(), parent, name, data, now, now, modified or now)
        self.nodes[node.id] = node
        self.changes.append(node.id)
        return node

    def touch(self, node: Node) -> None:
        """Records a change of the item."""
        node.changed = self.tick()
        node.version += 1
        self.changes.append(node.id)

    def write(self, node: Node, data: bytes, modified: Optional[datetime] = None) -> None:
        node.data = data
        node.modified = modified or self.time + timedelta(seconds=1)
        self.touch(node)

    def below(self, id: str) -> Iterator[Node]:
        for node in self.children(id):
            yield node
            yield from self.below(node.id)

    def delete(self, node: Node) -> None:
        for each in [*self.below(node.id), node]:
            self.nodes.pop(each.id, None)
            if each.is_folder:
                self.folders_gone.add(each.id)
            self.binned += len(each.data or b"") if self.has_bin else 0
            self.changes.append(each.id)

    def path(self, node: Node) -> str:
        names = []
        while node.parent is not None:
            names.append(node.name)
            node = self.nodes[node.parent]
        return "/" + "/".join(reversed(names))

    @property
    def bytes(self) -> int:
        return sum(len(node.data or b"") for node in self.nodes.values()) + self.binned
