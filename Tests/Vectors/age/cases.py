"""Files of age, good and bad: each with the expected answer of the engine, and that of the tool `age`.

    python3 cases.py <folder>     writes each case as a file, and cases.json

The kinds of mistakes are those of C2SP's vectors for age (CCTV); model.py makes the bytes. `age` is "ok" or "fail"; it differs from
`expect` if the engine has bounds of its own.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import model as m

KEY = bytes(range(16))
NONCE = bytes(range(32, 48))
MINE, THEIRS, ONCE = (hashlib.sha256(name).digest() for name in (b"mine", b"theirs", b"once"))
ME, THEM = m.x25519(MINE), m.x25519(THEIRS)
PASS = b"correct horse battery staple"
SALT = bytes(range(64, 80))
PLAIN = b"age plain text\n"
GREASE = b"-> grease-grease some words\nZ3JlYXNl\n"

cases: list[dict[str, str]] = []
folder = Path(sys.argv[1])


def case(name: str, expect: str, data: bytes, plain: bytes = PLAIN, age: str = "", passphrase: bytes = b"") -> None:
    (folder / name).write_bytes(data)
    cases.append({
        "name": name, "expect": expect, "age": age or ("ok" if expect == "ok" else "fail"), "passphrase": passphrase.decode(),
        "plain": hashlib.sha256(plain).hexdigest() if expect == "ok" or age == "ok" else "",
    })


def file(stanzas: bytes, plain: bytes = PLAIN, **more: bytes) -> bytes:
    return m.header(KEY, stanzas, **more) + m.payload(KEY, NONCE, m.cut(plain))


mine = m.x25519_stanza(KEY, ONCE, ME)
theirs = m.x25519_stanza(KEY, hashlib.sha256(b"once more").digest(), THEM)
share = m.b64(m.x25519(ONCE))
wrapped = mine.split(b"\n")[1]

# Recipients.
case("x25519", "ok", file(mine))
case("x25519_among_others", "ok", file(theirs + mine))
case("x25519_twice", "ok", file(mine + m.x25519_stanza(KEY, THEIRS, ME)))
case("x25519_and_unknown", "ok", file(GREASE + mine + GREASE))
case("unknown_with_long_body", "ok", file(b"-> other\n" + m.body(bytes(200)) + mine))
case("unknown_with_body_of_full_lines", "ok", file(b"-> other\n" + m.body(bytes(48)) + mine))
case("unknown_with_empty_body", "ok", file(b"-> other\n\n" + mine))
case("x25519_of_others", "wrong_key", file(theirs))
case("unknown_alone", "wrong_key", file(GREASE))
case("x25519_in_lower_case", "wrong_key", file(mine.replace(b"X25519", b"x25519")))
case("x25519_wrong_tag", "wrong_key", file(b"-> X25519 " + share + b"\n" + m.body(bytes(32))))
case("x25519_without_share", "damaged", file(b"-> X25519\n" + wrapped + b"\n"))
case("x25519_more_words", "damaged", file(mine.replace(share, share + b" 1234")))
case("x25519_short_share", "damaged", file(mine.replace(share, m.b64(m.x25519(ONCE)[:31]))))
case("x25519_long_share", "damaged", file(mine.replace(share, m.b64(m.x25519(ONCE) + b"\0"))))
case("x25519_share_not_canonical", "damaged", file(mine.replace(share, share[:-1] + bytes([share[-1] + 1]))))
case("x25519_share_padded", "damaged", file(mine.replace(share, share + b"=")))
case("x25519_body_not_canonical", "damaged", file(mine.replace(wrapped, wrapped[:-1] + bytes([wrapped[-1] + 1]))))
case("x25519_body_padded", "damaged", file(mine.replace(wrapped, wrapped + b"=")))
case("x25519_body_with_url_letters", "damaged", file(mine.replace(wrapped, wrapped[:10] + b"-_" + wrapped[12:])))
case("x25519_low_order", "damaged", file(b"-> X25519 " + m.b64(bytes(32)) + b"\n" + wrapped + b"\n"))
case("x25519_all_ones", "wrong_key", file(b"-> X25519 " + m.b64(b"\xff" * 31 + b"\x7f") + b"\n" + wrapped + b"\n"))
long_key = m.hkdf(m.x25519(ONCE, ME), m.x25519(ONCE) + ME, b"age-encryption.org/v1/X25519")
case("x25519_long_file_key", "damaged", file(b"-> X25519 " + share + b"\n" + m.body(m.seal(long_key, bytes(12), bytes(32)))))
case("nobody", "damaged", file(b""))

# Stanzas and lines.
case("stanza_without_space", "damaged", file(mine.replace(b"-> ", b"->")))
case("stanza_with_two_spaces", "damaged", file(mine.replace(b"X25519 ", b"X25519  ")))
case("stanza_space_at_end", "damaged", file(mine.replace(share, share + b" ")))
case("stanza_with_control", "damaged", file(b"-> other \x7f\n\n" + mine))
case("stanza_not_ascii", "damaged", file("-> öther\n\n".encode() + mine))
case("stanza_without_words", "damaged", file(b"-> \n\n" + mine))
case("stanza_without_body", "damaged", file(b"-> other\n" + mine))
case("stanza_body_ends_full", "damaged", file(b"-> other\n" + m.b64(bytes(48)) + b"\n" + mine))
case("stanza_body_long_line", "damaged", file(b"-> other\n" + m.b64(bytes(51)) + b"\n" + mine))
case("stanza_body_short_line_first", "damaged", file(b"-> other\n" + b"AAAA\nAAAA\n" + mine))
case("stanza_carriage_returns", "damaged", file(mine.replace(b"\n", b"\r\n")))
case("stanza_tab", "damaged", file(mine.replace(b"X25519 ", b"X25519\t")))

# The first and the last line.
case("version_2", "newer", file(mine, start=b"age-encryption.org/v2\n"))
case("version_1234", "newer", file(mine, start=b"age-encryption.org/v1234\n"))
case("other_magic", "foreign", file(mine, start=b"age-encryption.com/v1\n"))
case("magic_with_carriage_return", "foreign", file(mine, start=b"age-encryption.org/v1\r\n"))
case("empty", "cut_short", b"")
case("other_file", "foreign", b"PK\x03\x04" + bytes(100))
good = file(mine)
end = good.index(b"--- ")
mac = good[end + 4 : end + 47]
case("mac_wrong", "damaged", good.replace(mac, m.b64(bytes(32))))
case("mac_short", "damaged", good.replace(mac, m.b64(bytes(31))))
case("mac_missing", "damaged", good.replace(b"--- " + mac, b"---"))
case("mac_without_space", "damaged", good.replace(b"--- ", b"---"))
case("mac_two_spaces", "damaged", good.replace(b"--- ", b"---  "))
case("mac_space_behind", "damaged", good.replace(mac, mac + b" "))
case("mac_not_canonical", "damaged", good.replace(mac, mac[:-1] + bytes([mac[-1] + 1])))
case("mac_padded", "damaged", good.replace(mac, mac + b"="))
case("mac_carriage_return", "damaged", good.replace(mac + b"\n", mac + b"\r\n"))
case("header_cut", "cut_short", good[: end - 5])
case("header_too_large", "too_large", file(b"-> other\n" + m.body(bytes(60_000)) + mine), age="ok")
case("too_many_stanzas", "too_large", file(b"-> o\n\n" * 600 + mine), age="ok")

# Passphrases.
secret = m.scrypt_stanza(KEY, PASS, SALT, 14)
salt = m.b64(SALT)
case("passphrase", "ok", file(secret), passphrase=PASS)
case("passphrase_16", "ok", file(m.scrypt_stanza(KEY, PASS, SALT, 16)), passphrase=PASS)
case("passphrase_wrong", "wrong_key", file(secret), passphrase=b"another one")
case("passphrase_for_identity", "wrong_key", file(secret))
case("identity_for_passphrase", "wrong_key", file(mine), passphrase=PASS)
case("passphrase_and_x25519", "damaged", file(secret + mine), passphrase=PASS)
case("x25519_and_passphrase", "damaged", file(mine + secret), age="ok")
case("passphrase_twice", "damaged", file(secret + secret), passphrase=PASS)
case("passphrase_and_unknown", "damaged", file(secret + GREASE), passphrase=PASS)
case("passphrase_in_upper_case", "wrong_key", file(secret.replace(b"scrypt", b"SCRYPT")), passphrase=PASS)
case("passphrase_without_salt", "damaged", file(secret.replace(salt + b" ", b"")), passphrase=PASS)
case("passphrase_without_work", "damaged", file(secret.replace(b" 14\n", b"\n")), passphrase=PASS)
case("passphrase_more_words", "damaged", file(secret.replace(b" 14\n", b" 14 10\n")), passphrase=PASS)
case("passphrase_short_salt", "damaged", file(secret.replace(salt, m.b64(SALT[:15]))), passphrase=PASS)
case("passphrase_long_salt", "damaged", file(secret.replace(salt, m.b64(SALT + b"\0"))), passphrase=PASS)
case("passphrase_salt_not_canonical", "damaged", file(secret.replace(salt, salt[:-1] + bytes([salt[-1] + 1]))), passphrase=PASS)
case("passphrase_wrong_tag", "wrong_key", file(b"-> scrypt " + salt + b" 14\n" + m.body(bytes(32))), passphrase=PASS)
case("passphrase_other_work", "wrong_key", file(secret.replace(b" 14\n", b" 15\n")), passphrase=PASS)
for name, work, expect in [
    ("zero", b"0", "damaged"), ("leading_zero", b"014", "damaged"), ("plus", b"+14", "damaged"), ("minus", b"-14", "damaged"),
    ("hex", b"0xE", "damaged"), ("letters", b"14a", "damaged"), ("overflow", b"18446744073709551615", "damaged"),
    ("23", b"23", "too_large"),
]:
    case(f"passphrase_work_{name}", expect, file(secret.replace(b" 14\n", b" " + work + b"\n")), passphrase=PASS)
case("passphrase_work_10", "too_large", file(m.scrypt_stanza(KEY, PASS, SALT, 10)), passphrase=PASS, age="ok")
case("passphrase_work_19", "too_large", file(secret.replace(b" 14\n", b" 19\n")), passphrase=PASS)

# After the header.
head = m.header(KEY, mine)


def stream(name: str, expect: str, segments: list[tuple[bytes, bool]], tail: bytes = b"", first: int = 0) -> None:
    plain = b"".join(piece for piece, _ in segments)
    case(name, expect, head + m.payload(KEY, NONCE, segments, first) + tail, plain)


full = bytes(range(256)) * 256
stream("plain_empty", "ok", [(b"", True)])
stream("plain_full_segment", "ok", [(full, True)])
stream("plain_two_segments", "ok", [(full, False), (b"x", True)])
stream("segment_empty_last", "damaged", [(full, False), (b"", True)])
stream("segment_no_end", "damaged", [(b"not the end", False)])
stream("segment_full_no_end", "damaged", [(full, False)])
stream("segment_short_in_the_middle", "damaged", [(b"short", False), (b"end", True)])
stream("segment_two_ends", "damaged", [(full, True), (b"end", True)])
stream("segment_number_wrong", "damaged", [(PLAIN, True)], first=1)
stream("bytes_behind_the_end", "damaged", [(PLAIN, True)], tail=b"more")
stream("segment_behind_the_end", "damaged", [(full, True)], tail=bytes(16))
stream("segment_missing", "cut_short", [])
case("nonce_missing", "cut_short", head)
case("nonce_short", "cut_short", head + NONCE[:15])
case("tag_short", "cut_short", head + m.payload(KEY, NONCE, [(b"", True)])[:-1])
case("segment_changed", "damaged", good[:-1] + bytes([good[-1] ^ 1]))

(folder / "cases.json").write_text(json.dumps({
    "identity": m.bech32("age-secret-key-", MINE).upper(), "recipient": m.bech32("age", ME),
    "other": m.bech32("age", THEM), "cases": cases,
}))
