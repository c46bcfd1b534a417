"""Writes the tables of metrics and spans into both operations pages: `python -m scripts.operations_page`."""

import re
from collections.abc import Mapping
from pathlib import Path

from api.metrics import metrics_table
from graph.traces import spans_table

DOCS = Path(__file__).parents[1] / "docs"
PAGES = (DOCS / "operations.md", DOCS / "operations.zh.md")


def main() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name, table in tables(page).items():
            text = block(name).sub(lambda match, table=table: f"{match[1]}{table}\n{match[3]}", text)
        page.write_text(text, encoding="utf-8")


def tables(page: Path) -> Mapping[str, str]:
    made = {"metrics": metrics_table(), "spans": spans_table()}
    return made if page.name == "operations.md" else {name: in_chinese(table) for name, table in made.items()}


def in_chinese(table: str) -> str:
    """Header and last column translated; names are the code's own. KeyError for what has no translation."""
    first, rule, *rows = table.splitlines()
    header = "|".join(f" {HEADER[cell.strip()]} " if cell.strip() else cell for cell in first.split("|"))
    parts = (row.removesuffix(" |").rsplit(" | ", 1) for row in rows)
    return "\n".join([header, rule, *(f"{before} | {CHINESE[meaning]} |" for before, meaning in parts)])


HEADER = {
    "metric": "指标", "span": "span", "kind": "类型", "unit": "单位", "labels": "标签",
    "attributes": "属性", "what": "含义",
}  # fmt: skip
CHINESE = {
    "HTTP requests, by route and status": "HTTP 请求数，按路由和状态码",
    "Until the last byte was sent": "到发出最后一个字节的用时",
    "Until the response began": "到开始响应的用时",
    "HTTP requests, open streams among them": "进行中的 HTTP 请求，包括打开的流",
    "Requests refused, by problem code": "被拒绝的请求，按错误码",
    "Connections ended by us: silent, slow, stuck, room, full": (
        "由服务端断开的连接：silent、slow、stuck、room、full"
    ),
    "Accepted requests whose end could not be stored": "已接受但结果未能保存的请求",
    "Requests that the graph has ended": "工作流已处理完的请求",
    "Worker start to graph end": "从开始处理到工作流结束的用时",
    "Requests that the graph works on": "工作流正在处理的请求",
    "Requests that it may work on at once: `MAX_WORKERS` of every process": (
        "可同时处理的请求数：各进程 `MAX_WORKERS` 之和"
    ),
    "Processes that serve": "正在服务的进程数",
    "Answers, by kind": "回答数，按种类",
    "Tokens of models, by direction in and out": "模型用掉的 token，分输入与输出",
    "Turns left out of what a model saw": "未放入模型上下文的轮次",
    "One HTTP request, to the last byte of its stream. Continues the caller's `traceparent`.": (
        "一个 HTTP 请求，到流的最后一个字节；延续调用方的 `traceparent`。"
    ),
    "One step of the graph.": "工作流的一个步骤。",
    "One answer of a model, to its last piece.": "模型的一次回答，到最后一段。",
    "One round trip to Redis; a transaction is one.": "与 Redis 的一次往返；一个事务算一次。",
}


def published(page: Path, name: str) -> str:
    found = block(name).search(page.read_text(encoding="utf-8"))
    assert found, f"{page.name} has no block named {name}"
    return found[2].rstrip("\n")


def block(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- end of {name} -->)", re.DOTALL)


if __name__ == "__main__":
    main()
