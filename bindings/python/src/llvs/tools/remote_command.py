"""`llvs remote`: places to exchange with, by name."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Iterator, Optional

import click

import llvs

from . import completion, encrypted, key_store, output, remotes
from .failures import DONE, MISUSED, Failure, explain, stop_if_interrupted
from .session import session


_name_argument = click.argument("name", shell_complete=completion.remotes)


def _remotes() -> remotes.Remotes:
    session().reading()
    return remotes.Remotes(*session().place())


@click.group("remote")
def remote_command() -> None:
    """Store places to exchange with, by name, beside the store.

    Passwords are not stored there: they come from LLVS_USER and LLVS_PASSWORD (or LLVS_TOKEN), from the system's key store, or from a
    prompt. So does the passphrase of an encrypted place (LLVS_PASSPHRASE).
    """


@remote_command.command("add")
@click.argument("name")
@click.argument("url")
@click.option("--user", metavar="NAME", help="Who asks.")
@click.option("--ca-file", metavar="FILE", help="Certificates (PEM) of the authorities that are trusted.")
@click.option("--key-file", type=click.Path(path_type=Path), metavar="FILE", help="Private key for sftp: (else a password, or the agent).")
@click.option("--known-hosts", type=click.Path(path_type=Path), metavar="FILE", help="Keys of SSH hosts, not ~/.ssh/known_hosts.")
@click.option("--proxy", metavar="URL", help="The proxy to go through.")
@click.option("--timeout", type=click.FloatRange(1, 86_400), metavar="SECONDS", help="Without a byte for so long, a transfer is given up.")
@click.option("--client-id", metavar="ID", help="Sign in to a cloud drive with the browser, as the app of this id (LLVS_CLIENT_SECRET).")
@click.option("--port", type=click.IntRange(1, 65_535), help="Of this machine, to which the browser comes back, if the app names one.")
@click.option("--token-file", type=click.Path(path_type=Path), metavar="FILE", help="Where tokens of a cloud drive are, or will be, kept.")
@click.option("--keep-password", is_flag=True, help="Ask for the password now, and keep it in the system's key store.")
@click.option("--encrypted", "has_passphrase", is_flag=True, help="What is there is encrypted, and opened with a passphrase.")
@click.option("--keep-passphrase", is_flag=True, help="Ask for the passphrase now, and keep it in the system's key store.")
@click.option("--identity-file", type=click.Path(path_type=Path), metavar="FILE", help="It is opened with the identity of age in there.")
@click.option("--recipient", "recipients", multiple=True, metavar="AGE1...", help="Who else gets the keys when the place is made.")
def add_command(
    name: str,
    url: str,
    keep_password: bool,
    client_id: Optional[str],
    port: Optional[int],
    token_file: Optional[Path],
    has_passphrase: bool,
    keep_passphrase: bool,
    identity_file: Optional[Path],
    recipients: tuple[str, ...],
    **options: Any,
) -> None:
    """Add a place: the path of a folder, or a URL.

    With --encrypted or --identity-file, nobody who has only the files there can read them. This holds from the first push on, which
    must be to an empty place.

    Cloud drives (gdrive:, onedrive:, box:, pcloud:) need tokens. --client-id asks for them in the browser; they are stored for your user,
    in ~/.local/state/llvs/tokens or in --token-file. --token-file alone names a file with tokens (also for CloudKit, cloudkit:). An app
    that is registered with the redirect address http://127.0.0.1:PORT/ needs --port.
    """
    known = _remotes()
    remotes.check_name(name)
    if name in known.places:
        raise Failure(f'there is a remote "{name}" already: remove it first with "llvs remote remove {name}"', MISUSED)
    if port is not None and client_id is None:
        raise Failure("a port is for signing in: give --client-id ID as well", MISUSED)
    place: dict[str, Any] = {"url": remotes.address_of(url)}
    for key, value in options.items():
        if value is not None:
            place[key] = str(value.absolute()) if isinstance(value, Path) else value
    if "ca_file" in place:
        place["ca_file"] = str(Path(place["ca_file"]).absolute())
    if client_id is not None or token_file is not None:
        remotes.check_drive(place["url"], signs_in=client_id is not None)
        where = known.own_token_file(name, place["url"]) if token_file is None else token_file.absolute()
        if client_id is None and not where.is_file():
            raise Failure(f"there is no file {where}: give --client-id ID to sign in", MISUSED)
        place["token_file"] = str(where)
    remotes.check_place(session().reading(), place)
    if has_passphrase or keep_passphrase:
        place["encrypted"] = True
    if identity_file is not None:
        place["identity_file"] = str(identity_file.absolute())
    if recipients:
        place["recipients"] = list(recipients)
        if not encrypted.is_encrypted(place):
            raise Failure("a recipient is for an encrypted place: give --encrypted or --identity-file FILE as well", MISUSED)
    # No question is asked before all arguments are known to be valid.
    with contextlib.ExitStack() as signed_in:
        if client_id is not None:
            remotes.sign_in(place["url"], Path(place["token_file"]), client_id, place.get("ca_file"), port or 0)
            if token_file is None:
                signed_in.callback(remotes.forget_tokens, place["token_file"])
        if keep_passphrase:
            encrypted.keep_passphrase(place["url"])
        if keep_password:
            password = output.ask(f"Password at {url}")
            key_store.keep(place["url"], options["user"] or "", password)
        known.places[name] = place
        known.trust(name)
        known.write()
        signed_in.pop_all()
    output.show([f"{name} is {place['url']}"])


@remote_command.command("list")
@click.option("--json", "is_json", is_flag=True, help="One JSON text in each line.")
def list_command(is_json: bool) -> None:
    """List the places."""
    places = _remotes().places
    if is_json:
        output.show_json_lines({"name": name, **place} for name, place in sorted(places.items()))
    elif places:
        output.show(output.table([[name, place["url"]] for name, place in sorted(places.items())]))
    else:
        output.say('no remotes: "llvs remote add NAME URL" adds one')


@remote_command.command("trust")
@_name_argument
def trust_command(name: str) -> None:
    """Allow exchanges with a remote that came with the store, or whose store was moved. Check it first: it gets the store and your
    password."""
    known = _remotes()
    place = known.find(name)
    known.trust(name)
    output.show([f"{name} is trusted: " + ", ".join(f"{key} {place[key]}" for key in sorted(place))])


@remote_command.command("remove")
@_name_argument
def remove_command(name: str) -> None:
    """Remove a place from the list. Its contents stay. The password, passphrase and tokens that are stored for it with your user are
    deleted.

    They stay if another remote has the same address, also one of another store, or if the remote came with the store.
    """
    known = _remotes()
    place = known.find(name)
    own_tokens = known.own_token_file(name, place["url"])
    # A remote that came with a store, and was not added here, may name the place, or the tokens, of another remote.
    is_trusted = known.is_trusted(name)
    if known.remove(name):
        key_store.forget(place["url"], place.get("user") or "")
        encrypted.forget_passphrase(place["url"])
    elif key_store.get(place["url"], place.get("user") or "") or encrypted.has_passphrase(place["url"]):
        output.say(f"what the system's key store has for {place['url']} is kept: another store may use it")
    remotes.forget_tokens(str(own_tokens))
    tokens = place.get("token_file")
    if tokens is not None and remotes.keeps_tokens(tokens) and all(other.get("token_file") != tokens for other in known.places.values()):
        if is_trusted:
            remotes.forget_tokens(tokens)
        else:
            output.say(f"it names the tokens in {tokens}: delete that file if no other store uses it")
    output.show([f"{name} is forgotten"])


@remote_command.command("check")
@click.argument("name", required=False, shell_complete=completion.remotes)
def check_command(name: Optional[str]) -> int:
    """Check whether each place, or the one with NAME, answers. Exchanges nothing. If one does not, exits as a pull would."""
    known, store = _remotes(), session().reading()
    worst = DONE
    for called, place in known.wanted(name).items():
        try:
            with remotes.reaching([place]), llvs.Exchange(store, remotes.place_of(place), create=False) as exchange:
                found = exchange.snapshot()
            told = "answers" if found is None else f"answers, with a snapshot of {output.counted(found.version_count, 'version')}"
        except (llvs.Error, Failure) as problem:
            stop_if_interrupted()
            told, code = explain(problem)
            worst = max(worst, code)
        output.show([f"{called}: {told}"])
    return worst


@contextlib.contextmanager
def _way(name: str) -> Iterator[llvs.Exchange]:
    """Opens an exchange with a remote, to read or change its members. Works while another program has the store open."""
    path, storage = session().place()
    place = remotes.Remotes(path, storage).checked(name)
    with llvs.Store(path, storage=storage, create=False) as store, remotes.reaching([place]):
        with llvs.Exchange(store, remotes.place_of(place), create=False) as way:
            yield way


@remote_command.command("members")
@_name_argument
@click.option("--json", "is_json", is_flag=True, help="One JSON text in each line.")
def members_command(name: str, is_json: bool) -> None:
    """List the members of an encrypted place: those who have its keys."""
    with _way(name) as way:
        members = way.members()
    if is_json:
        output.show_json_lines(member._asdict() for member in members)
    else:
        output.show(output.table([[member.recipient, member.kind, member.name, member.added] for member in members]))


@remote_command.command("add-member")
@_name_argument
@click.argument("recipient")
@click.option("--label", default="", metavar="TEXT", help="For people: whose it is.")
@click.option("--kind", type=click.Choice(["device", "host", "recovery"]), default="device", help="For people, too.")
def add_member_command(name: str, recipient: str, label: str, kind: llvs.words.MemberKind) -> None:
    """Give the keys of an encrypted place to a new member: RECIPIENT is the public half of its identity, age1..."""
    with _way(name) as way:
        way.add_member(recipient, label, kind=kind)
    output.show([f"{recipient} can open {name}"])


@remote_command.command("remove-member")
@_name_argument
@click.argument("recipient")
def remove_member_command(name: str, recipient: str) -> None:
    """Remove a member, who gets no later keys. The member can still read what is there now, if they can reach it."""
    with _way(name) as way:
        way.remove_member(recipient)
    output.show([f"{recipient} opens nothing that is written from now on"])


@remote_command.command("change-passphrase")
@_name_argument
@click.option("--leaked", is_flag=True, help="Somebody else has the old one: what is written from now on gets other keys.")
def change_passphrase_command(name: str, leaked: bool) -> None:
    """Set another passphrase for an encrypted place. Other devices ask for it at their next exchange.

    The new passphrase is asked for, or taken from LLVS_NEW_PASSPHRASE. If the system's key store has the old one, it is replaced there.
    """
    url = _remotes().find(name)["url"]
    new = encrypted.new_passphrase(url)
    with _way(name) as way:
        way.change_passphrase(new, leaked=leaked)
    encrypted.replace_passphrase(url, new)
    output.show([f"{name} has another passphrase"])


@remote_command.command("join-keys")
@_name_argument
def join_keys_command(name: str) -> None:
    """Join the keys of an encrypted place that two devices renewed at the same time.

    Only members of this device's side stay members. "llvs sync" names those of the other side: add those that you know again.
    """
    with _way(name) as way:
        way.join_keys()
    output.show([f"the keys of {name} are joined"])


@remote_command.command("rekey")
@_name_argument
@click.option("--renew", is_flag=True, help="Make keys first that only the members of now have.")
def rekey_command(name: str, renew: bool) -> None:
    """Send all contents of an encrypted place again, with its newest keys: holders of older keys can then read nothing there.

    Use it after a device or a key was lost; remove its member first. Exchanges of the next two days delete the old contents.
    """
    with _way(name) as way:
        left = way.rekey(renew=renew)
    told = "nothing with older keys is left" if not left else f"{output.counted(left, 'pack')} with older keys will be deleted later"
    output.show([f"{name} is sent anew; {told}"])


@remote_command.command("retire")
@_name_argument
def retire_command(name: str) -> None:
    """Send everything that is left to a place in packs, and announce that this store sends nothing more there: other devices then clean
    up."""
    with _way(name) as way:
        sent = len(way.retire().sent)
    output.show([f"{name}: {output.counted(sent, 'version')} sent, and no more is to come"])


@remote_command.command("differences")
@_name_argument
def differences_command(name: str) -> None:
    """Let all devices write values to a place in packs as differences from earlier ones, which take far less room. New places have it from
    the start. It cannot be turned off: a library that does not know differences does not read the new versions."""
    with _way(name) as way:
        sent = len(way.enable_differences().sent)
    output.show([f"{name}: {output.counted(sent, 'version')} sent; from now on its values may be differences"])


@remote_command.command("new-identity")
@click.argument("file", type=click.Path(path_type=Path))
def new_identity_command(file: Path) -> None:
    """Make an identity of age in a new FILE that only its owner can read, and show its public half. Everyone who has the file
    can open what is encrypted to it."""
    output.show([encrypted.make_identity(file)])
