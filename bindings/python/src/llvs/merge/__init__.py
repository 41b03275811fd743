"""Merging: arbiters, merging inside values, and the conflicts that merges left open."""
