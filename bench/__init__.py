"""Benchmarks: `python -m bench`, and the modules report, compare and profile, run the same way."""
