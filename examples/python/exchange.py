"""Two devices share a folder: each saves on its own, then both sync, and have equal states."""

import llvs

with llvs.Coordinator("phone.llvs", exchange="shared") as phone, llvs.Coordinator("laptop.llvs", exchange="shared") as laptop:
    phone.save(update={"note/1": b"from the phone"})
    laptop.save(update={"note/2": b"from the laptop"})

    for device in (phone, laptop, phone):
        # Syncs: exchanges, merges what arrived, and exchanges again if the merge changed something.
        result = device.sync()
        for problem in result.problems:
            print(f"not exchanged: {problem.name!r}: {problem.reason!r}")
        if result.moved:
            print("now at", result.to_version)

    print(dict(phone.items()))
    assert phone.at() == laptop.at()
    assert phone.current_version == laptop.current_version
