"""Merging inside values, in plain Python, written from the specification alone: what the engine is held against.

It is slow and short on purpose. Nothing in it comes from the engine, and nothing of the engine uses it.

- `json_model`  JSON texts as trees that keep how numbers were spelled; equality, order and canonical output
- `rules`       the value `__llvs_schema`: validation, and which rule holds for a path
- `sequences`   lists by keys
- `plain_lists` lists of plain values with equal elements
- `tokens`      lines, line ends, words and tokens of texts
- `alignment`   which tokens of two sequences are the same ones
- `words`       the merge of a line that both sides changed
- `text`        the three-way merge of texts by lines, and where a part of one stands later
- `merge`       the core: one pure function from three values and rules to bytes and records
- `versions`    the same over a graph of versions: recency, virtual bases, contested values
"""
