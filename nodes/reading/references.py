"""Does a text lean on something unsaid? Decided from its own words alone: pronouns, ellipsis, "that one".

A pronoun whose noun stands earlier in the same text leans on nothing; nor do words that only look alike
(其他, 应该, 这个月, "it is possible", "that" joining clauses).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nodes.reading.folding import MASK, squeeze, words_as_written


@dataclass(frozen=True)
class Reference:
    """The words that are unclear, as the user wrote them."""

    mention: str


Span = tuple[int, int]


@dataclass(frozen=True)
class Known:
    """What else was understood of the text."""

    companies: bool
    periods: bool
    metrics: bool

    @property
    def names_all(self) -> bool:
        return self.companies and self.periods and self.metrics

    @property
    def names_a_figure(self) -> bool:
        """A company's figure: only its period may be missing, and that can be asked by name."""
        return self.companies and self.metrics


def needs_reference(
    text: str, *, companies_found: bool, periods_found: bool = False, metrics_found: bool = False
) -> Reference | None:
    """The mention that needs a referent, or None where the text stands alone."""
    squeezed = squeeze(text)
    known = Known(companies_found, periods_found, metrics_found)
    span = next((span for find in _FINDERS for span in [find(squeezed, known)] if span), None)
    if span is None:
        return None
    return Reference(words_as_written(text, squeezed, *span) or squeezed[slice(*span)])


def strip_reference(text: str) -> str:
    """The text without the words that only point backwards ("那", "刚才说的", "what about", "and")."""
    squeezed = squeeze(text)
    opening = _POINTING_OPENING.match(squeezed)
    start = opening.end() if opening else 0
    rest = _TRAILING_NE.sub(r"\1", squeezed[start:])
    if not rest.strip(" ?.!。,"):
        return text.strip()
    return words_as_written(text, squeezed, start, start + len(rest)) if start + len(rest) else text


# --- Chinese -------------------------------------------------------------------------------------------------

_POLITE = (
    r"(?:(?:请问(?:一下)?|麻烦问下|我?想(?:请)?问(?:一下)?|我想(?:知道|了解)(?:一下)?|问一下|好的?|嗯+|哦+|谢谢|明白了?|知道了"
    r"|对了|你好|您好|另外|不过|但是?|可是|所以|然后|而且|如果是|如果|要是|假如|关于|对于|至于|是不是|是否)[,。!、\s]*)*+"
)
_GENERIC = (
    r"(?:公司|企业|单位|政策|规定|限制|补贴|补助|项目|办法|文件|产品|功能|指标|费用|标准|条款|条例|条件|要求|材料|情况|问题|方案|方法|方式"
    r"|流程|程序|步骤|系统|平台|服务|业务|制度|通知|公告|资料|数据|数字|数|金额|比例|期限|时间|日期|优惠|资格|证书|证件|许可|申请|部门|机构"
    r"|地方|城市|人|员工|岗位|账号|配置|错误|结果|答案|内容|说法|意思|规则|协议|合同|计划|活动|奖励|基金|贷款|税|税种|业绩|利润|收入|营收|价格)"
)
_DEIXIS = re.compile(
    r"[这那]么(?:多|少|大|高|快|久|说来|一来|做)|这(?:个|一)?(?:月|周|星期|礼拜|季度|季|年度|学期|阶段|时候|段时间)|这几[年天个]"
    r"|这(?:一|些)?年|这次|这边|这里是|这个?(?:系统|助手|网站|机器人|平台|app|软件|工具)|那么(?=多|少|大|高)|刹那|支那"
)
_ABOUT_NOTHING = re.compile(r"因此|彼此|从此|如此|此外|此前|此后|此次|此刻|至此|就此|在此|特此|应该|活该|本该|不该|该不该|理该|合该|该当")
_THE = re.compile(
    rf"(?<![应活本不理合])该(?={_GENERIC}|指标|等)|此(?={_GENERIC}|项|类|种|处|举|等)|[这那](?=一?{_GENERIC})"
    r"|[这那](?:一)?(?:个|些|种|项|类|条|款|家|样|份|笔|点|件|两|几|三|里|边|儿|部分)"
    r"|(?:上述|前述|前文|上文|文中)|(?:刚才|刚刚|方才|之前|先前|前面|上面|以上|你|您)(?:你|您|我|我们)?(?:刚|刚才|所)?"
    r"(?:说|提|讲|问|聊|介绍|回答|列|推荐|给)(?:到|过|及|出|的|了|我)+"
    r"|(?:刚才|刚刚|方才)[的那]|上一?个(?:问题|回答|公司|政策|方案|话题)|同样的?(?=问题|情况|条件|公司)"
)
_PERSON = re.compile(
    r"它们?|(?<![其吉])他们?(?![人国项杀用])|她们?|(?<![尤极与何莫土])其(?![他它实次间一二三余中])(?=[\u4e00-\u9fff])"
)
_CLAUSE_START = re.compile(r"(?:^|[,。;?!:、])")
_OF_ITSELF = re.compile(
    rf"^{_POLITE}(?:那|它)?(?P<words>其中|其余|其他的|另外?一?(?:个|家|种|项)|剩下的?|最后一?(?:个|种|项|条)"
    r"|第[一二三四五六七八九十\d]+(?:个|种|项|条|款|点|类|家|步)"
    r"(?=的|呢|是|有|怎|在|可|能|需|要|和|跟|与|[?。!,]|$|方案|选项|问题|方法|方式|条件|政策|项目|情况|公司|办法|材料|补贴)"
    r"|前者|后者|前两[者个种家]|两者|二者|三者|两家(?:公司)?(?=[的谁哪都有差之]|$)|这两者?|上面|以上(?=[?的内政条问材情规这些两几都哪])|前面的?)"
)
_THEN = re.compile(
    rf"^(?:(?:好的?|嗯+|哦+|谢谢|明白了?|知道了|不过|但是|可是)[,。!、\s]*)*+(?P<words>那么?|然后|还有|另外|再|继续)"
    r"(?![么样些个种家里边年天时月次位条项多少几是])"
)
_ALSO = re.compile(
    r"(?P<words>也(?:都|会|能)?(?:是)?(?:一样|是|这样|如此|可以|行|适用|需要|要|有|能|算|包括|受(?:影响|限))(?:的|吗|么|吧|呢)*)[?。!]*$"
)
_BARE_NE = re.compile(r"(?P<words>[^,。;!?]+)呢[?。!]*$")
_TRAILING_NE = re.compile(r"呢([?。!]*)$")
_ASKING = re.compile(
    r"什么|怎|如何|哪|谁|多少|多久|多长|多大|多高|几|为何|是否|能否|可否|有没有|是不是|能不能|可不可以|要不要|会不会|吗|[多何]时|还是"
)
_WHICH_OF = re.compile(r"^(?P<words>(?:那|那么)?(?:哪[一]?(?:个|家|种|项)|谁)的?(?:更|比较|最)?(?:高|好|大|多|低|少|快|强|便宜|划算|合适)(?:一?[些点])?)[吗呢?。!]*$")

# A question made of these words alone says nothing about what it is asked of.
_EMPTY_WORDS = re.compile(
    r"(?:为什么|为何|什么时候|什么时间|什么|怎么样|怎么办|怎么|怎样|如何|哪里|哪儿|哪些|哪个|哪家|哪种|哪项|哪|谁|多少钱|多少|多久|多长时间|多长"
    r"|多大|多高|几个|几天|几年|几次|几种|几项|何时|何处|是不是|能不能|可不可以|要不要|有没有|会不会|需不需要|是否|能否|可否"
    r"|请问|请|麻烦|帮我|我们|我|你|您|想|知道|了解|一下|具体|详细|大概|一般|通常|目前|现在|最多|最少|最大|最高|最低|最长|最晚|最早|上限|下限"
    r"|应该|应|需要|需|要|得|还有|还|都|也|又|再|就|才|会|能|可以|可|有|是|在|到|去|从|向|给|由|被|把|用|对|里|和|与|或|的|地|了|着|过|吗|呢|吧|啊"
    r"|不|没有|没|其他|别的|更多|更|比较|非常|很|好|高|低|大|小|长|快|贵|难|严|行|算|做|办|找|看|查|问|说|讲|弄|搞|交|收|发|领|填|写|走|享受|满足"
    r"|申请|办理|申报|提交|领取|查询|操作|计算|报名|登录|缴纳|收费|审批|审核|准备|联系|到账|生效|截止|开始|结束|处理|解决|适用|使用|设置|修改|更新|取消不了"
    r"|材料|条件|要求|流程|手续|步骤|限制|标准|资料|文件|好处|坏处|优点|缺点|优势|劣势|区别|差别|不同|影响|原因|后果|结果|费用|价格|金额|比例|时间|期限"
    r"|日期|周期|方式|方法|渠道|入口|地点|地址|部门|对象|范围|依据|例子|例外|例|举|个|种|些|项|条|点|次|天|钱|人|事|部分|方面|情况|问题|内容|信息|细节"
    r"|解释|说明|介绍|展开|总结|概括|列出|详细点|简单点|举例|继续|接着|重新|再说一遍|换|分别|一共|总共|之间|之后|以后|之前|超过|超出|逾期|到期|失败"
    r"|[,。;?!、\s])++"
)
_BARE_REQUEST = re.compile(_EMPTY_WORDS.pattern)


def _then(text: str, known: Known) -> Span | None:
    """A text that goes on from another: 那…, 然后…, 还有呢."""
    found = _THEN.match(text)
    return found.span("words") if found and not known.names_all and not _is_fresh_figure(text, known) else None


def _is_fresh_figure(text: str, known: Known) -> bool:
    return known.names_a_figure and not text.endswith(("呢", "呢?"))


def _pointed_at(text: str, _: Known) -> Span | None:
    """这个…, 该…, 上述…, 它…: unless the thing stands in an earlier clause of this very text."""
    hidden = _blank_out(_blank_out(text, _DEIXIS), _ABOUT_NOTHING)
    for found in _in_order(hidden, _THE, _PERSON):
        if not _has_antecedent_zh(hidden[: found.start()], found[0]):
            return _with_noun(text, found)
    return None


def _blank_out(text: str, words: re.Pattern[str]) -> str:
    return words.sub(lambda found: "·" * len(found[0]), text)


def _in_order(text: str, *patterns: re.Pattern[str]) -> Iterator[re.Match[str]]:
    found = [match for pattern in patterns for match in pattern.finditer(text)]
    return iter(sorted(found, key=lambda match: match.start()))


def _with_noun(text: str, found: re.Match[str]) -> Span:
    noun = re.compile(rf"(?:的|一)?{_GENERIC}").match(text, found.end())
    return found.start(), noun.end() if noun else found.end()


_EARLIER_CLAUSE = re.compile(rf"(?:^|[,。;?!、])(?!{_POLITE}[,。;?!、])[^,。;?!、]*?[\u4e00-\u9fff{MASK}]{{4,}}[^,。;?!、]*[,。;?!、]")
_SAID_BEFORE = re.compile(r"^(?:上|前|刚|方才|先前|之前|以上|你|您)")


def _has_antecedent_zh(before: str, words: str) -> bool:
    """A name before a pronoun, or a whole clause before what points at it."""
    if _SAID_BEFORE.match(words):
        return False
    if MASK in before:
        return True
    return _EARLIER_CLAUSE.search(before) is not None


def _alone_zh(text: str, known: Known) -> Span | None:
    """其中…, 前者…, 第二种…: at the start there is nothing that they could be of."""
    found = _OF_ITSELF.match(text)
    if found is None or known.names_all:
        return None
    return found.span("words")


def _also(text: str, known: Known) -> Span | None:
    """也一样吗: like what?"""
    found = _ALSO.search(text)
    if found is None or known.names_all or len(text) > 20 or re.search(r"[,;。]", text[: found.start()]):
        return None
    return found.span("words")


def _bare_ne(text: str, known: Known) -> Span | None:
    """X呢 without a question in it: what about X?"""
    found = _BARE_NE.search(text)
    if found is None or known.names_a_figure or _ASKING.search(found["words"]):
        return None
    return found.start("words"), found.end("words") + 1


def _which_of(text: str, known: Known) -> Span | None:
    found = _WHICH_OF.match(text)
    return found.span("words") if found and not known.companies else None


def _empty(text: str, known: Known) -> Span | None:
    """A question whose every word is a question word or a general one: 需要什么材料？"""
    if known.companies or known.periods or known.metrics or not re.search(r"[\u4e00-\u9fff]", text):
        return None
    if _BARE_REQUEST.fullmatch(text) and (_ASKING.search(text) or _REQUEST.search(text)):
        return 0, len(text.rstrip("?。! "))
    return None


_REQUEST = re.compile(r"解释|说明|介绍|展开|总结|概括|列出|详细|举例|举个例|继续|接着|再说|更多|换")

# --- English -------------------------------------------------------------------------------------------------

_POLITE_EN = r"(?:(?:ok(?:ay)?|thanks?(?: you)?|great|i see|got it|well|hi|hello|please|oh|hmm|yes|no|sure|right)[,.! ]+)*+"
_WHAT_ABOUT = re.compile(rf"^{_POLITE_EN}(?P<words>(?:and |but |so |then )?(?:what|how) about|what of)\b")
_GOING_ON = re.compile(
    rf"^{_POLITE_EN}(?P<words>and(?: (?:then|also))?|but|so|also|then|or|plus|what else|who else|where else|how so"
    r"|anything else|any others?|tell me more|more (?:details?|info(?:rmation)?|about (?:it|this|that))|go on|continue"
    r"|(?:can you )?(?:please )?(?:elaborate|explain (?:more|further)|be more specific)|why(?: not| is that)?|how come"
    r"|for example|such as|like what|which ones?|how much|how many|when|where|who|how|what)\b(?P<rest>.*)$"
)
_FRAGMENT_ONLY = frozenset(
    "why|why not|how so|how come|what else|who else|where else|anything else|tell me more|go on|continue|for example|such as"
    "|like what|which one|which ones|how much|how many|when|where|who|how|what|why is that|any others|any other".split("|")
)
_PRONOUN = re.compile(
    r"\b(?P<words>it's|it|its|itself|they|they're|them|their|theirs|themselves|he|him|his|she|her|hers)\b"
)
_DUMMY_IT = re.compile(
    r"\b(?:is|was|isn't|be|would|will|does|can|could|has|should|might) it (?:be )?(?:is )?(?:still |always |also |really |ever )?"
    r"(?:possible|necessary|legal|illegal|mandatory|compulsory|required|true|ok|okay|worth|safe|better|best|good|bad|easy"
    r"|hard|difficult|important|allowed|permitted|likely|normal|common|time|too late|advisable|enough|cheaper|raining"
    r"|make sense|a good idea|a problem|the case)\b"
    r"|\bit(?:'s| is| was| would be| will be| seems| appears| depends| turns out| looks| takes| took| costs| rains|"
    r" comes (?:to|down)| has been| makes sense)\b(?! (?:for|in) (?:it|that))(?! (?:a|an|the|called|not|used|located|made)\b(?! that))(?!\?|$)"
    r"|\b(?:what time|how late|how far|how long) (?:is|does|will|has) it\b|\b(?:make|find|made) it (?:easy|easier|hard|harder|possible|clear|to)\b"
    r"|\b(?:long|much|many \w+) (?:does|will|would|did) it (?:usually |typically |normally |generally )?(?:take|cost) (?:to|for|until|before|me to|if)\b"
)
_POINTING = re.compile(
    r"\b(?P<words>(?:this|that|these|those)(?: (?:one|ones|two|three))?)\b(?P<after>(?: [\w'-]+)?)"
)
_THIS_TIME = re.compile(r" (?:year|month|week|quarter|morning|afternoon|evening|time|moment|century|decade|assistant|bot|app|system|chat|site|website)s?$")
_THAT_POINTS_AFTER = re.compile(
    r"(?:^|\b(?:what|who|why|how|where|when|is|was|are|were|does|did|do|about|of|for|to|like|after|before|with|than|from|by|on|in|under"
    r"|explain|describe|mean|means|and|but|so|at|into|if|against|doing|using|without|besides))\s*$"
)
_CONJUNCTION_AFTER = re.compile(r"^(?: (?:the|a|an|i|we|you|they|he|she|it|are|is|was|were|can|will|have|has|may|must|should|do|does|all|any|every))?$")
_OTHERS = re.compile(
    r"\b(?P<words>the (?:former|latter)(?= (?:is|was|has|have|does|do|and|or|one|option|cost|need|apply|mean)|[?.,!]|$)"
    r"|the (?:first|second|third|fourth|fifth|last|other|next|previous|same) (?:ones?|option|method|approach|choice|item|point|question)"
    r"|the (?:second|third|fourth|others?|rest)(?=[?.!]*$)|(?:the|that) (?:above|aforementioned|abovementioned|previous(?:ly)?|earlier)(?! year| quarter| fiscal)"
    r"|(?:you|we|i) (?:just )?(?:mentioned|said|talked about|listed|described)|mentioned (?:above|earlier|before)"
    r"|any others?(?= \w+\?*$|\?*$)|what others?(?= \w+(?: \w+)?\?*$|\?*$)|is the same true|same (?:for|with|thing)|do the same)\b"
)
_THERE = re.compile(r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\bbe )(?<!\bhas )\b(?P<words>there)\b(?! (?:is|are|was|were|be|will|has|have|any|a|an|more)\b)(?!'s)(?! to be)")
_RELATIONAL = (
    r"(?:costs?|prices?|fees?|symptoms?|causes?|effects?|side effects|authors?|differences?|benefits?|advantages?|disadvantages?|drawbacks?"
    r"|requirements?|deadlines?|process(?:es)?|procedures?|steps|eligibility(?: criteria)?|conditions?|criteria|error codes?|limits?|limitations?"
    r"|exceptions?|penalt(?:y|ies)|reasons?|purposes?|main (?:points?|features?|themes?|ideas?|goals?|characters?|causes?|differences?)|types?|kinds?"
    r"|options?|alternatives?|risks?|results?|consequences|impacts?|treatments?|origins?|history|meaning|definition|size|address|name|location)"
)
_BARE_RELATION = re.compile(
    rf"^{_POLITE_EN}(?:(?:what|when|where|who|which|how|why)(?:'s|'re| is| are| was| were| about)?|are there|is there|tell me(?: about)?|describe|list)"
    rf" (?P<words>(?:the|some|some of the|any|an?)? ?(?:\w+ )?{_RELATIONAL})(?: like| for)?\??$"
)
_TOO = re.compile(r"^(?P<words>.{1,40}?\b(?:too|as well|either))\?$")


def _what_about(text: str, known: Known) -> Span | None:
    found = _WHAT_ABOUT.match(text)
    return found.span("words") if found and not known.names_a_figure else None


def _going_on(text: str, known: Known) -> Span | None:
    """Starts with "and", or is nothing but "why?" and the like."""
    found = _GOING_ON.match(text)
    if found is None or known.names_a_figure:
        return None
    words = found["words"].rstrip()
    if words in _FRAGMENT_ONLY or words.startswith(("tell me more", "which one", "how m")):
        return found.span("words") if not found["rest"].strip(" ?.!") else None
    if words == "or" and " or " in found["rest"]:
        return None
    return found.span("words")


def _pronoun(text: str, _: Known) -> Span | None:
    hidden = _blank_out(text, _DUMMY_IT)
    for found in _PRONOUN.finditer(hidden):
        if not _has_antecedent_en(hidden[: found.start()]):
            return found.span("words")
    return None


def _pointing(text: str, _: Known) -> Span | None:
    """this policy, that one, those; not "the form that is needed", nor "this year"."""
    for found in _POINTING.finditer(text):
        if _THIS_TIME.match(found["after"]) or _is_joining(text, found):
            continue
        if not _has_antecedent_en(text[: found.start()]):
            return found.span()
    return None


def _is_joining(text: str, found: re.Match[str]) -> bool:
    words, before = found["words"], text[: found.start()]
    if words == "those":
        return re.match(r" (?:who|that|which|with|in|of|from|without|under|over)\b", text[found.end("words") :]) is not None
    if words != "that" or not text[found.end("words") :].strip(" ?.!"):
        return False
    if not _THAT_POINTS_AFTER.search(before):
        return True
    return re.search(r"\b(?:is|was|so|sure|mean|means|true)\s*$", before) is not None and bool(
        _CONJUNCTION_AFTER.match(found["after"])
    )


def _others(text: str, known: Known) -> Span | None:
    found = _OTHERS.search(text)
    if found is None or known.names_all or re.search(r"\b(?:than|besides|except|apart from)\b", text):
        return None
    return found.span("words") if not _has_antecedent_en(text[: found.start()]) else None


def _there(text: str, _: Known) -> Span | None:
    found = _THERE.search(text)
    if found is None or _has_antecedent_en(text[: found.start()]):
        return None
    return found.span("words")


def _bare_relation(text: str, known: Known) -> Span | None:
    """What are the symptoms? Of what?"""
    found = _BARE_RELATION.match(text)
    if found is None or known.companies or known.metrics or known.periods:
        return None
    return found.span("words")


def _too(text: str, known: Known) -> Span | None:
    found = _TOO.match(text)
    if found is None or known.names_a_figure or _has_antecedent_en(found["words"]) or _VERBLESS.search(text) is None:
        return None
    return found.span("words")


_VERBLESS = re.compile(r"^(?:for|in|on|with|to|at|from|by|the|a|an|does|do|is|are|can)\b")

_WORD = re.compile(rf"[a-z][a-z'-]*|{MASK}+|[,;:.?!]|[\u4e00-\u9fff]+")
_SMALL_WORDS = frozenset(
    """a an the of to in on at by for from with about as into than is are was were be been being am do does did done doing
    have has had can could will would shall should may might must what who whom whose which when where why how many much
    long often far i you we me us my our your please tell know think want need like get got give show explain describe
    find say see let make made use not no yes so too also just still ever even only very more most less some any all each
    there here or and but if then ok okay thanks hi hello well now up out off over under really exactly actually again
    first second third last next same other another one ones kind sort type way thing things lot bit time it its they them
    their this that these those he she his her him while because since after before until whether work works mean means
    happen happens happened differ compare start started come came from go went become became take takes cost costs
    such main best worst good bad new old big biggest important different common popular famous apply happens""".split()
)
_NO_NOUN_AFTER = frozenset("i you we to who what don't doesn't didn't can't won't please not".split())
_JOINTS = frozenset(", ; : . ? ! and or but if when while because since after before so then that which who whether".split())
_OWNERS = frozenset("the a an my our your every each all any no some many most both two three".split())


def _has_antecedent_en(before: str) -> bool:
    """Whether a noun stands earlier that a pronoun here can mean.

    Across a comma or a joining word any content word will do; within one clause it must follow an article or be a
    plural, and stand as a subject ("do employees keep their…"), not be what the pronoun belongs to ("benefits of it").
    """
    words: list[str] = _WORD.findall(before)
    content = [i for i, word in enumerate(words) if _is_content(words, i)]
    if any(words[i].startswith(MASK) for i in content):
        return True
    joint = max((i for i, word in enumerate(words) if word in _JOINTS), default=-1)
    if any(i < joint for i in content):
        return True
    return any(_is_subject(words, i) for i in content if i < len(words) - 2 or words[-1] not in _SMALL_WORDS)


def _is_content(words: list[str], i: int) -> bool:
    word = words[i]
    if word in _SMALL_WORDS or word in _JOINTS or word in _OWNERS:
        return False
    return i > 0 and words[i - 1] not in _NO_NOUN_AFTER or word.startswith(MASK)


def _is_subject(words: list[str], i: int) -> bool:
    """A noun with its article or a plural, with something between it and the pronoun, not joined to it by "of"."""
    after = words[i + 1 :]
    if not after or after[0] in ("of", "for", "to", "in", "about", "with", "from"):
        return False
    marked = i > 0 and (words[i - 1] in _OWNERS or words[i - 1] in ("do", "does", "did", "can", "is", "are", "must", "should"))
    return marked or (words[i].endswith("s") and not words[i].endswith("ss") and i > 0 and words[i - 1] not in ("what", "who"))


Finder = Callable[[str, Known], Span | None]
# The first that finds something gives the mention, so what names the thing most plainly comes first.
_FINDERS: tuple[Finder, ...] = (
    _pointed_at,
    _alone_zh,
    _then,
    _also,
    _bare_ne,
    _which_of,
    _empty,
    _what_about,
    _pointing,
    _pronoun,
    _others,
    _there,
    _going_on,
    _bare_relation,
    _too,
)
_POINTING_OPENING = re.compile(
    r"(?:(?:那么?|然后|还有|另外|刚才(?:你|您)?(?:说|提到|讲)的|上面(?:说|提到)的|上述|这个|那个)[,、\s]*)"
    r"|(?:(?:and|but|so|then|also) )?(?:what|how) about |(?:and|but|so|then|also),? "
)
