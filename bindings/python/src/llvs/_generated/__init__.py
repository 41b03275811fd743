"""What mirrors the headers: written by `scripts/generate_bindings`, and compared with them by its `--check`.

These modules are committed, so that a checkout is a package: tests, examples and type checkers use it by
`PYTHONPATH=bindings/python/src`, and a source distribution needs no header.
"""
