"""The tests of each pitfall of exchanges through places and links, by its number in docs/cloud-drives.md, and of each bad input."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "cloud-drives.md"
SIMULATION, PACKED = "../LLVSExchangeTests/Packed/PackedSimulationTests.swift::", "../LLVSExchangeTests/Packed/PackedExchangeTests.swift::"
KEYS, FORMAT = "../LLVSExchangeTests/Encryption/StoreKeysTests.swift::", "../LLVSExchangeTests/Packs/PackFormatTests.swift::"
SCHEDULE, LISTING = "../LLVSCoordinatorTests/Syncing/SyncScheduleTests.swift::", "../LLVSExchangeTests/Packed/PackedListingTests.swift::"
AGE, SEALED = "../LLVSExchangeTests/Encryption/AgeTests.swift::", "../LLVSExchangeTests/Packed/EncryptedExchangeTests.swift::"
LISTENER, BRIDGED = "../Live/test_listener_bounds.py::", "../LLVSExchangeTests/Packed/BridgedExchangeTests.swift::"
#: By number.
PITFALLS = {
    1: [SIMULATION + "rulesThatAreBrokenAreNoticed"],
    2: [SIMULATION + "rulesThatAreBrokenAreNoticed"],
    3: [SIMULATION + "rulesThatAreBrokenAreNoticed"],
    4: [SIMULATION + "rulesThatAreBrokenAreNoticed", LISTING + "nothingIsDeletedForAMergedPackWithOtherBytes"],
    5: ["test_clouds.py::test_stale_lists", "test_cloudkit_exchange.py::test_stale_lists", PACKED + "missingFilesAreReadLater"],
    6: ["test_gdrive.py::test_a_long_list_is_followed_by_its_changes", "test_gdrive.py::test_changes_that_the_service_has_forgotten",
        "test_onedrive.py::test_changes_that_the_service_has_forgotten", "test_box.py::test_events_are_a_hint",
        "test_pcloud.py::test_a_long_list_is_followed_by_its_changes", "test_cloudkit_exchange.py::test_sync_tokens_that_are_void"],
    7: ["test_wrong_clocks.py::test_a_clock_that_is_wrong_by_a_day"],
    8: [SIMULATION + "nothingIsLostAndAllEndEqual"],
    9: [SIMULATION + "nothingIsLostAndAllEndEqual"],
    10: ["test_gdrive.py::test_folders_of_one_name", "test_gdrive.py::test_two_devices_make_the_place_at_once",
         PACKED + "twoFirstDevicesAtOnce", SEALED + "twoAtOnceMakeOneSetOfKeys"],
    11: [KEYS + "keysAreMadeInAnEmptyPlaceOnly", KEYS + "missingDamagedAndOtherFilesAreDistinguished"],
    12: [AGE + "whatIsDrawnDependsOnWhatIsEncrypted"],
    13: [AGE + "aFileThatIsCutShortIsNoticed"],
    14: [SEALED + "filesThatAreSwappedOrReplayed"],
    15: [AGE + "filesThatAModelMade"],
    16: [AGE + "filesThatAModelMade"],
    17: ["../Python/test_pitfalls.py::test_a_passphrase_takes_64_mib"],
    18: [SEALED + "rootsOfAnotherStore", SEALED + "bothSidesAgreeWhetherThereAreKeys"],
    19: ["../Python/test_encrypted_places.py::test_names_reveal_nothing_of_values"],
    20: ["test_gdrive.py::test_names_that_differ_only_in_case", "test_onedrive.py::test_names_that_differ_only_in_case",
         "test_box.py::test_names_that_differ_only_in_case", FORMAT + "names"],
    21: ["../Network/test_packed.py::test_two_stores_and_their_requests"],
    22: [SCHEDULE + "itBeginsWithARoundAndPollsEverMoreSeldom"],
    23: ["test_tokens.py::test_requests_are_paced"],
    24: ["test_clouds.py::test_too_many_requests_stop_all", SCHEDULE + "theRetryTimeOfAServerHoldsForAllRequests"],
    25: ["test_tokens.py::test_two_processes_renew_once", "test_tokens.py::test_rotated_elsewhere",
         "test_host_tokens.py::test_two_processes_renew_once"],
    26: ["test_clouds.py::test_quota", "test_cloudkit_exchange.py::test_quota", PACKED + "aRemoteThatIsFullOrDeletesNothing"],
    27: ["test_clouds.py::test_a_folder_goes_away", "test_cloudkit_exchange.py::test_a_zone_that_goes_away",
         PACKED + "anEmptiedRemoteIsNotFilled"],
    28: [SIMULATION + "nothingIsLostAndAllEndEqual"],
    29: [PACKED + "whatIsLostIsSentAgain"],
    30: ["test_gdrive.py::test_deletes_that_are_refused", PACKED + "aRemoteThatIsFullOrDeletesNothing"],
    31: [FORMAT + "theEndOfAPackIsEnough"],
    32: ["../LLVSExchangeTests/Packed/PackedCostTests.swift::ofANewDeviceAndOfOneThatWasAway"],
    33: [PACKED + "missingFilesAreReadLater", "../Hostile/test_packed_remotes.py::test_a_pack_that_is_cut_is_sent_again"],
    34: [FORMAT + "bombsAreRefused", "../Hostile/test_packs.py::test_bombs"],
    35: ["../Live/test_many_links.py::test_what_is_saved_while_links_are_opened",
         "../Live/test_many_links.py::test_saves_while_events_are_reported"],
    36: ["test_stopped.py::test_in_the_middle_of_an_upload"],
    37: ["../Python/test_syncer.py::test_progress_is_reported"],
    38: ["test_clouds.py::test_the_bin_of_an_account"],
    39: ["../Network/test_packed.py::test_a_network_remote_keeps_its_layout", BRIDGED + "bothSidesMeet", BRIDGED + "nothingIsSentTwice"],
    40: ["../Python/test_exchange.py::test_foreign_files"],
    41: ["../Python/test_pitfalls.py::test_two_processes_exchange_at_once",
         "../Python/test_pitfalls.py::test_the_second_opener_gets_an_error"],
    42: ["../LLVSExchangeTests/Packed/PackedClaimsTests.swift::aVersionThatIsOnlyListedIsSent"],
    43: [SIMULATION + "nothingIsLostAndAllEndEqual", LISTING + "aCloneHidesBehindTheNumbersOfTheOriginal"],
    44: [LISTENER + "test_frames_that_break_a_rule", LISTENER + "test_who_connects_and_says_nothing",
         LISTENER + "test_versions_whose_predecessors_never_come", LISTENER + "test_who_has_all_looked_through_again_and_again",
         "../Live/test_library.py::test_frames_that_break_a_rule",
         "../Live/test_library.py::test_versions_whose_predecessors_never_come", "../Live/test_library.py::test_lies_about_heads"],
}  # fmt: skip
DRIVES = ("gdrive", "onedrive", "box", "pcloud")
ALL = (*DRIVES, "cloudkit")
#: Changes of accounts and folders, by number in docs/cloud-drives.md and by service; a text says why a service has no such change.
#: Tests of several services have the service as a parameter, with that name.
AT_SERVICES: dict[int, dict[str, object]] = {
    1: {name: ["test_bad_input.py::test_a_token_that_was_revoked"] for name in ALL},
    2: {name: ["test_bad_input.py::test_a_token_that_another_program_renewed"] for name in ALL},
    3: {name: ["test_wrong_clocks.py::test_a_clock_that_is_wrong_by_a_day"] for name in ALL},
    4: {name: ["test_clouds.py::test_a_folder_goes_away"] for name in DRIVES}
    | {"cloudkit": ["test_cloudkit_exchange.py::test_a_zone_that_goes_away"]},
    5: {name: ["test_clouds.py::test_a_folder_goes_away"] for name in DRIVES} | {"cloudkit": "a zone has its name for ever"},
    6: {name: ["test_wrong_clocks.py::test_a_place_that_may_only_be_read"] for name in ALL},
    7: {name: ["test_bad_input.py::test_copies_made_by_a_user"] for name in DRIVES}
    | {"cloudkit": ["test_bad_input.py::test_records_copied_by_a_user"]},
    8: {name: ["test_bad_input.py::test_files_that_lie_in_the_bin", "test_clouds.py::test_a_folder_goes_away"] for name in DRIVES}
    | {"cloudkit": "it has no bin"},
}  # fmt: skip
BAD_INPUT = {
    "a token that was revoked": ["test_tokens.py::test_consent_taken_back", "test_pcloud.py::test_a_token_that_was_revoked",
                                 "test_cloudkit_exchange.py::test_who_asks", "test_background.py::test_the_user_has_to_sign_in"],
    "a token that another program renewed": ["test_tokens.py::test_rotated_elsewhere"],
    "a clock that is wrong by a day": ["test_wrong_clocks.py::test_a_clock_that_is_wrong_by_a_day"],
    "a folder that is deleted, renamed or in the bin": ["test_clouds.py::test_a_folder_goes_away"],
    "a folder that may be read and not written": ["test_wrong_clocks.py::test_a_place_that_may_only_be_read"],
    "folders and files of one name": ["test_gdrive.py::test_folders_of_one_name", "test_gdrive.py::test_files_of_one_name"],
    "a limit of requests": ["test_clouds.py::test_rate_limits_that_do_not_end"],
    "an answer that is lost after success": ["test_clouds.py::test_faults", "test_cloudkit_exchange.py::test_faults"],
    "a full account": ["test_clouds.py::test_quota"],
    "a network that wants somebody to sign in": ["test_clouds.py::test_what_is_no_service"],
    "a peer that lies about heads": ["../Live/test_library.py::test_lies_about_heads"],
    "a peer that sends endless pending versions": ["../Live/test_library.py::test_versions_whose_predecessors_never_come"],
    "a peer that stops reading": [LISTENER + "test_who_asks_and_does_not_read", LISTENER + "test_who_does_not_read_what_it_gets",
                                  "../Live/test_library.py::test_a_peer_that_stops_reading",
                                  "../Live/test_library.py::test_questions_without_an_end"],
    "a peer that dribbles bytes": [LISTENER + "test_who_dribbles_a_handshake",
                                   "../Live/test_library.py::test_strangers_at_a_listener"],
    "a peer that replays a handshake, or has a wrong secret": [LISTENER + "test_who_replays_a_first_message",
                                                               LISTENER + "test_who_is_not_paired_gets_no_byte",
                                                               "../Live/test_library.py::test_replayed_and_wrong_handshakes"],
    "one between two that pair": ["../Live/test_digits.py::test_one_in_the_middle",
                                  "../Live/test_digits.py::test_a_number_that_was_not_committed_to"],
    "what came and could not be stored": ["../LLVSLiveTests/PeerSessionTests.swift::whatCouldNotBeStoredDoesNotCountAsHere",
                                          "../LLVSLiveTests/PeerSessionTests.swift::whatIsAcknowledgedOutlivesTheProcess"],
    "a peer that fills the disk": [LISTENER + "test_who_fills_the_disk", "../Live/test_many_links.py::test_the_host_bounds_what_is_stored"],
    "wires that lose, delay and cut": ["../Live/test_namespaces.py::test_loss", "../Live/test_namespaces.py::test_delay",
                                       "../Live/test_namespaces.py::test_cuts", "../Live/test_namespaces.py::test_silence"],
    "fuzzing": ["../Fuzz/Sources/FuzzTargets/LiveTarget.swift::run"],
}  # fmt: skip


def holds(test: str) -> bool:
    """Whether there is such a test."""
    file, name = test.split("::")
    path = HERE / file
    if not path.exists():
        return False
    text = path.read_text()
    if path.suffix == ".py":
        return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.parse(text).body)
    return f"func {name}(" in text


@pytest.mark.parametrize("table", [PITFALLS, BAD_INPUT], ids=["pitfalls", "bad input"])
def test_each_has_a_test(table: dict[object, list[str]]) -> None:
    """Fails if a pitfall has no test, or one that does not exist."""
    assert all(table.values())
    assert not [test for tests in table.values() for test in tests if not holds(test)]


@pytest.mark.parametrize("number", AT_SERVICES)
def test_each_is_tried_at_each_service(number: int) -> None:
    """Each change is tested at each service, or has a reason why not."""
    assert set(AT_SERVICES[number]) == set(ALL)
    for tests in AT_SERVICES[number].values():
        assert tests and (isinstance(tests, str) or (isinstance(tests, list) and all(map(holds, tests))))


@pytest.mark.parametrize("title, numbers", [("## Pitfalls", PITFALLS), ("## Bad input", AT_SERVICES)])
def test_the_page_has_each(title: str, numbers: dict[int, object]) -> None:
    """The page lists the same numbers."""
    text = PAGE.read_text().split(title)[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, len(numbers) + 1)) == sorted(numbers)
