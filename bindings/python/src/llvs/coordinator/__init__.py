"""Coordinators: a store, its current version, exchanges and an arbiter in one object."""
