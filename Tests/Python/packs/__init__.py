"""The packed layout in plain Python, made from docs/pack-format.md alone: what the library is held against."""
