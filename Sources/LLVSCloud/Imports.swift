/// The modules below this one, imported here for all of its files.
@_exported import LLVSDocuments
@_exported import LLVSNetwork
