"""Makes `encrypted.json`: an encrypted remote as the library writes it, with a file of each kind. It was run once. Its result must remain
readable for ever, and is not made again: `python freeze.py FILE` writes only a file that does not exist."""

from __future__ import annotations

import base64
import json
import random
import sys
import tempfile
from pathlib import Path

import llvs

PASSPHRASE = "six random words are quite enough"


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, llvs.Store(storage="memory") as store:
        place = Path(folder, "place")
        identity = llvs.exchange.make_identity()
        values: dict[str, bytes] = {}
        made = []
        random_ = random.Random(2026)
        for number in range(11):
            data = random_.randbytes(40) if number else bytes(range(256)) * 4200  # 1,075,200 bytes: a large value
            values[f"note/{number}"] = data
            made.append(store.make_version(made[-1] if made else None, insert={f"note/{number}": data}, metadata={"number": number}))
            with llvs.Exchange(store, llvs.Remote(place.as_uri(), passphrase=PASSPHRASE, identity=identity.secret)) as way:
                way.send()
        files = {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}
        assert all(any(name.startswith(start) for name in files) for start in (
            "pack1/root-", "pack1/log/", "pack1/base/", "pack1/blob/", "pack1/keys/ring-", "pack1/keys/pass-"))
        small = {id: data for id, data in values.items() if len(data) < 1_000}
        target.write_text(json.dumps({
            "format": 1, "passphrase": PASSPHRASE, "identity": identity.secret,
            "files": {name: base64.b64encode(data).decode() for name, data in files.items()},
            "versions": [version.id for version in made],
            "values": {id: data.hex() for id, data in small.items()},
            "large": {"id": "note/0", "size": len(values["note/0"]), "about": "the bytes 0 to 255, again and again"},
        }, indent=1) + "\n")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    assert not path.exists(), "it is made once"
    main(path)
