"""Opens a store, saves, reads values at any version, and looks at the changes."""

import llvs

with llvs.Store("notes.llvs") as store:
    v1 = store.make_version(insert={"note/1": b"hello", "note/2": b"buy milk"})
    v2 = store.make_version(v1, update={"note/1": b"hello world"}, remove=["note/2"], metadata={"author": "ann"})

    print("then:", store.at(v1)["note/1"].decode())
    print("now: ", store.at(v2)["note/1"].decode())

    print("what changed:")
    for change in store.diff(v1, v2):
        print("  ", change.kind, change.id, change.data)

    print("all notes at the newest version:")
    for id, data in store.at(v2).prefix("note/").items():
        print("  ", id, data)

# Everything is there when the store is opened again.
with llvs.Store("notes.llvs") as store:
    assert store.most_recent_head == v2
    for version in store.history():
        print(version.date.isoformat(), version.id, version.metadata)
