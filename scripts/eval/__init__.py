"""Evaluations: `python -m scripts.eval NAME`. Each prints tables of counts; nothing is drawn by chance."""
