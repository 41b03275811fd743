"""`llvs erase`, `llvs erasures`, `llvs forgetting` and `llvs forget`: removing the bytes of values for good, whose orders count, and what
is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Optional

import click

import llvs

from . import completion, output, progress
from .failures import DONE, MISUSED, NOT_SO, Failure
from .session import session

ErasureState = llvs.store.ErasureState
_PREFIX = "__llvs_forget/order/"
_GONE = llvs.store.ErasureReason.NONE
_REASONS = {
    llvs.store.ErasureReason.EXCHANGE: "until this device exchanges with it",
    llvs.store.ErasureReason.POLICY: "the policy of this device erases only here",
    llvs.store.ErasureReason.DEVICE: "it has to follow the order itself",
    llvs.store.ErasureReason.BIN: "it may keep deleted files",
    llvs.store.ErasureReason.MEDIUM: "the file system keeps old contents",
    llvs.store.ErasureReason.FOREIGN: "other programs read it",
    llvs.store.ErasureReason.STREAM: "nothing is known of them",
    llvs.store.ErasureReason.BACKUP: "nothing is known of them",
}
_json_option = click.option("--json", "is_json", is_flag=True, help="As one JSON document.")
_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("erase")
@click.argument("ids", nargs=-1, shell_complete=completion.ids)
@click.option("--at", "version", metavar="VERSION", default=None, help="Only the values at this version, and equal ones under their ids.")
@click.option("--containing", type=_file, default=None, help="All values that contain the bytes of this file, too.")
@click.option("--replacement", type=_file, default=None, help="What prevails afterwards, instead of nothing.")
@click.option("--signer", type=_file, default=None, help="For stewards: a file with the private key of the one who signs, 32 bytes.")
@click.option("--why", default="", help="A text that is stored with the order. Everybody with the store can read it.")
@click.option("--dry-run", is_flag=True, help="Only show what would be erased.")
@_json_option
def erase_command(
    ids: tuple[str, ...],
    version: Optional[str],
    containing: Optional[Path],
    replacement: Optional[Path],
    signer: Optional[Path],
    why: str,
    dry_run: bool,
    is_json: bool,
) -> int:
    """Erase the bytes of values for good, on this device: all that was ever stored under IDS.

    Places, other devices and backups keep what they have: see docs/forgetting.md.
    """
    if not ids and containing is None:
        raise Failure("give the ids of values, or --containing", MISUSED)
    at = None if version is None else session().find(version)
    writing = None if dry_run else session().writing()
    store = session().reading() if writing is None else writing.store
    with progress.shown() as hear:
        report = store.erase(
            *ids,
            at=at,
            containing=b"" if containing is None else containing.read_bytes(),
            replacement=None if replacement is None else replacement.read_bytes(),
            signer=b"" if signer is None else signer.read_bytes(),
            why=why,
            dry_run=dry_run,
            progress=hear,
        )
    if writing is not None:
        for made in report.made:
            version_made = store.version(made)
            if version_made is not None and writing.current_version.id in version_made.predecessors:
                writing.current_version = version_made
                break
    if is_json:
        output.show_json(report._asdict())
    else:
        output.show(_rows(report, dry_run))
    return NOT_SO if report.waiting else DONE


def _rows(report: llvs.store.EraseReport, dry_run: bool) -> list[str]:
    what = f"{output.counted(report.values, 'value')} of {output.counted(report.versions, 'version')} ({output.size_text(report.bytes)})"
    rows = [f"{'would erase' if dry_run else 'erased'} {what}" if report.values else "nothing to erase"]
    if report.copies:
        rows.append(f"  {report.copies:,} of them with sides of conflicts that were chosen between")
    if report.rewritten:
        rows.append(f"  {output.counted(report.rewritten, 'value')} stored anew, which were differences from these")
    if report.unread:
        rows.append(output.style(f"  {output.counted(report.unread, 'version')} cannot be read, and may have the bytes", "warning"))
    rows += [output.style(f"  waiting: {why}", "warning") for why in report.waiting]
    return rows + [f"  {row}" for row in _place_rows(report.places)]


def _place_rows(places: tuple[llvs.store.ErasurePlace, ...]) -> list[str]:
    """Where else the bytes may be, a line for each place."""
    rows = []
    for place in places:
        name = place.name or "backups, exports and copies"
        row = f"{place.reach.value}: {name}" + ("" if place.reason is _GONE else f" ({_REASONS[place.reason]})")
        rows.append(row if place.reason is _GONE else output.style(row, "warning"))
    return rows


@click.command("erasures")
@click.argument("what", type=click.Choice(["approve", "keep", "sign"]), required=False)
@click.argument("order", required=False)
@click.option("--signer", type=_file, default=None, help="For sign: a file with the private key of the steward, 32 bytes.")
@click.option("--places", "is_long", is_flag=True, help="Also where else the bytes of each order may be, as far as this device knows.")
@_json_option
def erasures_command(what: Optional[str], order: Optional[str], signer: Optional[Path], is_long: bool, is_json: bool) -> int:
    """Show the orders to erase values, and decide about those of other devices.

    "approve ORDER" follows an order that waits for a decision or a delay; "keep ORDER" keeps its bytes on this device; "sign
    ORDER" signs it as a steward. ORDER is what the list shows.
    """
    if what is None:
        store = session().reading()
    else:
        if order is None:
            raise Failure(f"give the order to {what}, as llvs erasures shows it", MISUSED)
        if (what == "sign") != (signer is not None):
            raise Failure("give --signer to sign an order, and only then", MISUSED)
        store = session().writing().store
        id = order if order.startswith(_PREFIX) else _PREFIX + order
        if signer is not None:
            store.sign_erasure(id, signer.read_bytes())
        else:
            store.decide_erasure(id, keep=what == "keep")
    found = store.erasures()
    if is_json:
        output.show_json([{**erasure._asdict(), "followed": erasure.followed} for erasure in found])
    else:
        table = [["order", "made", "values", "", "why"]]
        for one in found:
            table.append([one.id[len(_PREFIX) :], one.made, f"{one.values:,}", _state_text(one), one.why])
        output.show(output.table(table, right=frozenset({2})) if found else ["no orders"])
        if is_long:
            for one in found:
                output.show([f"{one.id[len(_PREFIX) :]}:"] + [f"  {row}" for row in _place_rows(one.places)])
    settled = (ErasureState.FOLLOWED, ErasureState.KEPT, ErasureState.NOT_VALID)
    return DONE if all(erasure.state in settled for erasure in found) else NOT_SO


def _state_text(erasure: llvs.store.Erasure) -> str:
    """Where an order stands."""
    if erasure.state is ErasureState.UNSIGNED:
        return f"signed by {erasure.signatures} of {erasure.needed}"
    return str(erasure.state.value)


@click.command("forgetting")
@click.argument("mode", type=click.Choice(["nobody", "members", "stewards", "anyone"]), required=False)
@click.option("--secret", "secrets", type=_file, multiple=True, help="For members: a file with what all devices share. The first signs.")
@click.option("--key", "keys", multiple=True, help="For stewards: the public key of one, in hexadecimal.")
@click.option("--need", type=click.IntRange(min=1), default=1, help="For stewards: how many must sign.")
@click.option("--delay", type=click.IntRange(min=0), default=0, help="Seconds until an order of another device is followed.")
@click.option("--keep", metavar="JSON", default=None, help='What this device keeps, as in {"days":30,"daily":90}; "all" for everything.')
@_json_option
def forgetting_command(
    mode: Optional[str], secrets: tuple[Path, ...], keys: tuple[str, ...], need: int, delay: int, keep: Optional[str], is_json: bool
) -> int:
    """Show or set whose orders to erase count on this device (nobody else's, those of members with a secret, those that stewards signed, or
    anyone's), and what this device keeps."""
    if mode is None and (secrets or keys or delay):
        raise Failure("give the mode as well: nobody, members, stewards or anyone", MISUSED)
    if mode is None and keep is None:
        policy = session().reading().forgetting()
    else:
        given: dict[str, object] = {}
        if mode is not None:
            erase: dict[str, object] = {"mode": mode, "delay": delay} if delay else {"mode": mode}
            if mode == "stewards":
                erase.update(keys=list(keys), need=need)
            given["erase"] = erase
        if keep is not None:
            given["keep"] = None if keep == "all" else _kept(keep)
        store = session().writing().store
        store.set_forgetting(given, secrets=[secret.read_bytes() for secret in secrets])
        policy = store.forgetting()
    if is_json:
        output.show_json(policy)
    else:
        rule = policy["erase"]
        after = f", after {rule['delay']:,} seconds" if rule.get("delay") else ""
        kept = json.dumps(policy["keep"], ensure_ascii=False) if "keep" in policy else "everything"
        output.show([f"orders of other devices: {rule['mode']}{after}", f"keeps: {kept}"])
    return DONE


def _kept(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Failure(f"{text!r} is no JSON: {error}", MISUSED) from error


@click.command("forget")
@click.option("--dry-run", is_flag=True, help="Only show what would be forgotten, and what each rule keeps.")
@click.option("--keep", metavar="JSON", default=None, help="For a dry run: rules to try, instead of those of the store.")
@_json_option
def forget_command(dry_run: bool, keep: Optional[str], is_json: bool) -> int:
    """Forget the values that the policy of this device does not keep: see llvs forgetting --keep.

    Other devices and places keep what they have.
    """
    if keep is not None and not dry_run:
        raise Failure("--keep tries rules: give --dry-run as well, or set them by llvs forgetting --keep", MISUSED)
    store = session().reading() if dry_run else session().writing().store
    with progress.shown() as hear:
        report = store.forget(dry_run=dry_run, policy=None if keep is None else {"keep": _kept(keep)}, progress=hear)
    if is_json:
        output.show_json({**report._asdict(), "rows": [row._asdict() for row in report.rows]})
        return DONE
    what = f"{output.counted(report.values, 'value')} of {output.counted(report.versions, 'version')} ({output.size_text(report.bytes)})"
    rows = [f"{'would forget' if dry_run else 'forgot'} {what}" if report.values else "nothing to forget"]
    if report.rewritten:
        rows.append(f"  {output.counted(report.rewritten, 'value')} stored whole, which were differences from these")
    for row in report.rows:
        if row.values:
            rows.append(f"  only {row.rule.value} keeps {output.counted(row.values, 'value')} ({output.size_text(row.bytes)})")
    output.show(rows + [output.style(f"  waiting: {why}", "warning") for why in report.waiting])
    return DONE
