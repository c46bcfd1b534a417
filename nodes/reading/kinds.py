"""What one stretch of text says, and what kind of question that makes it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nodes.contracts import Metric
from nodes.reading.companies import CompanyIndex, mask
from nodes.reading.folding import MASK, has_chinese, squeeze
from nodes.reading.language import detect_language
from nodes.reading.metrics import locate_metrics
from nodes.reading.periods import find_periods, period_before, year_before
from nodes.reading.references import needs_reference
from nodes.reading.unknown_names import unknown_company

AskedKind = Literal["fact", "comparison", "narrative"]
Growth = Literal["year", "step"]


@dataclass(frozen=True)
class Said:
    """The slots of one stretch of text. `plain` is squeezed, with company names blotted out."""

    text: str
    plain: str
    companies: tuple[str, ...]
    ambiguous: tuple[tuple[str, ...], ...]
    periods: tuple[str, ...]
    metrics: tuple[str, ...]
    # A company named that the directory does not hold, as written, and companies of similar names.
    unknown: str | None = None
    like: tuple[str, ...] = ()
    # No company is named because all are meant: `companies` are all of the directory.
    everyone: bool = False
    # It leans on nothing because of what stands beside it.
    stands: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Every company named, the ambiguous ones as their candidates."""
        return self.companies + tuple("|".join(ids) for ids in self.ambiguous)

    @property
    def leans(self) -> bool:
        """Whether it needs something that it does not say."""
        if self.stands:
            return False
        reference = needs_reference(
            self.plain,
            companies_found=bool(self.names),
            periods_found=bool(self.periods),
            metrics_found=bool(self.metrics),
        )
        return reference is not None


@dataclass(frozen=True)
class Reader:
    """Reads slots against a directory, the metrics and the time of asking."""

    companies: CompanyIndex
    metrics: Sequence[Metric]
    received_at: str

    def read(self, text: str) -> Said:
        squeezed = squeeze(text)
        named = self.companies.find(squeezed)
        plain = mask(squeezed, named.spans)
        figures = locate_metrics(plain, self.metrics)
        said = Said(
            text=text.strip(),
            plain=plain,
            companies=named.resolved,
            ambiguous=tuple(dict.fromkeys(ids for _, ids in named.ambiguous)),
            periods=tuple(find_periods(plain, received_at=self.received_at)),
            metrics=tuple(dict.fromkeys(metric for metric, _ in figures)),
        )
        if said.ambiguous or not (figures or _asks_for_some_figure(said)):
            return said
        if not said.names and is_of_everyone(plain) and len(self.companies.ids) <= MOST_COMPARED:
            return replace(said, companies=self.companies.ids, everyone=True)
        if not figures:
            return said
        unknown = unknown_company(text, squeezed, plain, _placed(plain, [span for _, span in figures]))
        like = self.companies.like(unknown) if unknown and not said.names else ()
        return replace(said, unknown=unknown, like=like)


def _placed(plain: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of the text without blanks beside blotted names, in the text with them."""
    places, at = [], 0
    for character in squeeze(plain):
        at = plain.index(character, at)
        places.append(at)
        at += 1
    return [(places[start], places[end - 1] + 1) for start, end in spans]


def kind_of(said: Said) -> AskedKind:
    if _EXPLAINS.search(said.plain):
        return "narrative"
    if said.everyone or _compares(said):
        return "comparison"
    return "fact" if _asks_for_figures(said) else "narrative"


def compared_periods(said: Said) -> tuple[str, ...]:
    """Growth is counted from the earlier period on; from the one before, where only one is named."""
    growth = growth_asked(said)
    if growth is None or not said.periods:
        return said.periods
    if len(said.periods) > 1:
        return tuple(sorted(said.periods))
    return grown_over(said.periods[0], growth)


def growth_asked(said: Said) -> Growth | None:
    """Whether growth is asked for, and from which period on."""
    if not _GROWS.search(said.plain):
        return None
    return "step" if _STEPWISE.search(said.plain) else "year"


def grown_over(period: str, growth: Growth) -> tuple[str, str]:
    """The period that growth is counted from, and the period."""
    return (period_before(period) if growth == "step" else year_before(period), period)


def is_question(said: Said) -> bool:
    """Whether the text asks or requests something, rather than naming it ("创业补贴", "start-up subsidy")."""
    if _GIVES_NO_ANSWER.match(said.plain):
        return False
    if detect_language(said.text, plain=said.plain) == "zh" and has_chinese(said.plain):
        return _ASKS_ZH.search(said.plain) is not None
    return _ASKS_EN.search(said.plain) is not None and len(said.plain.split()) > 2


def is_of_everyone(plain: str) -> bool:
    """Whether all companies are meant: the highest of them, each of them, "which company has the most"."""
    return _EACH.search(plain) is not None or (
        _ANY_COMPANY.search(plain) is not None and _EXTREME.search(plain) is not None
    )


def is_out_of_scope(said: Said) -> bool:
    """Weather, jokes, code, sums and the like: plain cases only, never where a company or figure is named."""
    if said.names or said.metrics:
        return False
    return _OUT_OF_SCOPE.search(said.plain) is not None or _SUM.fullmatch(said.plain) is not None


def _compares(said: Said) -> bool:
    several = len(said.names) > 1 or len(said.periods) > 1
    if said.metrics:
        grows = _GROWS.search(said.plain) is not None
        which = not said.names and _WHICH_COMPANY.search(said.plain) is not None
        return grows or which or (several and _COMPARES.search(said.plain) is not None)
    return several and _COMPARES.search(said.plain) is not None and _names_no_figure(_without_slots(said))


def _names_no_figure(rest: str) -> bool:
    """Whether what is left says nothing, or only speaks of figures without naming one (利润, 业绩)."""
    return not _CONTENT.search(rest) or _FIGURES_IN_GENERAL.fullmatch(rest) is not None


def _asks_for_some_figure(said: Said) -> bool:
    if _LOOSE_FIGURE.search(said.plain) is not None and _names_no_figure(_without_slots(said)):
        return True
    return is_of_everyone(said.plain) and _GROWS.search(said.plain) is not None and _only_ranks(said)


def _only_ranks(said: Said) -> bool:
    """Whether nothing is said but who of all grew most: which figure is meant is asked back."""
    return _names_no_figure(
        _without(said, _PERIOD_WORDS, _EACH, _ANY_COMPANY, _EXTREME, _COMPARES, _FILLERS, _AMONG)
    )


def _asks_for_figures(said: Said) -> bool:
    if said.metrics:
        return _asks_for_metric(said)
    if not said.names and not said.periods:
        return False
    rest = _without_slots(said)
    if not said.names or not _CONTENT.search(rest):
        return not _CONTENT.search(rest)
    return _FIGURES_IN_GENERAL.fullmatch(rest) is not None and _RESULTS.search(rest) is not None


def _asks_for_metric(said: Said) -> bool:
    """Whether the metric is what is asked, not a condition ("营收低于1000万元的企业…") of what is asked."""
    if _IS_CONDITION.search(said.plain) and not said.names:
        return False
    if said.names or said.periods:
        return True
    return _QUANTITY.search(said.plain) is not None or _is_short(said.plain)


def _is_short(text: str) -> bool:
    """Little more than a figure's name."""
    return len(_CONTENT.findall(text)) <= 12 if has_chinese(text) else len(text.split()) <= 3


def _without_slots(said: Said) -> str:
    """What the text says besides companies, periods, filler and comparing words."""
    return _without(said, _PERIOD_WORDS, _COMPARES, _FILLERS)


def _without(said: Said, *patterns: re.Pattern[str]) -> str:
    """The letters and digits that are left when names, and then each kind of words, are taken out."""
    rest = said.plain.replace(MASK, " ")
    for words in patterns:
        rest = words.sub("", rest)
    return re.sub(r"[\W_]+", "", rest)


_CONTENT = re.compile(r"\w")

# --- comparing ---

_GROWS = re.compile(
    r"增长|增速|增幅|增加|下降|减少|上升|下滑|同比|环比|变化|涨|跌|降低|提高"
    r"|\bgrow(?:th|n|s|ing)?\b|\bgrew\b|\bincreas\w+|\bdecreas\w+|\bdecline\w*|\bdrop(?:ped|s)?\b|\bchang\w+"
    r"|\bfell\b|\brose\b"
    r"|\byoy\b|\bqoq\b|\b(?:year|quarter)[- ]o(?:n|ver)[- ](?:year|quarter)"
)
_STEPWISE = re.compile(r"环比|\bqoq\b|quarter[- ]o(?:n|ver)[- ]quarter")
_COMPARES = re.compile(
    r"(?:比较|对比|相比|比起|比一?比)(?:一下)?|哪[个家](?:公司)?|哪一[个家年]|谁|更[高多大低少强好]"
    r"|最[高多大低少]|差多少|差距|相差|差额"
    r"|高多少|多多少|低多少|少多少|比"
    rf"|{_GROWS.pattern}"
    r"|\bvs\b\.?|\bversus\b|\bcompar\w+|\bhigher\b|\blower\b|\b(?:more|less|greater|larger|bigger|better"
    r"|smaller) than\b|\bgreater\b"
    r"|\blarger\b|\bbigger\b|\bdifference\b|\bhighest\b|\blowest\b|\bmost\b|\bwhich(?: one| company| year)?\b"
    r"|\bwhose\b"
)
_WHICH_COMPANY = re.compile(
    r"哪[些一]?[个家]?(?:公司|企业|家)|谁的?|\bwhich (?:company|companies|firm|one)\b|\bwhose\b"
)

MOST_COMPARED = 200  # companies; of a larger directory, one has to be named
_EACH = re.compile(
    r"(?:所有|全部|各|每)(?:一?[家个])?(?:的)?(?:公司|企业)|各家"
    r"|\b(?:all (?:of )?(?:the )?|every |each )(?:company|companies|firms?)\b"
)
_ANY_COMPANY = re.compile(r"哪[些一几]?[个家]|谁|公司|企业|\b(?:company|companies|firms?|who|which one)\b")
_EXTREME = re.compile(
    r"最[高低多少大小好差强弱快慢猛]|最(?:赚钱|盈利)|第一|榜首|排[名行]|倒数|垫底|\b(?:highest|lowest|most|least|largest|biggest|smallest"
    r"|greatest|best|worst|top|first|fastest|slowest|strongest|weakest|rank\w*)\b"
)
_AMONG = re.compile(r"中|里|当中|之中|\b(?:over|across|among|amongst|by|did|has|have|had|that|show|list)\b")

# --- facts ---

_EXPLAINS = re.compile(
    rf"为什么|为何|原因|怎么(?!样)|怎样|如何(?![?。!]*$)|什么是|什么叫|是什么意思|(?<!{MASK})是什么[?。!]*$"
    rf"|含义|定义|概念|指的是|包括|包含"
    r"|区别|申请|申报|补贴|补助|政策|条件|资格"
    r"|流程|材料|规定|办法|标准|限额|优惠|减免|抵扣|抵税|扣除|符合|满足|享受|认定|能不能|能否|可否"
    r"|是否(?:可以|需要|必须)|要求|证明"
    r"|披露|口径|影响|意味|可以[^,。?]{0,20}吗"
    r"|\bwhy\b|\bhow (?:do|can|to|should)\b(?!.*\bcompar)|\breasons?\b|\bcauses?\b|\bdefin\w+|\bmean(?:s"
    r"|ing)?\b|\bwhat is an? "
    r"|\bappl(?:y|ication|ying)\b|\beligib\w+|\brequire\w*|\bpolic(?:y|ies)\b|\bsubsid\w+|\bqualif\w+"
    r"|\bexplain\b|\bincludes?\b"
    r"|\bthreshold\b|\brules?\b|\bdeduct\w*|\bcan (?:i|we|an?|companies)\b"
)
_IS_CONDITION = re.compile(
    r"(?:超过|低于|高于|不足|达到?|大于|小于|少于|多于|至少|未达|满|以上|以下|以内)[^,。?]{0,20}(?:企业|公司"
    r"|单位|的)"
    r"|(?:企业|公司|单位)[^,。]{0,6}(?:超过|低于|不足|达到|大于|小于)"
    r"|\b(?:over|under|above|below|more than|less than|fewer than|at least|exceed\w*)\b"
)
_QUANTITY = re.compile(
    r"多少|几|多大|多高|查|呢|\bhow (?:much|many|big|large|high)\b|\bwhat(?:'s| is| was| are| were) the\b"
    r"|\b(?:show|give|tell|list)\b"
)
_FIGURES_IN_GENERAL = re.compile(
    r"(?:业绩|财务|经营|情况|状况|数据|成果|报告|财报|年报|季报|指标|表现|怎么样|如何|好不好|盈利|利润|毛利|收益"
    r"|赚钱|赚|多少|钱|数字|哪些|什么|最|更|[好高低多大强]"
    r"|有|如何|how|did|does|do|doing|done|is|was|has|have|are|were|perform(?:ance|ed|ing)?|results?|figures?"
    r"|financials?"
    r"|numbers?|data|profitab(?:le|ility)|more|most|what|show|give|me|annual|its|business|key|main|financial"
    r"|well|get|see)++"
)
# May mean any of several figures; which one is asked back.
_LOOSE_FIGURE = re.compile(r"利润|毛利|盈利|收益|赚钱|业绩|\bprofitab\w+")
_RESULTS = re.compile(
    r"业绩|财务|经营|数据|成果|财报|年报|季报|指标|表现|怎么样|如何|盈利|利润|毛利|收益|赚|多少"
    r"|do(?:ing|ne)?|perform|results?|figures?|financials?|numbers?|data|profitab"
)
_PERIOD_WORDS = re.compile(
    r"\d+|[〇零○一二三四五六七八九十两]+(?=年|季)|年度?|财年|第|个?季度?|[上下]半|[去今前]年|最?近|过去"
    r"|[到至]|\b(?:[qh]\d|fy|quarter"
    r"|half|first|second|third|fourth|last|past|this|years?|three|two|five|fiscal|between|since|during)\b"
)
_FILLERS = re.compile(
    r"[的了吗呢吧啊呀是在和与及、请查看问我想要就选那家这分别]|公司|一下|帮我|告诉"
    r"|\b(?:(?:what|how) about|the|of|in|for|and|or|company|please|i|mean|it|is|s|from|to|inc|ltd|co|'s|by"
    r"|with|me|about|but|so|then)\b"
)

# --- questions ---

_ASKS_ZH = re.compile(
    r"什么|怎|如何|哪|谁|多少|多[久长大高远快]|几(?:[个天年次种项家岁级月号]|点(?!建议|意见|要求|说明|体会|思考))"
    r"|为何|是否|能否|可否|吗|有没有|是不是"
    r"|能不能|可不可以|要不要"
    r"|会不会|需不需要|何时|何种|何处|还是|(?<!申)请(?!假|求|柬|示)|介绍(?!信|[?。!]*$)|说明(?!书|文"
    r"|[?。!]*$)|解释|告诉"
    r"|查一?下|查询一?下|列出|说说|讲讲|我想|我要|帮我"
    r"|帮忙|了解一?下|(?:总结|概括|分析|比较|对比)一下|^(?:比较|对比|分析)|呢[?。!]*$"
)
_ASKS_EN = re.compile(
    r"\b(?:what|how|why|when|where|who|whom|whose|which)\b"
    r"|(?:^|[,.;:] )(?:is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have|am|shall)\b"
    r"|\b(?:tell|explain|describe|list|show|give|compare|summari[sz]e|define|help|find|need|want|looking"
    r"|outline|clarify)\b"
)
_GIVES_NO_ANSWER = re.compile(
    r"(?:哪.{0,3}都[行可好]|随便|都[行可好]|不知道|不清楚|不确定|我(?:也)?不|没想好|任意"
    r"|都?有(?:哪些|什么|几[个家])(?:公司|选项|选择|年份|期间|指标|企业)?(?:可选|可以选)?[?。!]*$"
    r"|(?:any|whatever|whichever|i don't know|not sure|no idea|i'm not sure|what are (?:the|my) (?:options"
    r"|choices))\b)"
)

# --- out of scope ---

_OUT_OF_SCOPE = re.compile(
    r"天气(?:怎么样|如何|好吗|好不好|预报|热不热|冷不冷|冷吗|热吗|[?。!]*$)|气温(?:是?多少|怎么样)"
    r"|会?下[雨雪]吗|下不下雨"
    r"|[讲说来]个?.{0,4}(?:笑话|段子)|[讲说]个?.{0,4}故事"
    r"|(?:(?:帮我|给我)编?写|(?:写|编写?|创作)(?:一?[段个首篇份]|点|些))[^,。?]{0,10}"
    r"(?:代码|程序|脚本|诗歌?|小说|作文|歌词|故事|情书|对联|python|java|函数)"
    r"|翻译(?:成|为|一下)|[翻]?译成?[英中日法德韩俄][文语]|解(?:一?下?|这?个?)(?:方程|数学题)|(?:算"
    r"|计算)一?下?[\d.]+[-+*/×÷]"
    r"|现在几点|今天是?(?:几号|星期几|周几)|推荐.{0,6}(?:电影|餐厅|美食|歌曲?|音乐|小说|游戏|股票)|星座|运势"
    r"|算命|唱一?首?个?歌"
    r"|(?:比赛|球赛)(?:比分|结果|谁赢)|[怎如]么?何?做(?:红烧肉|蛋糕|菜|饭)|菜谱"
    r"|\bweather\b(?!.{0,20}(?:allowance|subsid|leave|insurance|policy|pay\b))|\bwill it (?:rain|snow)\b"
    r"|\bknow any jokes\b"
    r"|\btell (?:me )?(?:an?|another|some) (?:joke|story|jokes|stories)\b|\bsing (?:me )?a song\b|\brecipe\b"
    r"|\bhoroscope\b"
    r"|\bwrite (?:me |us )?(?:an? |some |the )?(?:[\w-]+ ){0,3}(?:poem|story|song|code|script|function|essay"
    r"|haiku|novel|lyrics)\b"
    r"|\btranslate\b.{1,200}\b(?:in)?to (?:english|chinese|french|german|japanese|spanish|korean)\b"
    r"|\bsolve (?:the equation|for x)\b"
    r"|\bwhat time is it\b|\bwhat day is (?:it|today)\b"
    r"|\brecommend (?:me )?(?:an? |some )?(?:good )?(?:movie|film|restaurant|song|book|game|stock)s?\b"
    r"|\bwho won the (?:game|match|world cup|election)\b|\b(?:what(?:'s| is)|calculate) \d+ ?[-+*/x×÷] ?\d+"
)
_SUM = re.compile(r"(?=.*[+*×÷^=]|.*等于)[\d\s.()]+(?:[-+*/×÷^][\d\s.()]+)+(?:=|等于)?(?:多少|几)?\s?[=?]*")
