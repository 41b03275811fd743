"""Two devices share a folder: each saves for itself, then they exchange and merge, and end up equal."""

import llvs

with llvs.Coordinator("phone.llvs", exchange="shared") as phone, llvs.Coordinator("laptop.llvs", exchange="shared") as laptop:
    phone.save(update={"note/1": b"from the phone"})
    laptop.save(update={"note/2": b"from the laptop"})

    for device in (phone, laptop, phone):
        result = device.exchange()
        for problem in result.problems:
            print("not exchanged:", problem.name, problem.reason)
        device.merge()
    laptop.exchange()
    laptop.merge()

    print(dict(phone.items()))
    assert phone.at() == laptop.at()
    assert phone.current_version == laptop.current_version
