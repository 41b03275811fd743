/// The engine as Swift programs see it: everything public in its modules.
@_exported import LLVSCoordinator
@_exported import LLVSLive
@_exported import LLVSServices
