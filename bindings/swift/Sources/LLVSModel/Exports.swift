/// A program that has models needs the engine, and its async forms.
@_exported import LLVS
@_exported import LLVSAsync
