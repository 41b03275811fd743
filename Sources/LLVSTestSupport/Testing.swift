// Modules that import this one also see the part of the library that is for its users' tests.
@_exported import LLVSTesting
