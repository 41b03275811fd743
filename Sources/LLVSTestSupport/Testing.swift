// Whoever imports this has what the library exports for the tests of its users, too.
@_exported import LLVSTesting
