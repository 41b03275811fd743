/// The engine as Swift programs see it: everything public in its modules.
@_exported import LLVSCoordinator
@_exported import LLVSUpkeep

// The trait of the package.
#if Network
@_exported import LLVSLive
@_exported import LLVSServices
#endif
