"""What a question asks for: its subject, and the kinds of thing that would answer it. Pure, word by word.

A kind of thing (`Aspect`) is known by the words of a question, of a heading and of a sentence, and by the
figures that a sentence holds. A question may ask for several kinds at once, or, as "how do I apply" does,
for several that belong together.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import rjieba

from nodes.answer.figures import Amount, Date, Figure, Time
from nodes.answer.numerals import MONEY, unit_of
from nodes.answer.units import HAN, Unit
from nodes.reading.bilingual import called, singular


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_NEVER = _pattern(r"(?!)")
_REFUSING_HEADING = _pattern(r"^不予|禁止|^限制|后果|处罚|法律责任|承诺责任|违规|停发|虚假|penalt|repayment")


@dataclass(frozen=True)
class Aspect:
    """A kind of thing to ask for. `against`: words of a sentence that is about something else. `is_refusal`:
    it asks for what is not given or what is punished; for all others, sections about that are no answer.

    `is_soft`: words of the subject may answer alone, as a reason is often told without words that say so.

    `needs`: how surely a sentence holds a figure of that kind, from 0 to 1; None where none is asked for.

    `is_strict`: what is not of this kind is no answer, however much it says of the subject.
    """

    name: str
    asked: re.Pattern[str]
    heading: re.Pattern[str]
    text: re.Pattern[str]
    needs: Callable[[Unit], float] | None = None
    against: re.Pattern[str] = _NEVER
    is_refusal: bool = False
    is_soft: bool = False
    is_strict: bool = False

    def fit(self, unit: Unit) -> float:
        """How well a unit is of this kind, about 1 at best; below 0 where it is of another."""
        by_heading, by_text = (0.45, 0.4) if self.needs is None and not self.is_soft else (0.3, 0.2)
        fit = by_heading if self.heading.search(unit.heading) else 0.0
        fit += by_text if self.text.search(unit.whole) else 0.0
        is_against = self.against.search(unit.whole) or (
            not self.is_refusal and _REFUSING_HEADING.search(unit.heading)
        )
        return fit + 0.5 * self.held_by(unit) - (0.5 if is_against else 0.0)

    def held_by(self, unit: Unit) -> float:
        return self.needs(unit) if self.needs else 0.0


@dataclass(frozen=True)
class Step:
    """One part of an answer: at most `most` sentences of one kind. None: whatever is about the subject."""

    aspect: Aspect | None
    most: int = 3


@dataclass(frozen=True)
class Asked:
    """A question taken apart. `is_wide`: it asks what there is, so a list answers it well. `subject` is the
    question without the words that say only what papers are asked for: they name no document.
    """

    question: str
    words: tuple[str, ...]
    steps: tuple[Step, ...]
    is_wide: bool = False

    @property
    def subject(self) -> str:
        names = {step.aspect.name for step in self.steps if step.aspect}
        return _PAPERS.sub("\n", self.question) if "material" in names else self.question


_PAPERS = _pattern(r"材料|资料|证件|documents?\b|papers?\b|materials?\b")


# Figures


def _in_units(*units: str) -> Callable[[Unit], float]:
    return lambda unit: float(any(_is_in(figure, units) for figure in unit.figures))


def _is_in(figure: Figure, units: Collection[str]) -> bool:
    return isinstance(figure, Amount) and figure.unit in units


_OFFICE = r"[代负]\w{0,2}人|董事长?|监事|(?:总|副)?经理|总裁|主席|主任|[局处科会市]长|联系人|创始人|股东"
_HOLDER = _pattern(
    rf"(?P<office>{_OFFICE})(?:是|叫)(?:谁|什么名字)|谁是.{{0,20}}?(?P<other>{_OFFICE})[?？]?$"
)


def _held_by_someone(question: str) -> Callable[[Unit], float]:
    """Whether a sentence says who holds the office that is asked about."""
    asked = _HOLDER.search(question)
    office = (asked["office"] or asked["other"]) if asked else ""
    said = _pattern(rf"{re.escape(office)}\s*(?:[为是由叫：:]|姓名)")
    return lambda unit: float(bool(said.search(unit.whole)))


# Who asks for a number to call or an address to write to is not told that somebody calls back.
_CALLED = _pattern(
    r"(?:电话|热线|手机|传真|邮箱|邮件|网址|官网)(?:号码?|地址)?(?:是|为)?(?:多少|什么|几号)"
    r"|what(?:'s| is| are)\b.{0,40}\b(?:phone|telephone|hotline|fax|e-?mail|website)\b"
    r"|\b(?:phone|telephone|hotline|fax) numbers?\b"
)
_REACHED = _pattern(
    r"(?<!\d)(?:\+|0)\d[\d() -]{6,}\d|(?<!\d)(?:1[3-9]\d{9}|[48]00-?\d{3}-?\d{4})(?!\d)"
    r"|(?:电话|热线|拨打|传真|\bcall|\bhotline|\bphone)\W{0,3}[^\d。；;]{0,8}\d{3,}|[\w.+-]+@[\w-]+\.\w|https?://|www\."
)


def _tells_where_to_turn(unit: Unit) -> float:
    return float(bool(_REACHED.search(unit.whole)))


_currency, _percent = _in_units(*MONEY), _in_units("%")


def _money(unit: Unit) -> float:
    """A sum, or less surely a share of one."""
    return max(_currency(unit), 0.8 * _percent(unit))


def _sums(unit: Unit) -> float:
    return max(_currency(unit), _percent(unit))


_spans = _in_units("day", "workday", "month", "minute")


def _amounts(unit: Unit) -> float:
    amounts = [figure for figure in unit.figures if isinstance(figure, Amount)]
    return max((0.9 if amount.is_weak else 1.0 for amount in amounts), default=0.0)


def _dates(unit: Unit) -> float:
    return float(
        any(isinstance(figure, Date | Time) and not _is_mere_year(figure) for figure in unit.figures)
    )


def _is_mere_year(figure: Date | Time) -> bool:
    return isinstance(figure, Date) and (figure.month, figure.quarter, figure.half) == (None, None, None)


def _times(unit: Unit) -> float:
    """A date, or less surely a day counted from some event."""
    return _dates(unit) or 0.7 * (_COUNTED_DAY.search(unit.whole) is not None)


_COUNTED_DAY = _pattern(
    r"\d(?:个?工作)?(?:日|天|个月)之?[前内](?!完成|作出)|第.{1,6}\d日"
    r"|\d (?:working )?days? (?:before|after)|within \d"
)


def _dates_or_spans(unit: Unit) -> float:
    return max(_dates(unit), _spans(unit))


# Kinds of things. A sentence that sets a limit or a penalty is no step of a procedure.
_LIMIT = (
    "不得|不予|不适用|不再|不能|不影响|追回|取消|撤销|罚款|停发|暂停|拒绝|终止|重新申请|延续申请"
    r"|\bnot\b|withdrawn|cancelled|repay"
)
_TERM_OF_VALIDITY = r"有效期|执行期限|起施行|起执行|届满|废止|\bvalid\b|validity|in force|expires"
_HOW_LONG = (
    r"多久|多长|几天|几个?工作日|多少个?(?:天|日|工作日)|几个月|几年|多少年"
    r"|how (?:long|many (?:working )?days)"
)

_PENALTY = r"罚款|处罚|滞纳金|\bpenalt(?:y|ies)\b|\bfined?\b"

_ASPECTS: dict[str, Aspect] = {
    aspect.name: aspect
    for aspect in (
        Aspect(
            "why",
            _pattern(r"为什[么麽]|为何|为啥|凭什么|原因|理由|\bwhy\b|\breasons?\b|what for\b"),
            _pattern(r"为什么|为何|原因|理由|目的|背景|\bwhy\b|reason|purpose|background"),
            _pattern(
                r"因为|由于|原因|之所以|为了?[^\s，,。]{2,}(?:，|,|制定|起见)|以便|以免|避免|防止|否则|不予通过|被?退回"
                r"|\bbecause\b|\bdue to\b|\bin order to\b|\bso that\b|\breasons?\b"
            ),
            is_refusal=True,
            is_soft=True,
        ),
        Aspect(
            "meaning",
            _pattern(r"什么意思|含义|是指什么|指的是什么|怎么理解|\bmeans?\b|\bmeaning\b|stands? for"),
            _pattern(r"定义|含义|说明|meaning|definition"),
            _pattern(r"是指|指的是|含义|意思是|\bmeans?\b|refers to|stands for"),
        ),
        Aspect(
            "penalty",
            _pattern(r"会怎么?样|后果|罚|处罚|会被|什么责任|happens? (?:if|when)|penalt|\bfined?\b"),
            _pattern(r"后果|处罚|责任|违规|违法|逾期|超出|禁止|penalt|happens"),
            _pattern(r"罚款|列入|取消|追回|责令|停止|拆除|返回|withdrawn|stopped|penalt|returns"),
            is_refusal=True,
        ),
        Aspect(
            "valid",
            _pattern(
                r"有效期|到期|失效|过期|生效|施行|(?:开始|起)执行|执行到|有效|用到什么时候"
                r"|\bvalid|expir|in force|effect\b|run out"
            ),
            _pattern(r"有效期|施行|执行期|生效|期限|validity"),
            _pattern(r"有效期|起施行|起执行|执行期限|^自\d.{0,12}起|期满|\bvalid\b|in force|expires"),
            _dates_or_spans,
            _pattern(r"办结|工作日内|受理之日"),
        ),
        Aspect(
            "process",
            _pattern(
                rf"(?:办|审|批|受理|注销|登记|认定|答复|处理|到账|拨付|拿到|下来|决定|要|需|花).{{0,8}}(?:{_HOW_LONG})"
                rf"|(?:{_HOW_LONG}).{{0,6}}(?:办|审|批|受理|答复|到账|拨付|拿到|下来|出结果|决定)|工作日"
                r"|how long (?:does|do|will|would|is|are).{0,60}"
                r"(?:take|process|decid|approv|register|review|wait)"
                r"|how (?:soon|quickly|fast)|processing time"
            ),
            _pattern(r"时限|办理(?!条件|材料)|流程|程序|审核|认定|\btime\b|processing|decision"),
            _pattern(r"工作日|当场|作出决定|办结|decided|registered|decides|within"),
            _in_units("day", "workday", "minute"),
            _pattern(
                rf"{_TERM_OF_VALIDITY}|{_PENALTY}|公示期|另行|申请(?:变更|续期|延续)|\bfiles (?:an?|the)\b"
            ),
        ),
        Aspect(
            "term",
            _pattern(rf"期限|最长|{_HOW_LONG}|duration"),
            _pattern(r"期限|时限|有效期|\bterm|period|time|validity"),
            _pattern(r"期限|最长|不超过|保留|保存|累计|up to|kept|run for|within"),
            _spans,
        ),
        Aspect(
            "when",
            _pattern(
                r"什么时候|何时|啥时候|哪天|哪年|几月|几号|几点|开门|哪个月|日期|时间|截止|deadline"
                r"|\bwhen\b(?!.{0,60}(?:needed|required|necessary))"
                r"|what (?:date|time|day)|by which|open from|opening hours"
            ),
            _pattern(
                r"时间|期限|日期|截止|安排|有效期|deadline|application|decision|hours|steps|renewal|when"
            ),
            _pattern(
                r"每年|截止|申报|申请|受理|报送|开放|缴纳|截止日期"
                r"|accepted|\bopen|\bdue\b|from \d|before|within|when\b"
            ),
            _times,
            _pattern(_TERM_OF_VALIDITY),
        ),
        Aspect(
            "fee",
            _pattern(
                r"收费|收钱|要钱|花钱|免费|手续费|费用是?多少|free of charge|\bfees?\b|\bcosts?\b|for free"
            ),
            _pattern(r"收费|费用|\bfees?\b|charge"),
            _pattern(r"收取|不收费|收费|免费|免收|费用由|\bfree\b|\bfees?\b|charge|costs"),
        ),
        Aspect(
            "share",
            _pattern(
                r"比例.{0,3}多少|多少比例|什么比例|比例$|百分之|占比|率(?:是|上限|标准)|几成"
                r"|percent|share|proportion|what rate"
            ),
            _pattern(r"标准|比例|rates?"),
            _pattern(r"比例|percent"),
            _in_units("%", "pp"),
        ),
        Aspect(
            "money",
            _pattern(
                r"多少钱|多少元|几块|金额|额度|上限|(?:最高|最多).{0,8}多少|什么标准|标准(?:是(?:什么|多少)?)?[?？。]?$|(?:补贴|补助|奖励|资助|贷款|贴息|工资"
                r"|奖金|优惠|收入|给|发|补|奖|贷|领|拿|罚).{0,8}多少|多少.{0,6}(?:补贴|补助|奖励|贷款|资金|奖金)"
                r"|how much|amount|maximum|minimum|\blimits?\b|\ballowance|\brate"
            ),
            _pattern(
                r"标准|金额|额度|上限|支持|扶持|补贴|补助|资助|奖励|优惠|减免|贴息|工资|rates?\b|amount|grant|support|reward|fairs?"
            ),
            _pattern(r"标准|最高|补贴|补助|奖励|资助|贴息|给予|receives?|up to|pays|refunds"),
            _money,
            _pattern(_PENALTY),
        ),
        Aspect(
            "number",
            _pattern(
                r"多少|多[大高重远宽]|几[个家人名次项岁条件台辆种]|how (?:many|large|big|old|high)|number of"
            ),
            _NEVER,
            _NEVER,
            _amounts,
        ),
        Aspect(
            "exempt",
            _pattern(
                r"(?:哪些|哪种|什么|谁|什么样).{0,12}不"
                r"(?:能|可|用|需要?|必|受|得|算|予|享受|支持|包括?|保|在|给|退|批|接受|收)"
                r"|(?:哪些|什么).{0,12}无需|免于|豁免|(?:which|what) .{0,40}(?:\bnot\b|n't\b|exempt)"
                r"|who (?:cannot|may not)"
            ),
            _pattern(
                r"(?:不予|不适用|不计入|不享受|不支持|不包括|不保).{0,6}$|不在.{0,6}范围|除外|禁止"
                r"|\bnot\b|exempt|exclu"
            ),
            _pattern(
                r"不适用|不得|不予|不需要|无需|不必|免|不享受|不计入|不支持|不包括|不接受|不在|除外"
                r"|\bnot?\b|exempt|exclud"
            ),
            is_refusal=True,
        ),
        Aspect(
            "material",
            _pattern(
                r"材料|资料|证件|(?:提交|交|带|准备|上传|递交)(?:些|哪些)?(?:什么|啥|(?<=哪些)东西)|哪些(?:文件(?!格式)|表)"
                r"|documents?\b|papers?\b|materials?\b|what .{0,12}(?:file|submit)"
            ),
            _pattern(r"材料|资料|证明|documents?|what to file|materials|application$"),
            _pattern(r"提交|上传|填报|填写|提供|\bfiles?\b|uploads?|submits?|proof"),
        ),
        Aspect(
            "how",
            _pattern(
                r"怎么(?!回事|样|算)|如何|怎样|咋|流程|步骤|手续|程序|方式|自己申请"
                r"|how (?:do|can|to|does|should|would)\b|procedure|process\b|steps"
            ),
            _pattern(
                r"流程|程序|方式|办理(?!时限|条件)|步骤|申请(?!材料|条件|时间|时限)|享受|处置|网办|公示期"
                r"|steps|procedure|application|how to|registration$"
            ),
            _pattern(
                r"登录|登陆|提交|申请人?(?:通过|在|向|应当)|可以(?:通过|在)|填报|填写|公告|门户|窗口|免申即享|自行申报"
                r"|提出|举报|线上|网上|\bfiles?\b|\bappl(?:y|ies) (?:on|at|to|through|via|by)|submits?"
                r"|uploads?|announces?|registers?\b"
            ),
            None,
            _pattern(_LIMIT),
        ),
        Aspect(
            "where",
            _pattern(
                r"在哪|哪里|哪儿|什么地方|哪个(?:部门|窗口|单位|局)|\bwhere\b|which (?:office|desk|bureau)"
            ),
            _pattern(r"在哪|哪里|地点|办理|窗口|范围|方式|流程|where|office|desk"),
            _pattern(r"门户|窗口|大厅|专窗|专区|地址|portal|counter|office|\bdesk"),
        ),
        Aspect(
            "condition",
            _pattern(
                r"条件|资格|要求|谁|哪些人|哪[些种类](?:企业|公司|单位)|对象|范围|什么样的|什么(?:企业|公司|人)|符合|限制"
                r"|门槛|能不能|可不可以|可以.{0,12}吗|能.{0,12}吗|什么情况|condition|eligib|\bwho\b|qualif|require|allowed"
                r"|when .{0,60}(?:needed|necessary)"
            ),
            _pattern(
                r"条件|对象|范围|资格|要求|情形|标准$"
                r"|\bwho\b|eligib|condition|categor|minimum|when .{0,12}needed"
            ),
            _pattern(
                r"应当|须|符合|面向|发给|满\d|不低于|不超过|不少于|是指|可以申请|\bmust\b|\bmay\b|at least"
            ),
        ),
        Aspect(
            "contact",
            _pattern(
                r"电话|联系|地址|咨询|热线|传真|邮箱|网址|\bphone|contact|\baddress|email|hotline|website"
            ),
            _pattern(r"电话|联系|咨询|地址|热线|phone|contact|help"),
            _pattern(r"电话|联系|热线|咨询|call|phone|desk"),
        ),
        # Who holds an office: only a sentence that names the holder tells, see `_held_by_someone`.
        Aspect("person", _HOLDER, _NEVER, _NEVER, is_strict=True),
        Aspect(
            "benefit",
            _pattern(
                r"(?:什么|哪些|啥|哪种|哪几[种项个]).{0,10}(?:优惠|补贴|补助|支持|奖励|扶持|政策|减免|资助|福利|帮助|好处|资金)"
                r"|(?:优惠|补贴|补助|奖励|扶持|政策|减免|资助)都?有(?:哪些|什么|啥|几[种项个])"
                r"(?!.{0,6}(?:条件|材料|要求|流程|手续|步骤|限制|程序|规定|资格|门槛|时间|期限|用|区别|影响))"
                r"|享受什么|支持政策"
                r"|what (?:support|help|benefits?|subsid|grants?|incentives?)"
            ),
            _pattern(
                r"标准|优惠|减免|支持|奖励|资助|补助|补贴|额度|激励|待遇|support|rates?\b|amount|reward|grant|purpose"
            ),
            _pattern(r"减按|免|补助|补贴|奖励|资助|贴息|给予|最高|receives?|refunds?|pays|up to|earns?"),
            _sums,
            _pattern(r"不得|不予|追回|是指"),
        ),
        Aspect(
            "scope",
            _NEVER,
            _pattern(r"对象|范围|用途|适用|purpose|\bwho\b|scope|when .{0,12}needed|categor"),
            _pattern(r"面向|用于|是指|应当取得|发给|支持|可以申请|用于|helps|may\b|is for|covers"),
            None,
            _pattern(r"不得|不适用|不在"),
        ),
    )
}
# A more exact kind leaves no room for these.
_YIELDS: dict[str, frozenset[str]] = {
    "why": frozenset(
        {
            "condition",
            "how",
            "exempt",
            "penalty",
            "number",
            "term",
            "process",
            "when",
            "money",
            "fee",
            "material",
        }
    ),
    "penalty": frozenset({"when", "condition", "number", "how", "fee", "valid"}),
    "valid": frozenset({"when", "term", "process", "number", "how"}),
    "process": frozenset({"term", "when", "number", "how", "money"}),
    "term": frozenset({"when", "number", "how", "money"}),
    "when": frozenset({"number", "how", "money", "condition"}),
    "fee": frozenset({"money", "number", "how", "condition"}),
    "share": frozenset({"money", "number"}),
    "money": frozenset({"number", "how", "condition"}),
    "exempt": frozenset({"condition", "how", "when", "material", "fee", "benefit"}),
    "material": frozenset({"condition"}),
    "benefit": frozenset({"money", "number", "how", "condition"}),
    "number": frozenset({"condition"}),
}
# Kinds that a figure alone answers: a question answered by yes or no does not ask for one.
_FIGURES = frozenset({"money", "number", "share", "term", "when"})
_CLAUSE_END = re.compile(r"[，；,;]\s*(?=\S*?(?:多|几|什么|哪|谁|怎|如何|\bhow\b|\bwhat\b|\bwhen\b))")
_YES_NO = _pattern(
    r"[吗么嘛]\s*[?？。]?$|能不能|是不是|是否|可不可以|算不算|要不要|有没有"
    r"|^(?:can|could|may|is|are|do|does|must|should|will)\b"
)
_WIDE = _pattern(
    r"了解|介绍|是什么|怎么回事|什么是|说说|讲讲|一览|概况|tell me about|overview|explain"
    r"|what (?:is|are) (?!the (?:dead|amount|max|min|fee|cost|rate|date))"
)
_QUESTION_WORDS = _pattern(
    r"什么|吗|么|呢|哪|几|多|谁|怎|如何|是否|能否|[?？]|\b(?:how|what|which|who|when|where|why|is|are|can|do|does)\b"
)


def asked_of(question: str) -> Asked:
    """What `question` asks for, the parts of the answer in the order they are looked for."""
    names = _names(question)
    is_bare = not _QUESTION_WORDS.search(question)
    is_wide = "benefit" in names or (not names and bool(_WIDE.search(question) or is_bare))
    return Asked(question, _words(question, names), _steps(question, names, is_wide=is_wide), is_wide)


def _names(question: str) -> set[str]:
    """A kind gives way to another within one clause only: 最多多少钱，期限多久 asks for both."""
    return set().union(*map(_names_in, _CLAUSE_END.split(question)))


def _names_in(question: str) -> set[str]:
    found = {name for name, aspect in _ASPECTS.items() if aspect.asked.search(question)}
    if _YES_NO.search(question):
        found -= _FIGURES
    for name, lesser in _YIELDS.items():
        if name in found:
            found -= lesser
    return found


def _steps(question: str, names: set[str], *, is_wide: bool) -> tuple[Step, ...]:
    """Kinds in the order in which they are asked for; those that belong together, together."""
    if "benefit" in names:
        return (_step("benefit", 4),)
    if is_wide:
        return (_step("scope", 1), _step("benefit", 2), _step("how", 1))
    if "how" in names:
        return (_step("how", 2), _step("material", 2), _step("when", 1))
    found = sorted(names, key=lambda name: _place(name, question))
    if single := _single(found, question):
        return (single,)
    steps = tuple(_step(name, 3 if len(found) == 1 else 2) for name in found) or (Step(None),)
    return tuple(map(_of_penalties, steps)) if _ASPECTS["penalty"].asked.search(question) else steps


def _single(found: Sequence[str], question: str) -> Step | None:
    """The one part of an answer where the question tells what exactly a sentence must hold."""
    if "person" in found:
        return Step(replace(_ASPECTS["person"], needs=_held_by_someone(question)), 1)
    if "contact" in found and _CALLED.search(question):
        return Step(replace(_ASPECTS["contact"], needs=_tells_where_to_turn, is_strict=True), 2)
    if found == ["number"]:
        return Step(replace(_ASPECTS["number"], needs=_counted(question)))
    if found == ["term"] and _DAYS.search(question):
        return Step(replace(_ASPECTS["term"], needs=_in_units("day", "workday")))
    return None


# Who asks for days is not told by years or months.
_DAYS = _pattern(r"(?:几|多少)个?(?:天|工作日)|how many (?:\w+ )?days")


def _of_penalties(step: Step) -> Step:
    """Sums of money are wanted though they are penalties, where that is what is asked."""
    is_sum = step.aspect is not None and step.aspect.name == "money"
    return Step(replace(step.aspect, against=_NEVER), step.most) if step.aspect and is_sum else step


def _counted(question: str) -> Callable[[Unit], float]:
    """Amounts of what is counted, where the question says what."""
    measure = re.search(r"(?:多少|几)个?(?P<of>[次人名家户岁项件])", question)
    return _in_units(unit_of(measure["of"])[0]) if measure else _amounts


def _step(name: str, most: int) -> Step:
    return Step(_ASPECTS[name], most)


def _place(name: str, question: str) -> int:
    match = _ASPECTS[name].asked.search(question)
    return match.end() if match else len(question)


# The subject

# Phrases that ask and name nothing. They go before words are told apart, which they would fuse with.
_ASKING = _pattern(
    r"(?:能|可以?)(?:领取?|拿|补|贷|报销?|发|借|享受|申请)到?(?=多|几|什么|哪)|[一每]个?(?:月|年|天|次|季度|学期)(?=多少|几)"
    r"|(.{1,2})[不没]\1|多少(?:个?工作日|[天钱个次年月人元家种])?|几(?:个?工作日|个?月份?|[天年个次月人元家种岁号点])"
    r"|[什甚]么(?:时候|样的?|情况|地方)?|啥(?:时候)?|会?(?:怎么(?:办理?|样|回事)?|怎样|如何|咋)|为[什何]么?|哪[些个里儿种位年天]"
    r"|是否|能否|可否|多[久长大高](?:时间)?|请问|最[长高多低少大小](?=能|可|多|是|几|$)|能用来?|用来|(?:能|才|可以)?(?:办|批|审)(?:好|完|成|下来)|干什么|需要|可以|应该|想要?了解|(?<=.)要(?=什么|多|几|提交|交|带|准备|哪)"
)
_STOP_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        吗 呢 的 了 是 在 有 和 与 及 或 我 我们 你 您 请 想 知道 能 要 一下 时候 关于 对 对于 这 那 这个 那个
        吧 啊 就 都 也 还 会 到 从 把 被 给 让 按 按照 一起 里 中 钱 算 个 去 办 领 拿 交 带 用 做 每 每个
        每人 每户 每年 每月 现在 现行 目前 今年 开始 具体 一般 方面 自己 得 过 后 前 时 时间 长时间 没 不 不能
        不用 没有 好 下来 上 一家 包含 包括
        the a an is are was were be been do does did can could may might must shall should will would i we
        you it they he she my our your of in on at to for from by with about as and or if what which who
        whom whose when where why how much many long there that this these those me us please tell get take
        takes have has had need needed needs any some soon
        另外 还有 此外 顺便 请教 咨询 意思 原因 理由 东西 之内 以内 之前 之后 回来 发 why next last year
        month doe
        """,
    )
)


def _words(question: str, names: set[str]) -> tuple[str, ...]:
    """The words of the subject, each once, in order.

    Words that only say what kind of thing is asked for are left out, unless there are no others.
    """
    words = [word for word in _cut(_ASKING.sub(" ", question.casefold())) if word not in _STOP_WORDS]
    kinds = [_ASPECTS[name] for name in names]
    subject = [word for word in words if not any(_says(kind, word) for kind in kinds)]
    return tuple(subject or words)


def _cut(folded: str) -> list[str]:
    """Words, each once, in order; Chinese by the dictionary."""
    words: list[str] = []
    for run in re.findall(rf"{HAN.pattern}+|{_LATIN}", folded):
        words += rjieba.cut(run) if HAN.search(run) else [singular(run)]
    return list(dict.fromkeys(words))


def _says(kind: Aspect, word: str) -> bool:
    return any(pattern.fullmatch(word) is not None for pattern in (kind.asked, kind.heading, kind.text))


# Words that name so many things that they tell little of the subject.
_GENERAL = frozenset(
    re.findall(
        r"\S+",
        """
        企业 公司 单位 个人 申请人 政策 项目 补贴 补助 资金 奖励 资助 费用 标准 本市 全市 申请 办理 申报
        享受 参加 company firm city grant subsidy apply claim set up
        """,
    )
)


def weight_of(word: str) -> float:
    """How much a word tells of the subject, apart from its rarity."""
    return 0.4 * min(len(word), 6) if is_general(word) else float(max(2, min(len(word), 6)))


def is_general(word: str) -> bool:
    return word in _GENERAL


# Whether a text holds a word

# Everyday and official words for one thing.
_SAME = tuple(
    frozenset(line.split())
    for line in """
    年报 年度报告
    员工 职工
    公司 企业
    招 招用 吸纳
    外国人 外籍 外籍人员 外籍人士
    应届生 毕业生
    饭店 餐馆 餐饮
    附件 文件
    太大 过大 超过
    高企 高新技术企业
    税收 税费
    小微企业 小企业 小型微利企业
    小时工 小时
    帮助 支持 support help
    小孩 孩子 子女
    租房 租金
    申诉 复核
    按时 逾期 未在
    换 更换 变更
    社保 社会保险
    医保 医疗保险
    个税 个人所得税
    延期 延续 续期 续办
    招人 招聘 招用
    住所 地址 换地址
    审批 许可 批准
    残保金 保障金
    年龄 周岁
    返乡 返乡入乡
    注册 登记 设立 开办
    单据 票据 凭证
    驳回 退回 拒绝
    坏 故障 损坏
    处罚 罚款
    出差 差旅
    lose lost loss
    decide decision
    apply application
    leave left
    buy purchase bought
    pay paid payment
    get obtain receive
    park parking
    """.strip().splitlines()
)


def share_held(word: str, text: str, tokens: frozenset[str]) -> float:
    """How much of `word` a folded text holds: 1 all, less for another form or name, and 0 for nothing.

    `tokens` are the text's words. A longer Chinese word counts by the pairs of characters that are held,
    one of two characters as short for a longer one: 年报 for 年度报告.
    """
    if _is_held(word, text, tokens):
        return 1.0
    if any(_is_held(other, text, tokens) for group in _SAME if word in group for other in group):
        return 0.9
    if _is_called(word, text, tokens):
        return 0.85
    if len(word) == 2 and HAN.search(word):
        return 0.8 if re.search(f"{word[0]}.{word[1]}", text) else 0.0
    if HAN.search(word):
        pairs = [word[at : at + 2] for at in range(len(word) - 1)]
        return 0.8 * sum(pair in text for pair in pairs) / len(pairs) if len(pairs) > 1 else 0.0
    return 0.8 if any(_is_form(word, token) for token in tokens) else 0.0


def _is_held(word: str, text: str, tokens: frozenset[str]) -> bool:
    return word in text if HAN.search(word) else word in tokens


def _is_called(word: str, text: str, tokens: frozenset[str]) -> bool:
    """Whether a name that the word has in the other language stands there."""
    english, chinese = _names_of(word)
    return any(name <= tokens for name in english) or any(name in text for name in chinese)


@lru_cache(maxsize=2048)  # a question's few words are looked for in every sentence
def _names_of(word: str) -> tuple[list[frozenset[str]], list[str]]:
    """English ones by their words, and Chinese ones."""
    names = called(word)
    english = [frozenset(name.split()) for name in names if name.isascii()]
    return english, [name for name in names if not name.isascii()]


def _is_form(word: str, token: str) -> bool:
    """register, registered, registration: a common beginning of five letters and most of the longer word."""
    common = next((at for at, (a, b) in enumerate(zip(word, token, strict=False)) if a != b), 99)
    return min(common, len(word), len(token)) >= max(5, 0.55 * max(len(word), len(token)))


_LATIN = r"[a-z0-9]+(?:[-'&][a-z0-9]+)*"


def tokens_of(folded: str) -> frozenset[str]:
    """The words of a text that are not Chinese, in the singular; Chinese is looked up as it stands."""
    return frozenset(map(singular, re.findall(_LATIN, folded)))


def common_run(question: str, title: str) -> int:
    """The length of the longest run of Chinese characters, or of English words, that both hold."""
    ours, theirs = _run_parts(question), _run_parts(title)
    longest, ending = 0, [0] * (len(theirs) + 1)
    for part in ours:
        ending = [
            0,
            *(before + 1 if part == other else 0 for before, other in zip(ending, theirs, strict=False)),
        ]
        longest = max(longest, *ending)
    return longest


MIN_SAID_OF_ENDED = 0.5


def names_document(question: str, title: str) -> bool:
    """Whether a title says at least half of the subject, apart from words that fit any document."""
    asked = [asked_of(line) for line in question.splitlines() if line.strip()]
    words = [word for part in asked for word in part.words if not is_general(word)]
    folded = title.casefold()
    said = sum(weight_of(word) * share_held(word, folded, tokens_of(folded)) for word in words)
    return bool(words) and said >= MIN_SAID_OF_ENDED * sum(map(weight_of, words))


def names_heading(question: str, heading: str, title: str) -> bool:
    """Whether a question has nearly all of a heading just as it stands, or all words of an English one.

    A heading of one English word must stand there just so. A word of the title is no name of a section.
    """
    if HAN.search(heading):
        return common_run(question, heading) >= max(3, 0.7 * len(_run_parts(heading)))
    all_words = tokens_of(heading.casefold())
    words = {word for word in all_words if len(word) > 3 and word not in _STOP_WORDS}
    if len(all_words) == 1:  # "category B" is not about "Categories"
        is_just_so = heading.casefold().strip() in re.findall(_LATIN, question.casefold())
        return is_just_so and bool(words - tokens_of(title.casefold()))
    return len(words) > 1 and words <= tokens_of(question.casefold())


def _run_parts(text: str) -> list[str]:
    return [singular(part) for part in re.findall(rf"{HAN.pattern}|{_LATIN}|[^\s\w]", text.casefold())]


def asked_parts(question: str) -> Sequence[Asked]:
    """One for each line: a question of several parts has a line for each."""
    return [asked_of(line.strip()) for line in question.splitlines() if line.strip()]
