"""Keys of indexes, in plain Python, written from docs/index-keys.md alone. Tests compare the engine with it.

It is slow and short on purpose. No code of it comes from the engine, and the engine does not use it.

- `folding`     the folding of strings, from its table
- `encoding`    tuples of JSON scalars as bytes with the same order, and back
- `definition`  the definition of an index: validation, and the keys of a value in it
- `search`      queries of an index: equality, ranges, prefixes, both orders, pages
"""
