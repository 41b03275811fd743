"""Direct connections of two stores, and devices nearby."""
