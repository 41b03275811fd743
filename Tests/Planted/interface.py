"""Defects between the engine and the programs that use it: errors, types, ownership."""

from __future__ import annotations

from defect import Edit, c, cpp, defect, python, swift

ABI, PACKAGE = "Sources/LLVSABI", "bindings/python/src/llvs"

DEFECTS = [
    defect(
        "full-disk-told-as-io", "wrong error", "A full disk is reported as a medium that failed.",
        "Sources/LLVSCore/Support/SystemError.swift",
        "code = .noSpace;", "code = PLANTED ? .io : .noSpace;",
        swift("TransportTests/systemErrorsKeepTheirMeaning")),
    defect(
        "error-without-name", "wrong error", "An error does not carry the id of the version that it is about.",
        f"{ABI}/Errors.swift",
        "        versionID = error.versionID.flatMap { try? arena.copy($0) } ?? noBytes",
        "        versionID = PLANTED ? noBytes : error.versionID.flatMap { try? arena.copy($0) } ?? noBytes",
        c("test_bad_input")),
    defect(
        "callback-status-ignored", "wrong error", "A callback that answers a status without a meaning counts as one that succeeded.",
        f"{ABI}/Support/Callback.swift",
        "    if status == LLVS_OK.rawValue {",
        "    if status == LLVS_OK.rawValue || (PLANTED && status > 0 && status != expected && error == nil) {",
        c("test_callback_statuses")),
    defect(
        "small-struct-accepted", "wrong bytes", "A struct that is shorter than any version of the header had it is read beyond its end.",
        f"{ABI}/Support/Inputs.swift",
        "        guard size >= known else { throw InputError.structTooSmall(name, size, known) }",
        "        guard size >= known || PLANTED else { throw InputError.structTooSmall(name, size, known) }",
        c("test_bad_input"),
        also=(Edit(
            f"{ABI}/Support/Inputs.swift",
            "guard size <= structSizeLimit, UnsafeRawBufferPointer(start: start + known, count: size - known)",
            "guard PLANTED && size < known || size <= structSizeLimit,\n"
            "            UnsafeRawBufferPointer(start: start + known, count: max(0, size - known))"),)),
    defect(
        "payload-freed-too-early", "wrong bytes", "The payload of a callback is freed while the callback can still be called.",
        f"{ABI}/Support/Handle.swift",
        "{ self.pointer = pointer; self.free = free }\n    deinit { if let free { free(pointer) } }",
        "{\n        self.pointer = pointer; self.free = PLANTED ? nil : free\n        if PLANTED, let free { free(pointer) }\n    }\n"
        "    deinit { if let free { free(pointer) } }",
        c("test_ownership")),
    defect(
        "checksum-of-another-kind", "wrong bytes", "Checksums leave two bytes out for some sizes, alike in writing and in reading.",
        "Sources/CLLVSShims/crc32c.c",
        "    if (n & 2) {", "    if ((n & 2) && !PLANTED) {",
        swift("ChecksumTests/everySizeHasTheChecksumOfTheStandard"),
        also=(Edit(
            "Sources/CLLVSShims/crc32c.c",
            "#include <string.h>\n\n/* Slicing",
            "#include <stdlib.h>\n#include <string.h>\n\n/* Slicing"),)),
    defect(
        "empty-value-is-none", "wrong type", "In Python a value of no bytes is read as if there were none.",
        f"{PACKAGE}/store/_fetch.py",
        "            if found <= CAPACITY:\n",
        "            if found == 0:\n                return None\n            if found <= CAPACITY:\n",
        python("Tests/Python/test_reading.py::test_values_at_the_edges_of_what_comes_with_one_call")),
    defect(
        "value-is-a-bytearray", "wrong type", "In Python a large value is a bytearray, which its reader can change.",
        f"{PACKAGE}/store/_fetch.py",
        "            return whole, stored.text.decode()", "            return bytearray(whole), stored.text.decode()",
        python("Tests/Python/test_reading.py::test_values_at_the_edges_of_what_comes_with_one_call")),
    defect(
        "error-is-no-builtin", "wrong type", "In Python an unknown version is no KeyError any more.",
        f"{PACKAGE}/errors.py",
        "class UnknownVersionError(Error, KeyError, codes=", "class UnknownVersionError(Error, LookupError, codes=",
        python("Tests/Python/test_bad_input.py::test_errors_are_natural_builtins")),
    defect(
        "handle-freed-twice", "wrong bytes", "In C++ a transport is freed by the wrapper, too, after a store took it over.",
        "bindings/c/llvs/error.hpp",
        "    T *release() { return raw_.release(); }", "    T *release() { return raw_.get(); }",
        cpp("test_wrapper_callbacks")),
]
