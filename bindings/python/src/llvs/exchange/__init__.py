"""Exchanges of versions with folders, servers, and places of the program's own."""
