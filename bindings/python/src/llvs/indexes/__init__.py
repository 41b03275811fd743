"""Indexes, which find values by their contents at any version."""
