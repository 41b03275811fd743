"""The Message, the phone's side, in Python. (laptop.c is the laptop's side; scripts/demo runs both in turn.)

    phone.py <folder> write | sync | edit-1 | edit-2 | edit-3 | show

<folder>/phone is the phone's own store, <folder>/shared the folder that both devices share. Each command is a process of its own: the
store holds everything that lasts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import llvs

CONFLICTS = {
    llvs.merge.ForkKind.TWICE_INSERTED: "inserted on both sides",
    llvs.merge.ForkKind.TWICE_UPDATED: "changed on both sides",
    llvs.merge.ForkKind.REMOVED_AND_UPDATED: "removed on one side, changed on the other",
}


def clock(seconds_since_1970: float) -> str:
    ms = int(seconds_since_1970 * 1000.0)
    return f"{ms // 3600000 % 24:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"


def line(version: llvs.Version) -> str:
    """ "4F1D22A0  12:00:01.250  phone   Write the message" """
    if not version.predecessors:
        what = "the empty root, where every history begins"
    elif len(version.predecessors) == 2:
        what = "merge of " + " and ".join(p[:8] for p in version.predecessors)
    else:
        what = f"{version.metadata['device']:6}  {version.metadata['note']}"
    return f"{version.id[:8]}  {clock(version.timestamp)}  {what}"


def save(phone: llvs.Coordinator, note: str, update: Mapping[str, bytes], remove: Sequence[str] = ()) -> None:
    version = phone.save(update=update, remove=remove, metadata={"note": note})
    assert version is not None
    print("phone:", line(version))


def sync(phone: llvs.Coordinator) -> None:
    """Syncs: exchanges, merges what arrived, and exchanges again if the merge changed something."""
    result = phone.sync()
    for problem in result.problems:
        print(f"phone: a problem with {problem.name!r}: {problem.reason!r}")
    sent = len(result.before.sent) + (len(result.after.sent) if result.after else 0)
    print(f"phone: retrieved {len(result.before.retrieved)}, sent {sent}{', merged' if result.merged else ''}")
    if result.moved:
        print("phone: now at", line(phone.store[result.to_version]))


class Explaining:
    """An arbiter that prints the conflicts, and how its fallback, most recent change, decides them."""

    fallback = llvs.MostRecentChange()

    def resolve(self, merge: llvs.merge.Merge, store: llvs.Store) -> llvs.merge.Pass:
        for id, fork in merge.forks.conflicting.items():
            print(f"  conflict in {id}, {CONFLICTS[fork.kind]}:")
            for side in (fork.first, fork.second):
                self.tell(store, side)
            present = [side.stored_version for side in (fork.first, fork.second) if side]
            if len(present) == 1:
                print("      -> the change wins: an update beats a removal")
            else:
                winner = max((store[id] for id in present), key=lambda version: version.timestamp)
                print(f"      -> the {winner.metadata['device']}'s wins: it is the later change")
        return llvs.merge.PASS

    def tell(self, store: llvs.Store, side: llvs.store.Reference | None) -> None:
        """Prints one side of a conflict: who wrote it, when and what."""
        if side is None:
            print("      removed")
        else:
            writer = store[side.stored_version]
            text = store.at(writer)[side.id].decode()
            print(f'      {writer.metadata["device"]} at {clock(writer.timestamp)}: "{text}"')


def graph(versions: list[llvs.Version]) -> None:
    """Prints the version graph, newest first. Each lane leads down to the version that it names."""
    lanes: list[str] = []
    for version in versions:
        if version.id not in lanes:
            lanes.append(version.id)
        lane = lanes.index(version.id)
        print("".join("* " if i == lane else "| " for i in range(len(lanes))) + line(version))
        if not version.predecessors:
            del lanes[lane]
        elif version.predecessors[0] in lanes:
            print("| " * (len(lanes) - 2) + "|/")
            del lanes[lane]
        else:
            lanes[lane] = version.predecessors[0]
            if len(version.predecessors) == 2 and version.predecessors[1] not in lanes:
                print("| " * (len(lanes) - 1) + "|\\")
                lanes.append(version.predecessors[1])


def message(state: Mapping[str, bytes]) -> None:
    for id, text in state.items():
        print(f"    {id.removeprefix('message/'):8} {text.decode()}")


def show(store: llvs.Store) -> None:
    versions = list(store.history())
    print("The version graph, newest first:\n")
    graph(versions)
    print("\nThe message at every version in time:")
    for version in reversed(versions):
        print(f"\n  {line(version)}")
        message(store.at(version).prefix("message/"))


def main() -> None:
    folder, command = Path(sys.argv[1]).absolute(), sys.argv[2]
    with llvs.Coordinator(folder / "phone", exchange=folder / "shared", arbiter=Explaining(), metadata={"device": "phone"}) as phone:
        match command:
            case "write":
                text = {
                    "message/subject": b"Dinner on Friday",
                    "message/body": b"Shall we meet at seven?",
                    "message/place": b"Luigi's",
                    "message/ps": b"Bring the photos.",
                }
                save(phone, "Write the message", text)
            case "sync":
                sync(phone)
            case "edit-1":
                text = {"message/subject": b"Dinner on Sunday", "message/body": b"Shall we meet at eight?"}
                save(phone, "Sunday at eight, no photos", text, remove=["message/ps"])
            case "edit-2":
                save(phone, "Another place", {"message/place": b"The harbour grill"})
            case "edit-3":
                save(phone, "Guests", {"message/guests": b"Ann, Bea and Cleo"})
            case "show":
                show(phone.store)
            case _:
                sys.exit(f"phone: unknown command {command}")


main()
