"""`llvs man-pages`: pages for `man`, generated from the help of the commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Iterator

import click

import llvs

from . import output


def _roff(text: str) -> str:
    """Returns text for roff: no line is read as a request, and dashes and backslashes are literal."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\n".join("\\&" + row if row.startswith(".") else row for row in plain.splitlines())


def page(context: click.Context) -> str:
    """Returns the page of a command, in roff."""
    return "\n".join(_rows(context)) + "\n"


def _rows(context: click.Context) -> Iterator[str]:
    command = context.command
    name = context.command_path.replace(" ", "-")
    yield f'.TH "{name.upper()}" "1" "" "llvs {llvs.__version__}" "The command llvs"'
    yield ".SH NAME"
    yield f"{_roff(name)} \\- {_roff(_short(context).rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield f".B {_roff(context.command_path)}"
    yield _roff(" ".join(command.collect_usage_pieces(context)))
    yield ".SH DESCRIPTION"
    for paragraph in re.split(r"\n\s*\n", (command.help or "").strip()):
        yield ".PP"
        yield _roff(" ".join(paragraph.split()))
    options = [found for one in command.get_params(context) if isinstance(one, click.Option) and (found := one.get_help_record(context))]
    if options:
        yield ".SH OPTIONS"
        for names, told in options:
            yield from (".TP", f".B {_roff(names)}", _roff(told))
    if isinstance(command, click.Group):
        yield ".SH COMMANDS"
        for below in command.list_commands(context):
            made = _below(context, below)
            yield from (".TP", f".B {_roff(made.command_path)}", _roff(_short(made)))


def _short(context: click.Context) -> str:
    from .command import COMMANDS

    if context.parent is not None and context.parent.parent is None and context.info_name in COMMANDS:
        return COMMANDS[context.info_name][1]
    return (context.command.help or "").strip().partition("\n")[0]


def _below(context: click.Context, name: str) -> click.Context:
    assert isinstance(context.command, click.Group)
    command = context.command.get_command(context, name)
    assert command is not None
    return click.Context(command, info_name=name, parent=context)


def pages(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yields the file name and text of each page: of a command and of its subcommands."""
    yield f"{context.command_path.replace(' ', '-')}.1", page(context)
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            yield from pages(_below(context, name))


@click.command("man-pages")
@click.argument("folder", type=click.Path(path_type=Path))
def man_pages_command(folder: Path) -> None:
    """Write the manual pages of all commands into FOLDER (for instance ~/.local/share/man/man1): then "man llvs-log" shows one."""
    from .command import llvs_command

    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, text in pages(click.Context(llvs_command, info_name="llvs")):
        (folder / name).write_text(text, encoding="utf-8")
        count += 1
    output.show([f"{output.counted(count, 'page')} written to {folder}"])
