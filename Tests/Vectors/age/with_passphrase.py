"""Runs a program that asks for a passphrase on its terminal, and gives the first argument as each answer.

    python3 with_passphrase.py <passphrase> age -d -o <file> <file>
"""

from __future__ import annotations

import os
import pty
import sys

child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
said = b""
while True:
    try:
        piece = os.read(terminal, 1024)
    except OSError:
        break
    if not piece:
        break
    said += piece
    if b"passphrase" in said and said.rstrip(b" ").endswith(b":"):
        said = b""
        os.write(terminal, sys.argv[1].encode() + b"\n")
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if status != 0:
    sys.stderr.buffer.write(said)
sys.exit(status)
