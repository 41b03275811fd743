/// The modules below this one, imported here for all of its files.
@_exported import LLVSCloud
