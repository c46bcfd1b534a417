"""The consultation that the contract was first written for: a complaint, and what has to be known about it.

It collects and asks; it diagnoses nothing. Its warning signs lead to a fixed advice to see a doctor.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from api.contract import aliases
from api.contract.hearing import lexicon
from api.contract.models import NULL_IF_BLANK, DialogueState, Many, Maybe, Text
from api.contract.readers import Degree, Degrees, Length, OwnWords, YesOrNo
from api.contract.states import Domain, ListSlot, Slot
from nodes.contracts import Language

SEVERE = 8  # pain from this degree on is a warning sign


class ConsultationState(DialogueState):
    """What is known of a complaint."""

    other_names: ClassVar[aliases.Aliases] = aliases.CONSULTATION

    domain: Annotated[Literal["consultation"] | None, NULL_IF_BLANK] = None
    chief_complaint: Maybe = None
    body_parts: Many[Text]
    symptoms: Many[Text]
    duration: Maybe = None
    aggravating_factors: Many[Text]
    pain_level: Maybe = Field(None, description='0 to 10 ("6", "6-7"), or light, medium, strong in words.')
    swelling: Maybe = None
    trauma: Maybe = None


_BODY = lexicon(
    knee=("膝盖", r"膝|\bknees?\b"),
    ankle=("脚踝", r"脚踝|踝关节|\bankles?\b"),
    hip=("髋部", r"髋|\bhips?\b"),
    lower_back=("腰部", r"腰|\blower back\b"),
    shoulder=("肩部", r"肩|\bshoulders?\b"),
    neck=("颈部", r"脖子|颈椎|颈部|\bneck\b"),
    wrist=("手腕", r"手腕|腕关节|\bwrists?\b"),
    elbow=("肘部", r"手肘|肘关节|胳膊肘|\belbows?\b"),
)
_SYMPTOMS = lexicon(
    sinking_feeling=("下坠感", r"下坠|\bsinking\b"),
    giving_way=("打软腿", r"打软|发软|\bg(?:i|a)v(?:e|es|ing) way\b|\bbuckl"),
    clicking=("弹响", r"弹响|咔咔|咯吱|\bclick\w*|\bpopping\b"),
    stiffness=("僵硬", r"僵硬|发僵|\bstiff"),
    weakness=("无力", r"无力|没劲|没力气|\bweak"),
    soreness=("酸胀", r"酸胀|酸痛|发酸|\bsore"),
    instability=("不稳定感", r"不稳|\bunstable\b|\binstability\b"),
)
_COMPLAINT = re.compile("|".join(words.pattern for words, _ in (*_BODY.entries, *_SYMPTOMS.entries)))
_MOVES = {
    "walking": ("走路", r"走路|行走|走多|\bwalk\w*"),
    "stairs": ("上下楼", r"上楼|下楼|爬楼|上下楼|台阶|\b(?:up|down)?stairs?\b|\bclimb\w*|\bsteps\b"),
    "squatting": ("下蹲", r"下蹲|蹲|\bsquat\w*|\bcrouch\w*"),
    "running": ("跑步", r"跑步|跑|\brun(?:ning|s)?\b|\bjog\w*"),
    "standing": ("久站", r"久站|站久|站立|\bstand(?:ing|s)?\b"),
    "sitting": ("久坐", r"久坐|坐久|\bsit(?:ting|s)?\b"),
    "kneeling": ("跪姿", r"跪|\bkneel\w*"),
    "bending": ("弯腰", r"弯腰|\bbend\w*"),
    "lifting": ("搬重物", r"搬重物|提重物|\blift\w*"),
    "exercise": ("运动", r"运动|锻炼|\bexercis\w*|\bsports?\b|\bwork(?:ing)? ?out\b|\btraining\b|\bgym\b"),
}
_WORSE_ZH = r"[^,]{0,8}?(?:加重|更疼|更痛|更明显|更厉害|明显|就疼|就痛|会疼|会痛|时疼|时痛|不舒服)"
_WORSE_EN = r"\b(?:worse|worsens|hurts?|aggravat\w+)\b.{0,24}?"


_ALSO_WORSE_EN = (
    r"(?:\s(?!do|is|are|not)\w+)?\s(?:makes? (?:it|things) (?:much )?worse|hurts?|aggravat\w+|worsens"
    r"|(?:is|are) (?:painful|worse))\b"
)
_FINE = (
    r"[^,]{0,4}(?:没事|没问题|不疼|不痛|不加重)"
    r"|[^,]{0,12}\b(?:(?:does|do|is|are)(?:n['’]t| not)|(?:is|are) (?:fine|ok|okay))\b"
)


def _when_worse(pattern: str) -> str:
    return rf"(?:{pattern})(?:{_WORSE_ZH}|{_ALSO_WORSE_EN})|{_WORSE_EN}(?:{pattern})"


def _unless_fine(pattern: str) -> str:
    return rf"(?:{pattern})(?!{_FINE})"


_FACTORS = lexicon(**{en: (zh, _unless_fine(pattern)) for en, (zh, pattern) in _MOVES.items()})
_FACTORS_STATED = lexicon(**{en: (zh, _when_worse(pattern)) for en, (zh, pattern) in _MOVES.items()})

_CANNOT_EN = (
    r"\b(?:can ?not|can['’]?t|could(?:n['’]t| not)|(?:unable|not able) to)(?: (?:even|fully|really))?"
)
_NEAR = r"(?:(?![不没无未])[^,]){0,4}"  # nothing in between denies what follows
RED_FLAGS = lexicon(
    fever=(
        "发热",
        rf"发烧|发热|高烧|寒战|体温{_NEAR}(?:3[89]|4[0-2])|烧到|^[有大概约到]*(?:3[89]|4[01])(?:\.\d)?\s*(?:度|°c)"
        r"(?:多|左右|了)*$|\bfever\w*|\bchills\b|\bhigh temperature\b"
        r"|\btemperature (?:of|is|was) (?:3[89]|4[0-2]|10[0-5])",
    ),
    cannot_bear_weight=(
        "不能负重",
        r"不能(?:走路|走|站|负重|着地|下地)|走不了|走不动路|站不起来|站不住|下不了地|(?:无法|没法|不敢)(?:走|站|负重|着地|下地)"
        rf"|{_CANNOT_EN} (?:walk|stand|bear (?:any )?weight|put (?:any )?weight|step on)",
    ),
    locked_joint=(
        "关节卡住",
        r"卡住|卡死|锁住|交锁|(?:不能|无法|没法)(?:伸直|弯曲|打弯)|伸不直|弯不了"
        rf"|\block(?:ed|s|ing)\b|{_CANNOT_EN} (?:bend|straighten|extend)",
    ),
    deformity=("明显变形", r"变形|畸形|错位|\bdeform\w*|\bout of place\b|\bmisshapen\b|\bdislocat\w*"),
    numbness=(
        "麻木",
        rf"麻木|发麻|[腿脚手臂指趾]{_NEAR}麻(?!烦|辣|将)|没有?知觉|失去知觉"
        r"|\bnumb(?:ness)?\b|\bno feeling\b|\btingling\b|\bpins and needles\b"
        rf"|{_CANNOT_EN} feel (?:my|the)\b|\bloss of (?:feeling|sensation)\b",
    ),
    calf_swelling=(
        "小腿肿痛",
        rf"小腿{_NEAR}(?:肿|胀痛)"
        r"|\bcal(?:f|ves)\b(?: (?:is|are|was|feels|looks|got|very|a bit|really)){0,3}"
        r" (?:swell|swoll)\w*|\b(?:swell|swoll)\w*(?: (?:in|of|my|the|left|right)){0,3} cal(?:f|ves)\b",
    ),
    chest_pain=(
        "胸痛",
        rf"(?:胸[口部]?|心口){_NEAR}[疼痛闷]"
        r"|\bchest (?:pains?|tightness|pressure|hurts?)\b|\bpains? in (?:my |the )?chest\b",
    ),
    breathlessness=(
        "呼吸困难",
        rf"呼吸{_NEAR}困难|呼吸不(?:畅|过来|上来)|喘不[上过]来?气|喘不[上过]来|透不过气|上不来气|气短"
        r"|\bshort(?:ness)? of breath\b|\bbreathless\w*"
        rf"|\b(?:trouble|difficulty|difficulties|problems?|hard|struggling)(?: to| with| in)? breath\w*"
        rf"|{_CANNOT_EN} breathe",
    ),
    incontinence=(
        "大小便失禁",
        r"失禁|(?:憋|控制)不住(?:大|小)?[尿便]"
        r"|\bincontinen\w*|\b(?:lost|losing|no|loss of) control of (?:my |the )?(?:bladder|bowels?)\b"
        rf"|{_CANNOT_EN} (?:hold|control) (?:my )?(?:urine|bladder|bowels?)\b",
    ),
    severe_pain=(
        "剧烈疼痛",
        r"剧痛|剧烈(?:的)?(?:疼|痛)|[疼痛](?:得|到|的)?(?:受不了|睡不着|要命|打滚|死)|无法忍受|忍受不了"
        r"|\b(?:severe|unbearable|excruciating|agoni[sz]ing) pain\b|\bexcruciating\b|\bworst pain\b"
        r"|\bin agony\b|\bpain(?: (?:is|was|got|feels|has become|very|so|really|quite)){1,3}"
        r" (?:severe|unbearable|agoni[sz]ing)\b",
    ),
)
_PAIN = re.compile(r"疼痛?|(?<!酸)(?<!胀)痛|\bpain(?:ful|less)?\b|\bhurts?\b|\bache\w*")
_ELSEWHERE_EN = r"(?:chest|head|stomach|belly|tooth|throat|ear|eye)s?"
_PAIN_ELSEWHERE = re.compile(
    r"(?:胸|(?<![骨指膝趾])头|胃|腹|肚子?|牙齿?|喉咙?|嗓子|耳朵?|眼睛?)[口部里]?[^,]{0,4}[疼痛]"
    rf"|\b{_ELSEWHERE_EN}\b.{{0,12}}\b(?:pain|ache|hurt)|\b(?:head|stomach|tooth)aches?\b"
    rf"|\b(?:pain|ache)s? in (?:my |the )?{_ELSEWHERE_EN}\b"
)
_PAIN_LEVELS: Degrees = (
    (re.compile(r"一点儿?[也都]不|完全不|毫无|不[疼痛]|无痛|\bpainless\b|\bpain[- ]free\b"
                r"|\bnot in (?:any )?pain\b"),
     {"zh": "0", "en": "0"}),
    (re.compile(r"不(?:太|怎么|是很|算很?|大)[疼痛]?|没那么|一点点?|有点|有些|稍微|稍|轻微|轻度"
                r"|\b(?:slight|mild|a bit|a little|tolerable|bearable|minor)"
                r"|\bnot (?:too|so|very|that|really|all that|particularly)"
                r" (?:bad|much|painful|severe|strong|sore)\b"
                r"|\bnot (?:bad|much|severe|strong)\b"
                r"|\b(?:does|do)(?:n['’]t| not) hurt (?:much|a lot|too much|that much|very much)\b"),
     {"zh": "轻度", "en": "mild"}),
    (re.compile(r"中等|中度|还可以|还行|一般|\bmoderate"), {"zh": "中度", "en": "moderate"}),
    (re.compile(r"很|非常|特别|剧|厉害|严重|受不了"
                r"|\b(?:severe|very|terrible|unbearable|a lot|bad|awful|horrible|intense|excruciating"
                r"|extreme)"),
     {"zh": "重度", "en": "severe"}),
)  # fmt: skip


def _derived_flags(values: Mapping[str, Any], language: Language) -> list[str]:
    """A degree of pain from SEVERE on, whoever noted it."""
    degrees = re.findall(r"\d+(?:\.\d+)?", values["pain_level"] or "")
    is_severe = bool(degrees) and max(float(degree) for degree in degrees) >= SEVERE
    return [{"zh": "剧烈疼痛", "en": "severe pain"}[language]] if is_severe else []


def _question(values: Mapping[str, Any], language: Language) -> str:
    known = [
        text.format(_listed(values[name], language))
        for name, text in _KNOWN[language].items()
        if values[name]
    ]
    return _ASKS[language].format(("，" if language == "zh" else ", ").join(known))


def _listed(value: Any, language: Language) -> str:
    text = ("、" if language == "zh" else ", ").join(value) if isinstance(value, list) else str(value)
    return text[:200]


_KNOWN: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "chief_complaint": "{}", "duration": "持续{}", "aggravating_factors": "加重因素：{}",
        "pain_level": "疼痛程度：{}", "swelling": "肿胀：{}", "trauma": "外伤：{}",
    },
    "en": {
        "chief_complaint": "{}", "duration": "for {}", "aggravating_factors": "worse with: {}",
        "pain_level": "pain: {}", "swelling": "swelling: {}", "trauma": "injury: {}",
    },
}  # fmt: skip
_ASKS: Mapping[Language, str] = {
    "zh": "{}。可能是什么原因，应该注意什么？",
    "en": "{}. What are possible causes, and what should be done?",
}

CONSULTATION = Domain(
    name="consultation",
    model=ConsultationState,
    slots=(
        Slot(
            "chief_complaint",
            {"zh": "您哪里不舒服，是什么感觉？", "en": "What is troubling you, and where?"},
            OwnWords(_COMPLAINT),
        ),
        Slot(
            "duration",
            {"zh": "这种情况持续多久了？", "en": "How long has it lasted?"},
            Length(),
        ),
        ListSlot(
            "aggravating_factors",
            {"zh": "做什么动作时会加重，例如走路、上下楼或下蹲？",
             "en": "What makes it worse, such as walking, stairs or squatting?"},
            _FACTORS_STATED,
            _FACTORS,
            {"zh": "无", "en": "none"},
        ),
        Slot(
            "pain_level",
            {"zh": "疼痛大概几分（0分不疼，10分最疼）？",
             "en": "How strong is the pain, from 0 (none) to 10?"},
            Degree(_PAIN, _PAIN_LEVELS, _PAIN_ELSEWHERE),
        ),
        Slot(
            "swelling",
            {"zh": "有没有肿胀？", "en": "Is there any swelling?"},
            YesOrNo(re.compile(r"肿|积液|\bswell\w*|\bswollen\b|\bpuffy\b"), passes=True),
        ),
        Slot(
            "trauma",
            {"zh": "最近有没有受过外伤，例如摔倒或扭伤？",
             "en": "Was there an injury, such as a fall or a twist?"},
            YesOrNo(
                re.compile(
                    r"外伤|受过?伤|摔|扭|撞|磕|砸|拉伤|车祸|\binjur\w*|\btrauma\b|\bfell\b|\bfall(?:s|en)?\b|\btwist\w*"
                    r"|\bsprain\w*|\bstrained\b|\baccident\b|\bslipped\b|\btripped\b|\bstumbled\b|\bbumped\b|\bbanged\b"
                    r"|\bknocked\b|\b(?:was|got|been) hit\b|\bhit (?:my|it|by)\b|\bhurt (?:it|myself|my)\b"
                )
            ),
        ),
    ),
    flags=RED_FLAGS,
    notice={
        "zh": "您描述的情况里有需要警惕的信号，请尽快到医院就诊；情况紧急时请立即拨打急救电话。",
        "en": "Some of what you describe is a warning sign. Please see a doctor soon, and call the emergency "
        "number at once if it is urgent.",
    },
    question=_question,
    collected={"body_parts": _BODY, "symptoms": _SYMPTOMS},
    derived_flags=_derived_flags,
)  # fmt: skip
