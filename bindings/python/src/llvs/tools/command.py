"""The program `llvs`: general options, and the table of its commands. Each command is imported when it is called, so the start is fast."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Optional, Sequence

import click

from . import failures, output
from .session import Session

#: By command: its module, and what it does.
COMMANDS = {
    "init": ("store_commands", "Make a new, empty store."),
    "status": ("store_commands", "Show the state of the store."),
    "log": ("log_command", "Show the history."),
    "show": ("show_commands", "Show one version, and what it changed."),
    "ls": ("value_commands", "List the ids of values."),
    "get": ("value_commands", "Show a value."),
    "set": ("save_commands", "Set values."),
    "rm": ("save_commands", "Remove values."),
    "diff": ("diff_command", "Show what differs between two versions."),
    "blame": ("blame_command", "Show which version set each part of a value."),
    "history": ("show_commands", "Show every version in which a value changed."),
    "branch": ("show_commands", "List the branches."),
    "merge": ("merge_commands", "Merge two versions."),
    "explain": ("merge_commands", "Show what a merge decided."),
    "conflicts": ("merge_commands", "Show the conflicts that are open."),
    "revert": ("undo_commands", "Take back what a version changed."),
    "undo": ("undo_commands", "Take back the last save of this device."),
    "redo": ("undo_commands", "Take back the last undo of this device."),
    "exchange": ("exchange_commands", "Exchange versions with a place, both ways, without merging."),
    "sync": ("exchange_commands", "Exchange, merge what arrived, and exchange again."),
    "pull": ("exchange_commands", "Retrieve the versions that the store lacks from a place."),
    "push": ("exchange_commands", "Send the versions that a place lacks."),
    "watch": ("exchange_commands", "Sync whenever something is new, until Ctrl-C."),
    "remote": ("remote_command", "Store places to exchange with, by name."),
    "verify": ("maintenance_commands", "Read everything again, and look for damage."),
    "salvage": ("maintenance_commands", "Write everything that is whole in a damaged store into a new one."),
    "size": ("size_command", "Show what takes space."),
    "erase": ("erase_command", "Erase the bytes of values for good, on this device."),
    "erasures": ("erase_command", "Show the orders to erase values, and decide about them."),
    "forget": ("erase_command", "Forget the values that the policy of this device does not keep."),
    "forgetting": ("erase_command", "Show or set whose orders to erase count on this device, and what it keeps."),
    "compact": ("maintenance_commands", "Compact small files of the store."),
    "snapshot": ("maintenance_commands", "Write a copy of the whole store, or restore one."),
    "import": ("maintenance_commands", "Add the versions of a store of another implementation."),
    "export": ("export_command", "Write the values of a version to one file."),
    "inspect": ("inspect_command", "Show the store in the browser."),
    "shell": ("shell_command", "Give commands at a prompt."),
    "completion": ("completion", "Print the script with which a shell completes."),
    "man-pages": ("man_command", "Write the manual pages."),
    "demo-store": ("demo", "Make an example store."),
}


class Commands(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Returns all names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> Optional[click.Command]:
        """Returns the command with a name."""
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"{__package__}.{COMMANDS[name][0]}")
        found: click.Command = getattr(module, name.replace("-", "_") + "_command")
        return found

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the table, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, told) in COMMANDS.items()])

    def resolve_command(self, context: click.Context, args: list[str]) -> tuple[Optional[str], Optional[click.Command], list[str]]:
        """As in click, but the message of an unknown command suggests similar ones."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as problem:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, 3)
            shown = args[0]
            told = "did you mean " + " or ".join(f'"llvs {name}"' for name in near) + "?" if near else '"llvs --help" lists them'
            raise click.UsageError(f'there is no command "{shown}": {told}') from None


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        import llvs

        click.echo(f"llvs {llvs.__version__}, library {llvs.library_version()}")
        context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("-s", "--store", metavar="PATH", help="The store; else LLVS_STORE, else the one that is here.")
@click.option("--coordinator", metavar="NAME", default="", help='Whose current version "@" is; one of its own, while a program runs.')
@click.option("--device", metavar="NAME", envvar="LLVS_DEVICE", help="Whose saves these are, and whose undo takes back.")
@click.option("--debug", is_flag=True, help="Show where an error came from.")
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version, and exit.")
@click.pass_context
def llvs_command(context: click.Context, store: Optional[str], coordinator: str, device: Optional[str], debug: bool) -> None:
    """Inspect and change a versioned store.

    A version is named by its id or the beginning of it, by a branch, by "@" (the current one), by "X~3" and "X^2" (predecessors of X),
    and by "@{yesterday 18:00}".
    """
    context.obj = Session(store, coordinator, device, debug)


def run(arguments: Sequence[str]) -> int:
    """Runs the command and returns its exit code. Errors are one sentence on standard error."""
    output.prepare()
    failures.begin()
    try:
        result: Any = llvs_command.main(list(arguments), prog_name="llvs", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) and not isinstance(result, bool) else failures.DONE
    except (BrokenPipeError, SystemExit):
        # The reader of the pipe has closed it ("| head"); click turns that into an exit.
        return failures.DONE
    except click.exceptions.Exit as exit:
        return exit.exit_code
    except click.ClickException as problem:
        return _misused(problem)
    except BaseException as problem:
        if "--debug" in arguments:
            import traceback

            output.say(output.text(traceback.format_exc().rstrip("\n")))
        told, code = failures.explain(KeyboardInterrupt() if isinstance(problem, click.Abort) else problem)
    try:
        # Output comes before the error message.
        sys.stdout.flush()
    except OSError:
        pass
    output.say(f"llvs: {told}")
    return code


def _misused(problem: click.ClickException) -> int:
    if isinstance(problem, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        # An incomplete command: its help is the answer.
        output.say(output.text(problem.format_message()))
        return failures.MISUSED
    context = getattr(problem, "ctx", None)
    hint = f' ("{context.command_path} --help" shows how)' if context is not None else ""
    told = f"llvs: {failures.shortened(problem.format_message())}{hint}"
    # For a missing argument, click lists the choices in several lines. Other messages quote input, so they are escaped as one line.
    output.say(output.text(told) if isinstance(problem, click.MissingParameter) else told)
    return failures.MISUSED
