"""Merging inside values, in plain Python, written from the specification alone. Tests compare the engine with it.

It is slow and short on purpose. No code of it comes from the engine, and the engine does not use it.

- `json_model`  JSON texts as trees that preserve the spelling of numbers; equality, order and canonical output
- `rules`       the value `__llvs_schema`: validation, and the rule that applies to a path
- `sequences`   lists by keys
- `plain_lists` lists of plain values with equal elements
- `tokens`      lines, line ends, words and tokens of texts
- `alignment`   which tokens of two sequences are matched
- `words`       the merge of a line that both sides changed
- `text`        the three-way merge of texts by lines, and the place of a part in a later text
- `merge`       the core: one pure function from three values and rules to bytes and records
- `versions`    the same over a graph of versions: recency, virtual bases, contested values
"""
