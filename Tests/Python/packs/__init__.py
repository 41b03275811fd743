"""The packed layout in plain Python, written from docs/pack-format.md alone. Tests compare the library with it."""
