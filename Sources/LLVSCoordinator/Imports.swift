/// The modules below this one, imported here for all of its files.
@_exported import LLVSMerge
@_exported import LLVSUpkeep
