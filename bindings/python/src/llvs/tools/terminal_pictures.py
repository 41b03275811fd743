"""Pictures in terminals that can show them: kitty's protocol (kitty, Ghostty) for PNG, and that of iTerm2 (iTerm2, WezTerm).

Which one a terminal knows is told by the environment alone; where that says nothing, a picture is told by its kind and size. What is
written is Base64 between the marks of the protocol, so that no byte of a value reaches the terminal raw.
"""

from __future__ import annotations

import base64
import os
from typing import Optional

#: Bytes of a picture that is shown.
LARGEST = 8_000_000
#: Characters of Base64 in one part, as kitty wants them.
_PART = 4096
_PNG = b"\x89PNG\r\n\x1a\n"


def protocol() -> Optional[str]:
    """"kitty" or "iterm"; None for a terminal of which nothing is known, and within tmux and screen, which pass neither on."""
    if os.environ.get("TMUX") or os.environ.get("STY"):
        return None
    program = os.environ.get("TERM_PROGRAM", "")
    if os.environ.get("TERM") in ("xterm-kitty", "xterm-ghostty") or os.environ.get("KITTY_WINDOW_ID"):
        return "kitty"
    return "iterm" if program in ("iTerm.app", "WezTerm") else None


def drawn(data: bytes) -> Optional[str]:
    """What makes the terminal show a picture; None where it cannot."""
    known = protocol()
    if known is None or len(data) > LARGEST:
        return None
    text = base64.b64encode(data).decode("ascii")
    if known == "iterm":
        return f"\x1b]1337;File=inline=1;size={len(data)};preserveAspectRatio=1:{text}\x07\n"
    if not data.startswith(_PNG):
        return None
    parts = [text[at : at + _PART] for at in range(0, len(text), _PART)]
    # The first says what it is: shown at once, PNG, without an answer.
    return "".join(
        f"\x1b_G{'a=T,f=100,q=2,' if number == 0 else ''}m={int(number < len(parts) - 1)};{part}\x1b\\" for number, part in enumerate(parts)
    ) + "\n"
