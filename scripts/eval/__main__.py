import argparse
import importlib
import json
from dataclasses import asdict
from pathlib import Path

from scripts.eval.report import Options, Report, as_text

NAMES = (
    "follow_ups",
    "gate",
    "slots",
    "refusal",
    "retrieval",
    "suggestions",
    "grounding",
    "safety",
    "language",
    "quotations",
    "across",
    "meaning",
    "model",
)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.eval")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--data", type=Path, help="the folder of the public sets (docs/evaluations.md)")
    parser.add_argument("--json", type=Path, help="also write everything, each miss included, to this file")
    parser.add_argument("--model", help="as the setting MODEL; for `suggestions`")
    parser.add_argument(
        "--model-python",
        type=Path,
        help="the Python of requirements/model.txt, to serve its model; for `model`",
    )
    parser.add_argument(
        "--sample",
        type=int,
        help="rows drawn from each set; for `model`, and the first of it for those of `--embeddings`",
    )
    parser.add_argument("--minutes", type=float, help="the longest that each part may take; for `model`")
    parser.add_argument(
        "--embeddings", help="as the setting EMBEDDINGS; for `retrieval`, `refusal`, `quotations`, `meaning`"
    )
    parser.add_argument("--vectors", type=Path, help="a folder to keep vectors in between two runs")
    parser.add_argument("--misses", action="store_true", help="print each miss")
    return parser.parse_args()


def main() -> None:
    found = read_arguments()
    evaluate = importlib.import_module(f"scripts.eval.{found.name}").evaluate
    report: Report = evaluate(
        Options(
            found.data,
            found.model,
            found.model_python,
            found.sample,
            found.minutes,
            found.embeddings,
            found.vectors,
        )
    )
    print(as_text(report, with_misses=found.misses))
    if found.json:
        found.json.write_text(
            json.dumps(asdict(report), ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
