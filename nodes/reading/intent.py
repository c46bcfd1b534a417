"""What does a text ask? Kind, slots, parts and what is missing, by rule, from the text and the directory alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from nodes.contracts import Intent, Kind, Language, Metric, Slot, SubQuestion
from nodes.reading.companies import CompanyIndex, CompanyMentions, mask
from nodes.reading.folding import MASK, has_chinese, squeeze
from nodes.reading.metrics import find_metrics
from nodes.reading.periods import find_periods, period_before, year_before
from nodes.reading.references import needs_reference
from nodes.reading.replies import is_small_talk
from nodes.reading.safety import screen


def read_intent(
    text: str, *, companies: CompanyIndex, metrics: Sequence[Metric], received_at: str, topics: Sequence[str] = ()
) -> Intent:
    """The text's intent. The screen comes first, so a refused text is read no further."""
    reason = screen(text, topics=topics)
    if reason is not None:
        return _without_slots("refused", text, reason)
    if is_small_talk(text):
        return _without_slots("small_talk", text)
    reader = Reader(companies, metrics, received_at)
    whole = reader.read(text)
    if _is_out_of_scope(whole):
        return _without_slots("out_of_scope", text)
    parts = _questions(reader, text, whole)
    return _intent_of_parts(text, whole, parts) if len(parts) > 1 else _intent_of_one(text, whole)


def answers_itself(intent: Intent) -> bool:
    """Whether the text is a complete question of its own, not a bare name, a phrase or a half of one."""
    asks = intent.get("asks", True)
    return asks and intent["kind"] in ("fact", "comparison", "narrative") and not intent["needs"]


def detect_language(text: str) -> Language:
    """By script: any Chinese character makes it Chinese."""
    return "zh" if has_chinese(text) else "en"


@dataclass(frozen=True)
class Said:
    """What one stretch of text says. `plain` is squeezed, with company names blotted out."""

    text: str
    plain: str
    companies: tuple[str, ...]
    ambiguous: tuple[tuple[str, ...], ...]
    periods: tuple[str, ...]
    metrics: tuple[str, ...]

    @property
    def names_company(self) -> bool:
        return bool(self.companies or self.ambiguous)

    @property
    def kind(self) -> Kind:
        if self.metrics and _COMPARES.search(self.plain) and not _EXPLAINS.search(self.plain):
            return "comparison"
        return "fact" if _asks_for_figures(self) else "narrative"

    @property
    def leans(self) -> bool:
        return (
            needs_reference(
                self.plain,
                companies_found=self.names_company,
                periods_found=bool(self.periods),
                metrics_found=bool(self.metrics),
            )
            is not None
        )


@dataclass(frozen=True)
class Reader:
    """The readers of slots with what they read against."""

    companies: CompanyIndex
    metrics: Sequence[Metric]
    received_at: str

    def read(self, text: str) -> Said:
        squeezed = squeeze(text)
        named: CompanyMentions = self.companies.find(squeezed)
        plain = mask(squeezed, named.spans)
        return Said(
            text=text,
            plain=plain,
            companies=named.resolved,
            ambiguous=tuple(dict.fromkeys(ids for _, ids in named.ambiguous)),
            periods=tuple(find_periods(plain, received_at=self.received_at)),
            metrics=tuple(find_metrics(plain, self.metrics)),
        )


# --- one question --------------------------------------------------------------------------------------------


def _without_slots(kind: Kind, text: str, safety: str | None = None) -> Intent:
    return {
        "kind": kind,
        "language": detect_language(text),
        "companies": [],
        "periods": [],
        "metrics": [],
        "ambiguous": [],
        "sub_questions": [],
        "needs": [],
        "safety": safety,
        "asks": False,
    }


def _intent_of_one(text: str, said: Said) -> Intent:
    kind = said.kind
    return {
        **_without_slots(kind, text),
        "companies": list(said.companies),
        "periods": list(_compared_periods(said) if kind == "comparison" else said.periods),
        "metrics": list(said.metrics),
        "ambiguous": [list(ids) for ids in said.ambiguous],
        "needs": _needs(said, kind),
        "asks": kind != "narrative" or _is_question(said),
    }


def _needs(said: Said, kind: Kind) -> list[Slot]:
    """Open slots in the order in which they are asked. What leans on the unsaid waits for that alone."""
    if said.leans:
        return ["reference"]
    needs: list[Slot] = []
    if said.ambiguous or (kind != "narrative" and not said.companies):
        needs.append("company")
    if kind != "narrative" and not said.periods:
        needs.append("period")
    if kind != "narrative" and not said.metrics:
        needs.append("metric")
    return needs


def _compared_periods(said: Said) -> tuple[str, ...]:
    """Growth of one named period is counted from the one before it."""
    if len(said.periods) != 1 or not _GROWS.search(said.plain):
        return said.periods
    (period,) = said.periods
    base = period_before(period) if _STEPWISE.search(said.plain) else year_before(period)
    return (base, period)


def _asks_for_figures(said: Said) -> bool:
    if said.metrics:
        return _asks_for_metric(said)
    if said.names_company and _FIGURES_IN_GENERAL.search(said.plain):
        return not _EXPLAINS.search(said.plain)
    return _is_bare_slot(said)


def _asks_for_metric(said: Said) -> bool:
    if _EXPLAINS.search(said.plain) or (_IS_CONDITION.search(said.plain) and not said.names_company):
        return False
    if said.names_company or said.periods:
        return True
    return bool(_QUANTITY.search(said.plain)) or len(_CONTENT.findall(said.plain)) <= 12


def _is_bare_slot(said: Said) -> bool:
    """Nothing but names of companies or periods, with no verb to them."""
    if not said.names_company and not said.periods:
        return False
    rest = _PERIOD_WORDS.sub("", said.plain.replace(MASK, ""))
    return not _CONTENT.search(_FILLERS.sub("", rest))


def _is_question(said: Said) -> bool:
    """Whether a narrative text asks or requests something, rather than naming it."""
    if has_chinese(said.plain):
        return _ASKS_ZH.search(said.plain) is not None
    return _ASKS_EN.search(said.plain) is not None and len(said.plain.split()) > 2


def _is_out_of_scope(said: Said) -> bool:
    if said.names_company or said.metrics:
        return False
    return _OUT_OF_SCOPE.search(said.plain) is not None or _ARITHMETIC.fullmatch(said.plain) is not None


# --- several questions at once -------------------------------------------------------------------------------


def _questions(reader: Reader, text: str, whole: Said) -> list[Said]:
    """The questions in the text, each completed with the slots that an earlier one named."""
    sentences = [piece for piece in _SENTENCE_END.split(text) if _CONTENT.search(squeeze(piece))]
    asked: list[Said] = []
    for sentence in sentences:
        said = reader.read(sentence.strip())
        if not (_is_question(said) or said.kind != "narrative") or is_small_talk(sentence):
            continue
        asked.extend(_clauses(reader, said))
    return _merged(asked, whole)


def _clauses(reader: Reader, said: Said) -> list[Said]:
    """A sentence cut at commas and connectives where every piece asks with slots of its own."""
    for joint, asks_apart in ((_COMMA, _asks_alone), (_CONNECTIVE, _asks_for_own_figure)):
        pieces = [reader.read(piece.strip()) for piece in joint.split(said.text) if squeeze(piece)]
        if len(pieces) > 1 and all(map(asks_apart, pieces)) and _kinds_or_slots_differ(pieces):
            return pieces
    return [said]


def _asks_for_own_figure(said: Said) -> bool:
    return bool(said.metrics and (said.names_company or said.periods))


def _asks_alone(said: Said) -> bool:
    if said.metrics:
        return _asks_for_own_figure(said)
    return _ASKS_ZH.search(said.plain) is not None and not said.leans and len(_CONTENT.findall(said.plain)) >= 5


def _kinds_or_slots_differ(pieces: Sequence[Said]) -> bool:
    """Asking each on its own says something else than asking all slots of all at once."""
    if any(not piece.metrics for piece in pieces):
        return any(piece.metrics for piece in pieces)
    return _asked_apart(_completed(pieces)) != _asked_together(pieces)


def _asked_apart(pieces: Sequence[Said]) -> set[tuple[str, ...]]:
    return {slots for piece in pieces for slots in product(_named(piece), piece.periods, piece.metrics)}


def _asked_together(pieces: Sequence[Said]) -> set[tuple[str, ...]]:
    return set(
        product(
            {name for piece in pieces for name in _named(piece)},
            {period for piece in pieces for period in piece.periods},
            {metric for piece in pieces for metric in piece.metrics},
        )
    )


def _named(said: Said) -> tuple[str, ...]:
    return said.companies + tuple("|".join(ids) for ids in said.ambiguous)


def _completed(pieces: Sequence[Said]) -> list[Said]:
    """Each figure asked for, with the company, period or metric that the one before it named."""
    completed: list[Said] = []
    for piece in pieces:
        previous = next((said for said in reversed(completed) if said.kind != "narrative"), None)
        if previous is not None and piece.kind != "narrative":
            piece = Said(
                piece.text,
                piece.plain,
                piece.companies if piece.names_company else previous.companies,
                piece.ambiguous if piece.names_company else previous.ambiguous,
                piece.periods or previous.periods,
                piece.metrics or previous.metrics,
            )
        completed.append(piece)
    return completed


def _merged(asked: Sequence[Said], whole: Said) -> list[Said]:
    """The questions to answer apart; one that leans on its neighbour is no question apart."""
    if len(asked) < 2:
        return [whole]
    completed = _completed(asked)
    if any(after.leans and after.kind == "narrative" for after in completed[1:]):
        return [whole]
    figures = [piece for piece in completed if piece.kind != "narrative"]
    if len(figures) == len(completed) and _asked_apart(completed) == _asked_together(completed):
        return [whole]
    return completed


def _intent_of_parts(text: str, whole: Said, parts: Sequence[Said]) -> Intent:
    needs = [_needs(part, part.kind) for part in parts]
    if parts[0].leans:
        needs = [["reference"]]
    order: tuple[Slot, ...] = ("reference", "company", "period", "metric")
    kind: Kind = "comparison" if whole.kind == "comparison" and _COMPARES.search(whole.plain) else parts[0].kind
    return {
        **_intent_of_one(text, whole),
        "kind": kind,
        "needs": [slot for slot in order if any(slot in open_slots for open_slots in needs)],
        "sub_questions": [_sub_question(part) for part in parts],
        "asks": True,
    }


def _sub_question(said: Said) -> SubQuestion:
    kind = said.kind
    periods = _compared_periods(said) if kind == "comparison" else said.periods
    return {
        "text": said.text,
        "kind": "narrative" if kind not in ("fact", "comparison") else kind,  # type: ignore[typeddict-item]
        "companies": list(said.companies),
        "periods": list(periods),
        "metrics": list(said.metrics),
    }


# --- words ---------------------------------------------------------------------------------------------------

_SENTENCE_END = re.compile(r"(?<=[?？;；。!！\n])")
_COMMA = re.compile(r"[,，、]\s*(?:另外|还有|以及|同时|顺便(?:问一?下)?|并且)?|(?:另外|顺便问一?下|以及|还有)|;|\b(?:and also|also)\b")
_CONNECTIVE = re.compile(r"[,，、]|和|与|及|以及|还有|跟|\band\b|\bas well as\b")
_CONTENT = re.compile(r"\w")
_COMPARES = re.compile(
    r"比较|对比|相比|比起|哪个|哪家|哪一[个家年]|谁(?:的)?[^,。]{0,8}(?:更|最|高|多|大|低|少|强)|更[高多大低少强]|最[高多大低少]|差多少|差距|相差|高多少|多多少|低多少|少多少"
    r"|增长|增速|增幅|增加了?|下降|减少|上升|下滑|同比|环比|变化|涨|跌|降低|提高"
    r"|\bvs\b|versus|\bcompar\w+|\bhigher\b|\blower\b|\bmore than\b|\bless than\b|\bgreater\b|\blarger\b|\bbigger\b|\bdifference\b|\bgrow(?:th|n|s|ing)?\b|\bgrew\b|\bincreas\w+|\bdecreas\w+|\bdecline\w*|\bdrop\w*|\bchang\w+|\bfell\b|\brose\b|\bhighest\b|\blowest\b|\byoy\b|year[- ]on[- ]year|year[- ]over[- ]year|\bwhich (?:company|one|year)\b"
)
_GROWS = re.compile(
    r"增长|增速|增幅|增加|下降|减少|上升|下滑|同比|环比|变化|涨|跌|降低|提高|\bgrow\w*|\bgrew\b|\bincreas\w+|\bdecreas\w+|\bdecline\w*|\bdrop\w*|\bchang\w+|\bfell\b|\brose\b|\byoy\b|year[- ]o(?:n|ver)[- ]year"
)
_STEPWISE = re.compile(r"环比|\bqoq\b|quarter[- ]o(?:n|ver)[- ]quarter")
_EXPLAINS = re.compile(
    r"为什么|为何|原因|怎么(?!样)|怎样|如何|什么是|是什么意思|含义|定义|概念|指的?是|包括|包含|区别|申请|申报|补贴|补助|政策|条件|资格|流程|材料|规定|办法|标准|限额|优惠|减免|抵扣|抵税|扣除|符合|满足|享受|认定|可以.*吗|能不能|能否|可否|是否(?:可以|需要|必须)|要求|证明|披露|口径|影响|意味"
    r"|\bwhy\b|\bhow (?:do|can|to|should|is|are) (?!.*\b(?:compare|grow)\b)|\breasons?\b|\bcauses?\b|\bdefin\w+|\bmeaning\b|\bmean\b|\bwhat is (?:a|an) |\bappl(?:y|ication|ying)\b|\beligib\w+|\brequire\w*|\bpolic(?:y|ies)\b|\bsubsid\w+|\bqualif\w+|\bexplain\b|\bincludes?\b|\bthreshold\b|\brules?\b|\bdeduct\w*|\bcan (?:i|we|a|companies)\b"
)
_IS_CONDITION = re.compile(
    r"(?:超过|低于|高于|不足|达到?|不超过|大于|小于|少于|多于|至少|未达|满|以上|以下|以内|不低于|不少于).*(?:企业|公司|单位|的)|(?:企业|公司|单位)[^,。]{0,6}(?:超过|低于|不足|达到|不超过|大于|小于)"
    r"|\b(?:over|under|above|below|more than|less than|fewer than|at least|exceed\w*)\b"
)
_QUANTITY = re.compile(r"多少|几|多大|多高|查|呢|how (?:much|many|big|large|high)|what(?:'s| is| was| are| were)|show|give|tell|list")
_FIGURES_IN_GENERAL = re.compile(
    r"业绩|财务(?!总监|负责人|部|人员)|经营(?:情况|状况|数据|业绩|成果)|数据|财报|年报|季报|指标|表现|怎么样|盈利|赚(?:了)?多少|数字"
    r"|\bperform\w*|\bresults?\b|\bfigures?\b|\bfinancials?\b|\bnumbers\b|\bhow (?:did|is|was|has|are) .*\b(?:do|doing|done)\b|\bdata\b"
)
_PERIOD_WORDS = re.compile(
    r"\d+|[〇零○一二三四五六七八九十两]+(?=年|季)|年度?|财年|第|个?季度?|上半|下半|去年|今年|前年|近|最近|过去|到|至|q\d|h\d|fy|quarter|half|first|second|third|fourth|last|past|this|year|years|three|two|five|fiscal"
)
_FILLERS = re.compile(
    r"[的了吗呢吧啊呀是在和与及、]|公司|一下|请|查|看|问|我|想|要|就|选|那|家|这|\b(?:the|of|in|for|and|company|please|i|mean|it|is|s|from|to|inc|ltd|co)\b"
)
_ASKS_ZH = re.compile(
    r"什么|怎|如何|哪|谁|多少|多久|多长|多大|多高|几|为何|是否|能否|可否|吗|有没有|是不是|能不能|可不可以|要不要|会不会|需不需要|何时|何种|何处|还是|请|介绍|说明|解释|告诉|查一?下|查询|列出|说说|讲讲|我想|帮我|了解|总结|概括|分析|比较|对比|呢"
)
_ASKS_EN = re.compile(
    r"\b(?:what|how|why|when|where|who|whom|whose|which)\b|^(?:is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have|am|shall)\b"
    r"|[,.;:] (?:is|are|do|does|did|can|could|may|must|should|will|would|has|have)\b|\b(?:tell|explain|describe|list|show|give|compare|summari[sz]e|define|help|find|need|want|looking|outline|clarify)\b"
)
_OUT_OF_SCOPE = re.compile(
    r"(?:今天|明天|后天|昨天|周末|现在|这周|下周|今晚|明早)?[\u4e00-\u9fff]{0,6}(?:天气(?:怎么样|如何|好吗|好不好|预报|热不热|冷不冷|冷吗|热吗|[?。!]*$)|气温(?:多少|是多少|怎么样)|会?下雨吗|下不下雨|下雪吗)"
    r"|[讲说来].{0,4}(?:笑话|故事|段子)|(?:写|编|做|创作|作)(?:一?[段个首篇份]|点|些)?[^,。?]{0,12}(?:代码|程序|脚本|诗歌?|小说|作文|歌词|故事|情书|对联|python|java|sql|函数)"
    r"|翻译(?:成|为|一下)|(?:翻译|译)成?(?:英|中|日|法|德|韩|俄)[文语]|解(?:一?下?|这?个?)?(?:方程|数学题|题)|(?:算|计算)一?下?\s*[\d.]+\s*[-+*/×÷]|现在几点|今天(?:是)?(?:几号|星期几|周几)|推荐.{0,6}(?:电影|餐厅|美食|歌曲?|音乐|小说|游戏|股票)|星座|运势|算命|唱(?:一?首|个)?歌|(?:比赛|球赛)(?:比分|结果|谁赢)|(?:怎么|如何)做(?:红烧肉|蛋糕|菜|饭)|菜谱"
    r"|\bweather\b(?!.{0,20}(?:allowance|subsid|leave|insurance|policy|pay\b))|\bwill it (?:rain|snow)\b|\btell (?:me )?(?:a|another|some) (?:joke|story|jokes)\b|\bknow any jokes\b|\bwrite (?:me |us )?(?:an? |some |the )?(?:[\w-]+ ){0,3}(?:poem|story|song|code|script|function|essay|program|haiku|novel|lyrics)\b"
    r"|\btranslate\b.{1,200}\b(?:in)?to (?:english|chinese|french|german|japanese|spanish|korean)\b|\bsolve (?:the|this|for|x|my)\b|\bwhat time is it\b|\bwhat day is (?:it|today)\b|\brecommend (?:me )?(?:an? |some )?(?:good )?(?:movie|film|restaurant|song|book|game|stock)s?\b|\bhoroscope\b|\bsing (?:me )?a song\b|\brecipe\b|\bwho won the (?:game|match|world cup|election)\b|\bwhat(?:'s| is) \d+ ?[-+*/x×÷] ?\d+|\bcalculate \d+ ?[-+*/x×÷] ?\d+"
)
_ARITHMETIC = re.compile(r"(?=.*[+*×÷^=]|.*等于)[\d\s.()]+(?:[-+*/×÷^]\s*[\d\s.()]+)+(?:=|等于)?(?:多少|几)?\s*[=?]*")
