"""Benchmarks: `python -m scripts.bench NAME`. Each prints ratios of one interleaved run, never bare times."""
