// Modules that import this one also see what the simulator uses.
@_exported import LLVSTestSupport
