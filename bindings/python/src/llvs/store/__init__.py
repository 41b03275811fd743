"""Stores: versions, the values at them, and what they were made from."""
