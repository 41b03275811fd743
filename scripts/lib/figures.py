"""The figures that documents name, and their sources: the headers, the code, the tables of scripts/bench, the logs of scripts/test, or the
program scripts/lib/figure_program.py. scripts/check_figures.py compares them.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from read_header import read_header

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LLVS_BUILD", ROOT / "build"))


@dataclass(frozen=True)
class Figure:
    """A number, or None if its source is missing. `about`: the relative difference that two runs may have."""

    value: Callable[[], float | None]
    about: float = 0


def number(text: str) -> float:
    return float(text.replace(",", "").replace("_", ""))


def constant(name: str) -> Figure:
    """A constant of the headers."""
    return Figure(lambda: float(read_header().constants[name]))


def code(path: str, pattern: str, times: int = 1) -> Figure:
    """A number in a source file, after a pattern. A file without a folder is searched in the engine."""

    def value() -> float:
        file = ROOT / path if "/" in path else next((ROOT / "Sources").rglob(path))
        found = re.search(pattern + r"\s*([\d_.]+)(?: << (\d+))?", file.read_text())
        if not found:
            raise SystemExit(f"scripts/lib/figures.py: {path} has nothing like {pattern}")
        return number(found[1]) * (1 << int(found[2] or 0)) * times

    return Figure(value)


def sized(path: str, pattern: str, unit: int) -> Figure:
    """The same in KiB, MiB, minutes."""
    return Figure(lambda: (code(path, pattern).value() or 0) / unit)


KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def requests_of_a_send(pattern: str) -> Figure:
    """The requests of a send, listing included, as the test of packed remotes asserts them for a kind of place."""
    return Figure(lambda: 1 + (code("Tests/Network/places.py", pattern).value() or 0))


def log(name: str, pattern: str, about: float = 0) -> Figure:
    """The last number in a log that a pattern finds."""

    def value() -> float | None:
        path = BUILD / "logs" / name
        found = re.findall(pattern, path.read_text(errors="replace")) if path.exists() else []
        return number(found[-1]) if found else None

    return Figure(value, about)


def nth(name: str, index: int, pattern: str, about: float = 0) -> Figure:
    """The n-th number in a log that a pattern finds."""

    def value() -> float | None:
        path = BUILD / "logs" / name
        found = re.findall(pattern, path.read_text(errors="replace")) if path.exists() else []
        return number(found[index]) if index < len(found) else None

    return Figure(value, about)


def added(name: str, pattern: str, about: float) -> Figure:
    """The sum of all numbers in a log that a pattern finds."""

    def value() -> float | None:
        path = BUILD / "logs" / name
        found = re.findall(pattern, path.read_text(errors="replace")) if path.exists() else []
        return sum(map(number, found)) if found else None

    return Figure(value, about)


def total(program: str, what: str, about: float = 0.25) -> Figure:
    """A count in the last line but one of a test program's log: "kills: 12"."""
    return log(f"{program}.log", rf"(?m)^(?!ok).*?\b{what}: (\d+)", about)


def passed(suite: str, about: float = 0.5) -> Figure:
    """The number of tests of a suite that passed in its last run. It grows with new tests."""
    return log(f"{suite}.result", r"^(\d+)", about)


def passed_in_all() -> Figure:
    """The tests of all suites that scripts/test runs before 90-figures, which compares this number."""

    def value() -> float | None:
        suites = [path.name for path in (ROOT / "scripts/suites").iterdir()
                  if not re.search(r"^# (needs: all|deep: only)", path.read_text(), re.M)]
        counts = [passed(suite).value() for suite in suites]
        return None if None in counts else sum(count or 0 for count in counts)

    return Figure(value, 0.3)


def row(label: str, values: str, column: int) -> Figure:
    """A row of the table in docs/performance.md: 0 is ours, 1 the yardstick's. values: "any" if the table has the worst of several."""

    def value() -> float:
        for line in (ROOT / "docs/performance.md").read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) > 4 and cells[0] == label and values in (cells[1], "any"):
                return number(cells[3 + column])
        raise SystemExit(f"scripts/lib/figures.py: docs/performance.md has no row {label}, {values}")

    return Figure(value)


@functools.cache
def printed() -> dict[str, float]:
    """Returns the output of the program; nothing if the library is not built."""
    library = BUILD / "lib/libllvs.so"
    if not library.exists():
        return {}
    environment = os.environ | {"LLVS_LIBRARY": str(library), "PYTHONPATH": str(ROOT / "bindings/python/src")}
    lines = subprocess.run(
        [sys.executable, str(ROOT / "scripts/lib/figure_program.py")], env=environment, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return {name: float(text) for name, text in (line.split() for line in lines)}


def program(name: str, about: float = 0) -> Figure:
    return Figure(lambda: printed().get(name), about)


FIGURES: dict[str, Figure] = {
    "limit.value_id": constant("LLVS_VALUE_ID_SIZE_MAX"),
    "limit.version_id": constant("LLVS_VERSION_ID_SIZE_MAX"),
    "limit.value_gib": Figure(lambda: read_header().constants["LLVS_VALUE_SIZE_MAX"] / (1 << 30)),
    "limit.metadata_mib": Figure(lambda: code("Sources/LLVSCore/Support/Limits.swift", "metadataSize =").value() / (1 << 20)),
    "limit.metadata_key": code("Sources/LLVSCore/Support/Limits.swift", "metadataKeySize ="),
    "limit.branch": code("Sources/LLVSCore/Support/Limits.swift", "branchNameSize ="),
    "limit.changes": code("Sources/LLVSCore/Support/Limits.swift", "changesPerVersion ="),
    "limit.json_depth": code("Sources/LLVSDocuments/Documents/JSONTreeParser.swift", "depthLimit ="),
    "limit.json_mib": Figure(lambda: code("Sources/LLVSDocuments/Documents/JSONTreeParser.swift", "sizeLimit =").value() / (1 << 20)),
    "exchange.problems": code("Sources/LLVSExchange/Exchange/ExchangeTransport.swift", "problemCount ="),
    "exchange.foreign": code("Sources/LLVSExchange/Exchange/ExchangeTransport.swift", "foreignCount ="),
    "exchange.batch": code("Sources/LLVSExchange/Exchange/ExchangeTransport.swift", "batchSize ="),
    "limit.metadata_keys": code("Sources/LLVSCore/Support/Limits.swift", "metadataKeys ="),
    "map.leaf_ids": code("Sources/LLVSCore/Map/MapNode.swift", "leafCapacity ="),
    "map.leaf_kib": sized("Sources/LLVSCore/Map/MapNode.swift", "leafBytes =", KIB),
    "map.chains": code("Sources/LLVSCore/Map/MapPolicy.swift", "mostChains ="),
    "map.longest_delta": code("Sources/LLVSCore/Map/MapPolicy.swift", "longestDelta ="),
    "map.many_changes": code("Sources/LLVSCore/Map/MapPolicy.swift", "manyChanges ="),
    "map.page_kib": sized("Sources/LLVSCore/Map/FlatMapFile.swift", "blockSize =", KIB),
    "history.most_keys": code("Sources/LLVSCore/Map/MapPolicy.swift", "longestIndexed ="),
    "records.tables_mib": sized("Sources/LLVSCore/Support/MemoryAccount.swift", r"changeTables = min\(", MIB),
    "records.largest_block_kib": sized("Sources/LLVSCore/Records/StoreBlocks.swift", "largest =", KIB),
    "storage.blob_mib": sized("Sources/LLVSCore/Storage/File/FileStorage.swift", r"blobThreshold: Int\? =", MIB),
    "storage.blob_block_kib": sized("Sources/LLVSCore/Storage/File/BlobDirectory.swift", "blockSize =", KIB),
    "storage.long_room_kib": sized("Sources/LLVSCore/Storage/File/SegmentWriter.swift", "longRoom: UInt64 =", KIB),
    "store.whole_digests": code("Sources/LLVSCore/Store/Making/WholeDigests.swift", "limit ="),
    "store.memory_budget_mib": sized("Sources/LLVSCore/Store/Store.swift", "memoryBudget =", MIB),
    "store.grace_minutes": sized("Sources/LLVSCore/Storage/File/FileStorage.swift", "compactionGrace: Double =", 60),
    "store.busy_timeout": code("Sources/LLVSCore/Store/Store.swift", "busyTimeout: Double ="),
    "exchange.whole_file_mib": sized("Sources/LLVSExchange/Exchange/ExchangeTransport.swift", "wholeFileSize =", MIB),
    "exchange.file_gib": sized("Sources/LLVSCore/Format/InterchangeDecoder.swift", "largestFile =", GIB),
    "exchange.verified": code("Sources/LLVSExchange/Exchange/ExchangeTransport.swift", "verifiedCount ="),
    "exchange.json_depth": code("Sources/LLVSCore/Format/JSONReader.swift", "depthLimit ="),
    "snapshot.chunk": code("Sources/LLVSCore/Format/SnapshotLimits.swift", "chunkSize ="),
    "snapshot.chunks": code("Sources/LLVSCore/Format/SnapshotLimits.swift", "chunkCount ="),
    "snapshot.foreign_chunk_mib": sized("Sources/LLVSCore/Format/SnapshotLimits.swift", "foreignChunkSize =", MIB),
    "snapshot.version_file_mib": sized("Sources/LLVSCore/Format/SnapshotLimits.swift", "versionFileSize =", MIB),
    "import.node_mib": sized("Sources/LLVSUpkeep/Import/ForeignStoreDirectory.swift", "nodeSize =", MIB),
    "remote.of_transfer": code("TransferPatience.swift", "ofTransfer ="),
    "remote.of_server": code("TransferPatience.swift", "ofServer ="),
    "remote.least_rate": code("TransferPatience.swift", "leastRate ="),
    "remote.least_listing_rate": code("TransferPatience.swift", "leastListingRate ="),
    "remote.answer": code("TransferPatience.swift", "answer ="),
    "syncer.turn": code("SyncSchedule.swift", "turn ="),
    "remote.stall": code("Sources/LLVSNetwork/Network/HTTPRequest.swift", "stall ="),
    "remote.connect": code("Sources/LLVSNetwork/Network/HTTPClient.swift", r"min\("),
    "remote.longest_wait": code("Sources/LLVSNetwork/Network/HTTPClient.swift", "longestWait ="),
    "remote.listing_mib": sized("Sources/LLVSNetwork/Network/XMLReader.swift", "mostInAll =", MIB),
    "remote.freshness": code("Sources/LLVSExchange/Remote/RemoteTransport.swift", "freshness ="),
    "requests.nothing_new": code("Tests/Network/test_packed.py", r"exchange\(store, place\) =="),
    "requests.send_bucket": requests_of_a_send(r"Place\(bucket.url\(name\), bucket.requests,"),
    "requests.send_server": requests_of_a_send(r'Place\(f"{server.url}{name}/", server.requests,'),
    "requests.packs": code("Tests/Services/test_new_devices.py", "PACKS = 5, 16,"),
    "requests.new_drive": code("Tests/Services/test_new_devices.py", '"gdrive":'),
    "requests.new_box": code("Tests/Services/test_new_devices.py", '"box":'),
    "requests.new_pcloud": code("Tests/Services/test_new_devices.py", '"pcloud":'),
    "requests.new_cloudkit": code("Tests/Services/test_new_devices.py", '"cloudkit":'),
    "packs.inline_mib": sized("Sources/LLVSExchange/Packs/PackFormat.swift", "inlineValue =", MIB),
    "packs.part_mib": sized("Sources/LLVSExchange/Packs/PackFormat.swift", "partSize =", MIB),
    "packs.smallest_blob_kib": sized("Sources/LLVSExchange/Packs/PackFormat.swift", "smallestBlob =", KIB),
    "packs.blobs": code("Sources/LLVSExchange/Packs/PackFormat.swift", "blobsLimit ="),
    "live.pairing": code("Sources/LLVSExchange/Encryption/Pairing.swift", "size ="),
    "live.invitation": code("Sources/LLVSLive/Invitation.swift", "size ="),
    "live.digits": code("Sources/LLVSLive/Invitation.swift", "digitCount ="),
    "live.handshake": code("Sources/LLVSLive/LiveLink.swift", "handshakeLimit ="),
    "live.message": code("Sources/LLVSLive/LiveLink.swift", "messageLimit ="),
    "live.frame_mib": sized("Sources/LLVSLive/LiveFrame.swift", "static let limit =", MIB),
    "live.heads": code("Sources/LLVSLive/LiveFrame.swift", "headsLimit ="),
    "live.listed_heads": code("Sources/LLVSLive/LiveFrame.swift", "listedHeads ="),
    "live.samples": code("Sources/LLVSLive/LiveFrame.swift", "samplesLimit ="),
    "live.ids": Figure(lambda: sum(
        code("Sources/LLVSLive/LiveFrame.swift", name).value() or 0 for name in ("listedHeads =", "samplesLimit ="))),
    "live.hashes": code("Sources/LLVSLive/LiveFrame.swift", "hashesLimit ="),
    "live.ranges": code("Sources/LLVSLive/RangeReconciliation.swift", "most ="),
    "live.range_listed": code("Sources/LLVSLive/RangeReconciliation.swift", "listed ="),
    "live.range_frames": code("Sources/LLVSLive/RangeReconciliation.swift", "frames ="),
    "live.negotiations": code("Sources/LLVSLive/PeerKnowledge.swift", "atOnce ="),
    "live.place": code("Sources/LLVSLive/PeerKnowledge.swift", "ofPlace ="),
    "live.place_a_second": code("Sources/LLVSLive/PeerKnowledge.swift", "ofPlaceASecond ="),
    "live.unasked_kib": sized("Sources/LLVSLive/LiveFrame.swift", "unaskedLimit =", KIB),
    "live.raw_mib": sized("Sources/LLVSLive/LiveFrame.swift", "rawLimit =", MIB),
    "live.smallest_window": code("Sources/LLVSLive/LiveFrame.swift", "smallestWindow: UInt64 ="),
    "live.largest_window_mib": sized("Sources/LLVSLive/LiveFrame.swift", "largestWindow: UInt64 =", MIB),
    "live.want_mib": sized("Sources/LLVSLive/LiveFrame.swift", "wantLimit: UInt32 =", MIB),
    "live.news": code("Sources/LLVSLive/LiveFrame.swift", "newsLimit ="),
    "live.quiet": code("Sources/LLVSLive/AskedVersions.swift", "quiet ="),
    "live.patience": code("Sources/LLVSLive/AskedVersions.swift", r"quiet = [0-9.]+, patience ="),
    "live.payload_mib": sized("Sources/LLVSLive/LiveVersions.swift", "payloadLimit =", MIB),
    "live.begun": code("Sources/LLVSLive/LiveVersions.swift", "begunLimit ="),
    "live.refused": code("Sources/LLVSLive/LiveVersions.swift", "refusedLimit ="),
    "live.opening": code("Sources/LLVSLive/PeerSession.swift", "static let patience ="),
    "live.silent": code("Sources/LLVSLive/PeerSession.swift", "if silent >"),
    "live.sign_kib": sized("Sources/LLVSLive/PeerSession.swift", "static let sign =", KIB),
    "live.links_of_device": code("Sources/LLVSLive/PeerKnowledge.swift", "linksOfDevice ="),
    "live.links_of_place": code("Sources/LLVSLive/PeerKnowledge.swift", "linksOfPlace ="),
    "live.ping": code("Sources/LLVSLive/PeerSession.swift", r"Connect again.\"\) }\s+if silent >"),
    "live.earlier": code("Sources/LLVSLive/LiveFrame.swift", "earlierLimit ="),
    "live.idle": code("Sources/LLVSLive/PeerSession.swift", "idleLimit ="),
    "live.comparing": sized("Sources/LLVSLive/DigitComparison.swift", "patience =", 60),
    "live.half_open": code("Sources/LLVSLive/Admission.swift", "halfOpen ="),
    "live.half_open_known": code("Sources/LLVSLive/Admission.swift", "halfOpenKnown ="),
    "live.from_one": code("Sources/LLVSLive/Admission.swift", "fromOne ="),
    "live.strangers": code("Sources/LLVSLive/Admission.swift", "strangers ="),
    "live.known": code("Sources/LLVSLive/Admission.swift", "knownLimit ="),
    "index.parts": code("IndexDefinition.swift", "mostParts ="),
    "index.keys": code("IndexDefinition.swift", "mostKeys ="),
    "index.room_kib": sized("IndexDefinition.swift", "leastRoom =", KIB),
    "index.room": code("IndexDefinition.swift", "roomForEachByte ="),
    "index.key": Figure(lambda: (code("IndexKey.swift", "limit =").value() or 0) - 1),
    "index.fewest": code("Sources/LLVSMerge/Index/IndexFile.swift", "fewestValues ="),
    "index.files": code("Sources/LLVSMerge/Index/IndexFile.swift", "mostFiles ="),
    "json.digits": code("Sources/LLVSDocuments/Documents/JSONDecimal.swift", "digitLimit ="),
    "store.memory_per_version": program("memory_per_version", 0.01),
    "store.bytes_per_version": program("bytes_per_version", 0.01),
    "store.index_per_version": program("index_per_version", 0.02),
    "store.map_per_id": program("map_per_id", 0.05),
    "folder.files_per_version": program("folder_files_per_version"),
    "folder.bytes_per_version": program("folder_bytes_per_version", 0.02),
    "tests.all": passed_in_all(),
    **{f"tests.{path.name}": passed(path.name) for path in sorted((ROOT / "scripts/suites").iterdir()) if path.name < "70"},
    "faults.killed": total("test_crash", "processes killed"),
    "faults.looked_for": total("test_crash", "acknowledged versions looked for"),
    "faults.recordings": total("test_power_cut", "recordings"),
    "faults.cuts": total("test_power_cut", "cuts"),
    "faults.disks": total("test_power_cut", "outcomes looked at"),
    "faults.syncs_failed": total("test_power_cut", "syncs failed"),
    "faults.killed_before_cut": total("test_power_cut", "kills before the cut", 0.4),
    "faults.injected": total("test_errors", "faults injected"),
    "faults.told": total("test_errors", "errors told"),
    "faults.unknown": total("test_errors", "of these unknown outcomes", 0.5),
    "damage.places": total("test_damage", "damages"),
    "damage.harmless": total("test_damage", "harmless"),
    "damage.told": total("test_damage", "told, nothing lost"),
    "damage.lost": total("test_damage", "lost and told"),
    "damage.refused": total("test_damage", "refused"),
    "damage.earlier": total("test_damage", "earlier states", 0.7),
    "damage.salvages": total("test_damage", "salvages"),
    "damage.rescued": total("test_damage", "versions rescued that could not be read"),
    "many.operations": total("test_many_at_once", "operations"),
    "many.killed": total("test_many_at_once", "processes killed", 0.3),
    "many.looked_at": total("test_many_at_once", "versions looked at afterwards"),
    "copies.operations": total("test_copies", "operations"),
    "copies.copied": total("test_copies", "files copied", 0.3),
    "copies.killed": total("test_copies", "processes killed", 0.3),
    "media.operations": total("test_media", "operations", 0.6),
    "media.refused": total("test_media", "calls refused", 0.6),
    "synced.operations": total("test_synced", "operations"),
    "synced.looked_at": total("test_synced", "versions looked at afterwards"),
    "simulated.histories": nth("28-convergence.log", 0, r"(\d+) histories from seed"),
    "simulated.attacked": nth("28-convergence.log", 1, r"(\d+) histories from seed"),
    "simulated.rules": nth("28-convergence.log", 0, r"(\d+) histories with rules from seed"),
    "simulated.merges": nth("28-convergence.log", 0, r"(\d+) merges held against the model", 0.15),
    "injection.runs": added("20-c.xml", r"(\d+) runs, \d+ faults", 0.2),
    "injection.faults": added("20-c.xml", r"\d+ runs, (\d+) faults", 0.2),
    "injection.looked_for": added("20-c.xml", r"(\d+) versions promised and found", 0.2),
    "speed.save": row("one-value versions, normal", "100,000", 0),
    "speed.save_full": row("one-value versions, full, one thread", "100,000", 0),
    "speed.save_full_8": row("one-value versions, full, 8 threads", "100,000", 0),
    "speed.fetch": row("fetch at the head, warm", "100,000", 0),
    "speed.fetch_1m": row("fetch at the head, warm", "1,000,000", 0),
    "speed.fetch_sqlite": row("fetch at the head, warm", "100,000", 1),
    "speed.load_1m": row("load as one version", "1,000,000", 0),
    "speed.past": row("fetch at a random one of 100,000 versions", "1,000,000", 0),
    "speed.open_10k": row("open 10,000 versions, read a value", "any", 0),
    "speed.open_100k": row("open 100,000 versions, read a value", "any", 0),
    "speed.merge": row("merge, 100 + 100 different ids", "100,000", 0),
    "speed.send": row("1,000 versions, folder, syncs: send", "any", 0),
    "speed.retrieve": row("1,000 versions, folder, syncs: retrieve", "any", 0),
    "speed.nothing_new": row("nothing new, 100,000 versions: again", "1,000", 0),
}
