"""Pictures in terminals: the protocol of kitty (kitty, Ghostty) for PNG, and that of iTerm2 (iTerm2, WezTerm).

The environment alone decides which protocol a terminal has. If it names none, a picture is described by its kind and size. The output is
Base64 between the marks of the protocol, so that no byte of a value reaches the terminal raw.
"""

from __future__ import annotations

import base64
import os
from typing import Optional

#: The largest picture that is shown, in bytes.
LARGEST = 8_000_000
#: Characters of Base64 in one part, as the protocol of kitty requires.
_PART = 4096
_PNG = b"\x89PNG\r\n\x1a\n"


def protocol() -> Optional[str]:
    """Returns "kitty" or "iterm"; None for an unknown terminal, and within tmux and screen, which do not pass pictures on."""
    if os.environ.get("TMUX") or os.environ.get("STY"):
        return None
    program = os.environ.get("TERM_PROGRAM", "")
    if os.environ.get("TERM") in ("xterm-kitty", "xterm-ghostty") or os.environ.get("KITTY_WINDOW_ID"):
        return "kitty"
    return "iterm" if program in ("iTerm.app", "WezTerm") else None


def drawn(data: bytes) -> Optional[str]:
    """Returns the text that makes the terminal show a picture; None if it cannot."""
    known = protocol()
    if known is None or len(data) > LARGEST:
        return None
    text = base64.b64encode(data).decode("ascii")
    if known == "iterm":
        return f"\x1b]1337;File=inline=1;size={len(data)};preserveAspectRatio=1:{text}\x07\n"
    if not data.startswith(_PNG):
        return None
    parts = [text[at : at + _PART] for at in range(0, len(text), _PART)]
    # The first part has the options: show at once, PNG, no answer.
    return "".join(
        f"\x1b_G{'a=T,f=100,q=2,' if number == 0 else ''}m={int(number < len(parts) - 1)};{part}\x1b\\" for number, part in enumerate(parts)
    ) + "\n"
