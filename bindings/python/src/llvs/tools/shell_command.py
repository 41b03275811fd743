"""`llvs shell`: a prompt for the same commands, without `llvs` before them."""

from __future__ import annotations

import shlex
import sys
from typing import Any, Callable, Iterable, Iterator, Optional

import click

from . import output
from .failures import DONE, MISUSED
from .session import session


@click.command("shell")
def shell_command() -> int:
    """Run commands at a prompt, with completion of commands, ids and versions; "exit" or Ctrl-D leaves.

    Without a terminal, commands are read line by line. Exits with the code of the last command.
    """
    here = session()
    path, _ = here.place()
    before = ["--store", str(path), "--coordinator", here.coordinator_name, "--device", here.device]
    before += ["--debug"] if here.debug else []
    # Reports an error of the store before the first prompt.
    here.reading()
    code = DONE
    for line in _lines(before, f"{path.name}> "):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as problem:
            output.say(f"llvs: {problem}: close the quotation marks")
            code = MISUSED
            continue
        if words[:1] == ["llvs"]:
            del words[0]
        if words[:1] in (["exit"], ["quit"]):
            break
        if words and words[0] == "shell":
            output.say("llvs: this is a shell already")
        elif words:
            code = _run(before, words)
    return code


def _run(before: list[str], words: list[str]) -> int:
    from .command import run

    return run([*(["--help"] if words == ["help"] else [*before, *words])])


def _lines(before: list[str], prompt: str) -> Iterator[str]:
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer, Completion

    class Commands(Completer):
        """Offers the completions that click offers to a shell."""

        def get_completions(self, document: Any, complete_event: Any) -> Iterable[Completion]:
            """Yields the completions of the word before the cursor."""
            for value, told in offered(before, document.text_before_cursor):
                word = document.get_word_before_cursor(pattern=_not_space())
                yield Completion(value, -len(word), display_meta=told or "")

    asking: PromptSession[str] = PromptSession(completer=Commands(), complete_while_typing=False)
    ask: Callable[[str], str] = asking.prompt
    while True:
        try:
            yield ask(output.row(prompt))
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _not_space() -> Any:
    import re

    return re.compile(r"\S+")


def offered(before: list[str], text: str) -> Iterator[tuple[str, Optional[str]]]:
    """Yields the words that can replace the last word of a line, each with a description."""
    from click.shell_completion import ShellComplete

    from .command import llvs_command

    try:
        words = shlex.split(text)
    except ValueError:
        return
    last = "" if not words or text[-1:].isspace() else words.pop()
    for item in ShellComplete(llvs_command, {}, "llvs", "_LLVS_COMPLETE").get_completions([*before, *words], last):
        if item.type == "plain":
            yield str(item.value), item.help
