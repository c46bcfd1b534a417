import importlib
import sys

NAMES = (
    "growth",
    "retrieval",
    "embedding",
    "saver",
    "conformance",
    "service",
    "crowds",
    "soak",
    "silent",
    "store",
)

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: python -m scripts.bench {'|'.join(NAMES)} [options]")
    name = sys.argv.pop(1)
    importlib.import_module(f"scripts.bench.{name}").main()
