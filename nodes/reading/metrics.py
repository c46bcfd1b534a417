"""Which figures does a text ask for? Names come from the metrics passed in; the longest one wins."""

import re
from collections.abc import Iterator, Sequence

from nodes.contracts import Metric
from nodes.reading.folding import is_edge, squeeze

# Words that turn a figure's name into another figure's: 扣非净利润 is not 净利润.
_OTHER_FIGURE_BEFORE = re.compile(
    r"(?:占|扣非后?的?|扣除非经常性损益后?的?|归母|归属于?[^，,。？?]{0,10}的?|人均|户均|单位|营业外|投资|利息"
    r"|非经常性"
    r"|其他|税前|税后|息税前|非流动|流动|固定|无形|净|主营业务|海外|境外"
    r"|\b(?:adjusted|deferred|other|interest|non-operating|pre-?tax|after-tax|recurring|non-recurring|net"
    r"|gross|average"
    r"|fixed|current|intangible)[ -])$"
)
_OTHER_FIGURE_AFTER = re.compile(
    r"率|据|占比|占营|占收|加计扣除|来源|证明|结构|构成|确认|分配|周转|报酬|收益|申报|筹划"
    r"|手册|宿舍|培训|福利|持股|社保|公积金|工资|薪酬|离职|入职|招聘|食堂|体检|名单"
    r"|(?:的?(?:上限|下限|门槛|限制|标准|要求))"
    r"|\s(?:limits?|thresholds?|caps?|ceilings?|requirements?|criteria|tests?)\b"
    r"|\s(?:per|recognition|share|mix|breakdown|sources?|handbook|training|ratio|deduction|credits?)\b"
)
# Names of figures that contain another figure's name. They stand for nothing unless they are passed in.
_COMPOUNDS = (
    "营业利润", "毛利润", "利润总额", "税前利润", "净资产", "净资产收益率", "资产负债率", "营业成本",
    "主营业务收入", "营业外收入", "所得税", "operating profit", "operating income", "gross profit",
    "profit before tax", "net assets", "net income margin", "net profit margin", "operating margin",
)  # fmt: skip
_NEAR = 24  # characters before a name that may change what it names
_PLURAL = re.compile(r"(?<=[a-z])s\b")

Span = tuple[int, int]


def find_metrics(text: str, metrics: Sequence[Metric]) -> list[str]:
    """Metric ids in order of mention, each once."""
    return list(dict.fromkeys(metric for metric, _ in locate_metrics(text, metrics)))


def locate_metrics(text: str, metrics: Sequence[Metric]) -> list[tuple[str, Span]]:
    """Each metric with where it stands in the squeezed text, in order."""
    squeezed = squeeze(text)
    terms = sorted([*_terms(metrics), *((name, None) for name in _COMPOUNDS)], key=lambda term: -len(term[0]))
    taken: list[tuple[str, Span]] = []
    covered: set[int] = set()
    for term, metric in terms:
        for start, end in _places(squeezed, term):
            if not covered.isdisjoint(range(start, end)):
                continue
            covered.update(range(start, end))
            if metric and not _is_other_figure(squeezed, start, end):
                taken.append((metric, (start, end)))
    return sorted(taken, key=lambda found: found[1])


def _terms(metrics: Sequence[Metric]) -> Iterator[tuple[str, str]]:
    for metric in metrics:
        for term in map(squeeze, (metric.name, metric.english_name, *metric.synonyms)):
            if len(term) > 1:
                yield term, metric.metric_id


def _places(text: str, term: str) -> Iterator[Span]:
    """Where the term stands as whole words; an English plural counts."""
    start = text.find(term)
    while start >= 0:
        end = start + len(term)
        plural = _PLURAL.match(text, end)
        end = plural.end() if plural else end
        if is_edge(text, start) and is_edge(text, end):
            yield start, end
        start = text.find(term, start + 1)


def _is_other_figure(text: str, start: int, end: int) -> bool:
    return bool(
        _OTHER_FIGURE_BEFORE.search(text[max(0, start - _NEAR) : start])
        or _OTHER_FIGURE_AFTER.match(text, end)
    )
