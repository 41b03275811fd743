"""Keys of indexes, in plain Python, written from docs/index-keys.md alone: what the engine is held against.

It is slow and short on purpose. Nothing in it comes from the engine, and nothing of the engine uses it.

- `folding`     the folding of strings, from its table
- `encoding`    tuples of JSON scalars as bytes whose order is theirs, and back
- `definition`  the definition of an index: validation, and the keys that a value has in it
- `search`      questions to an index: equality, ranges, prefixes, both orders, pages
"""
