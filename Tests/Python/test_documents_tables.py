"""The tests of each law, pitfall and bad input of merging inside values."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
#: Each law, and the tests that hold it. The vectors are the same for Swift, C and Python.
LAWS = {
    "L1": ["test_documents_laws.py::test_l1_unit"],
    "L2": ["test_documents_laws.py::test_l2_same"],
    "L2c": ["test_documents_laws.py::test_l2c_same_of_counters"],
    "L3": ["test_documents_laws.py::test_l3_total", "test_documents_engine.py::test_random_documents"],
    "L4": ["test_documents_laws.py::test_l4_pure_on_many_threads", "test_documents_engine.py::test_vectors_in_a_process_with_another_seed",
        "../LLVSDocumentsTests/Documents/DocumentVectorTests.swift::vectors",
        "../C/test_document_vectors.c::each_value_is_merged_as_the_model_does"],
    "L5": ["test_documents_laws.py::test_l5_no_invention"],
    "L6": ["test_documents_laws.py::test_l6_disjoint"],
    "L7": ["test_documents_laws.py::test_l7_no_silent_loss"],
    "L8": ["test_documents_laws.py::test_l8_role_swap"],
    "L9": ["test_documents_laws.py::test_l9_lists_of_keyed_elements"],
    "L10": ["test_rules.py::test_random_histories", "test_documents_model.py::test_histories"],
    "L11": ["test_rules.py::test_random_histories", "test_documents_model.py::test_histories"],
    "L12": ["test_rules.py::test_random_histories",
        "test_value_merger.py::test_devices_that_answer_differently_each_time_agree_in_the_end"],
    "L13": ["test_documents_laws.py::test_l13_revert", "test_undo.py::test_undoing_everything_of_one_leaves_the_others"],
    "L14": ["test_documents_laws.py::test_l14_splice", "test_model_devices.py::test_random_edits_on_two_devices",
        "../../bindings/swift/Tests/LLVSModelTests/MergingTests.swift::twoVersionsOfAModelOnTwoDevices"],
    "L15": ["test_documents_laws.py::test_l15_fixpoint"],
    "L16": ["../LLVSDocumentsTests/Documents/HostileTextTests.swift::stepsAreCounted", "test_documents_model.py::test_caps"],
    "L17": ["test_documents_laws.py::test_l17_locality"],
    "none": ["test_documents_laws.py::test_not_laws", "test_documents_model.py::test_not_laws"],
}
#: Bad input from outside, and the tests of its results.
BAD_INPUT = {
    "a value that is no JSON": ["test_documents_bad_input.py::test_values_that_cannot_be_merged_inside"],
    "a value that is cut short": ["test_documents_bad_input.py::test_values_that_cannot_be_merged_inside",
        "../LLVSDocumentsTests/Documents/JSONTreeTests.swift::everyCutAndEveryByte"],
    "duplicate names": ["test_documents_bad_input.py::test_values_that_cannot_be_merged_inside"],
    "lone surrogates": ["test_documents_bad_input.py::test_values_that_cannot_be_merged_inside"],
    "depth 129": ["test_documents_bad_input.py::test_values_that_cannot_be_merged_inside"],
    "64 MiB and one byte": [
        "test_documents_bad_input.py::test_a_value_that_is_too_large", "../LLVSDocumentsTests/Documents/JSONTreeTests.swift::limits"],
    "numbers of 401 digits": ["test_documents_bad_input.py::test_values_that_cannot_be_merged_inside"],
    "exponents of 10,000": ["test_documents_bad_input.py::test_values_that_cannot_be_merged_inside"],
    "rules that are no JSON": ["test_schema.py::test_rules_that_are_wrong", "test_documents_bad_input.py::test_rules_that_are_refused"],
    "rules that name unknown members": ["test_documents_bad_input.py::test_rules_that_are_refused"],
    "rules that contradict each other": ["test_documents_bad_input.py::test_rules_that_are_refused"],
    "rules of another number": [
        "test_documents_bad_input.py::test_rules_that_are_refused", "test_rules.py::test_rules_that_cannot_be_used"],
    "bad rules in a version from elsewhere": ["test_documents_bad_input.py::test_rules_that_came_from_elsewhere",
        "test_conflicts.py::test_rules_that_are_not_valid_are_reported_once"],
    "a value merger that fails": ["test_value_merger.py::test_what_it_raises_is_raised_from_the_merge"],
    "a value merger that answers something else the second time": [
        "test_value_merger.py::test_devices_that_answer_differently_each_time_agree_in_the_end"],
    "a value merger that calls back in": ["test_value_merger.py::test_it_may_call_back_in"],
    "a model that cannot decode what was merged": ["test_model_devices.py::test_what_was_merged_and_cannot_be_read",
        "../../bindings/swift/Tests/LLVSModelTests/MergingTests.swift::whatWasMergedAndCannotBeRead"],
    "texts made to defeat the diff": ["../LLVSDocumentsTests/Documents/HostileTextTests.swift::stepsAreCounted"],
    "fuzzing": ["../Fuzz/Sources/FuzzTargets/DocumentsTarget.swift::run", "../Fuzz/Sources/FuzzTargets/ConflictsTarget.swift::run",
        "../Fuzz/Sources/FuzzTargets/DocumentPartsTargets.swift::run"],
}


def holds(test: str) -> bool:
    """Whether there is such a test."""
    file, name = test.split("::")
    path = HERE / file
    if not path.exists():
        return False
    text = path.read_text()
    if path.suffix == ".py":
        return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.parse(text).body)
    return f"func {name}(" in text or f"static void {name}(" in text


@pytest.mark.parametrize("table", [LAWS, BAD_INPUT], ids=["laws", "bad input"])
def test_each_has_a_test(table: dict[str, list[str]]) -> None:
    """Each law and each kind of bad input names a test that exists."""
    assert all(table.values())
    assert not [test for tests in table.values() for test in tests if not holds(test)]


def test_no_law_is_left_out() -> None:
    assert set(LAWS) == {f"L{number}" for number in range(1, 18)} | {"L2c", "none"}


def test_vectors_and_histories_are_run_by_all() -> None:
    """Swift, C and Python run the vectors of values and those of several versions."""
    for test in (
        "../LLVSDocumentsTests/Documents/DocumentVectorTests.swift::vectors",
        "../LLVSMergeTests/Merge/DocumentHistoryTests.swift::histories",
        "../C/test_document_vectors.c::each_value_is_merged_as_the_model_does",
        "../C/test_document_vectors.c::histories_come_to_what_the_model_says",
        "test_documents_engine.py::test_vectors",
        "test_documents_engine.py::test_histories",
    ):
        assert holds(test), test


def test_p39_has_a_test() -> None:
    """Merge storms end; vectors have the results of their merges, as for all pitfalls (test_every_pitfall_has_a_vector)."""
    assert holds("test_syncer.py::test_storms_of_merges_end") and holds("test_documents_engine.py::test_every_pitfall_has_a_vector")
