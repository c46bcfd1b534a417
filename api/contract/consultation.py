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
    "stairs": ("上下楼", r"上楼|下楼|爬楼|上下楼|台阶|\bstairs?\b"),
    "squatting": ("下蹲", r"下蹲|蹲|\bsquat\w*"),
    "running": ("跑步", r"跑步|跑|\brun(?:ning|s)?\b"),
    "standing": ("久站", r"久站|站久|站立|\bstanding\b"),
    "sitting": ("久坐", r"久坐|坐久|\bsitting\b"),
    "exercise": ("运动", r"运动|锻炼|\bexercis\w*|\bsports?\b"),
}
_WORSE_ZH = r"[^,]{0,8}?(?:加重|更疼|更痛|更明显|更厉害|明显|就疼|就痛|会疼|会痛|时疼|时痛|不舒服)"
_WORSE_EN = r"\b(?:worse|worsens|hurts?|aggravat\w+)\b.{0,24}?"


def _when_worse(pattern: str) -> str:
    return rf"(?:{pattern}){_WORSE_ZH}|{_WORSE_EN}(?:{pattern})"


_FACTORS = lexicon(**_MOVES)
_FACTORS_STATED = lexicon(**{en: (zh, _when_worse(pattern)) for en, (zh, pattern) in _MOVES.items()})

RED_FLAGS = lexicon(
    fever=("发热", r"发烧|发热|高烧|寒战|\bfever\w*|\bchills\b"),
    cannot_bear_weight=(
        "不能负重",
        r"不能(?:走路|走|站|负重|着地)|走不了|站不起来|站不住|(?:无法|没法|不敢)(?:走|站|负重|着地)"
        r"|\b(?:cannot|can['’]?t|unable to) (?:walk|stand|bear weight|put weight)",
    ),
    locked_joint=(
        "关节卡住",
        r"卡住|卡死|锁住|交锁|(?:不能|无法|没法)(?:伸直|弯曲|打弯)|伸不直|弯不了"
        r"|\blocked\b|\bcan['’]?t (?:bend|straighten)",
    ),
    deformity=("明显变形", r"变形|畸形|错位|\bdeform\w*|\bout of place\b"),
    numbness=("麻木", r"麻木|发麻|没有?知觉|失去知觉|\bnumb\w*|\bno feeling\b|\btingling\b"),
    calf_swelling=("小腿肿痛", r"小腿[^,]{0,4}(?:肿|胀痛)|\bcalf\b.{0,12}\bswell|\bswollen calf\b"),
    chest_pain=("胸痛", r"胸痛|胸口疼|胸闷|\bchest pain\b"),
    breathlessness=("呼吸困难", r"呼吸困难|喘不上气|气短|\bshort(?:ness)? of breath\b|\bcan['’]?t breathe\b"),
    incontinence=("大小便失禁", r"失禁|\bincontinen\w*"),
    severe_pain=(
        "剧烈疼痛",
        r"剧痛|剧烈(?:的)?(?:疼|痛)|疼得受不了|痛得受不了|\b(?:severe|unbearable) pain\b",
    ),
)
_PAIN = re.compile(r"疼痛?|(?<!酸)(?<!胀)痛|\bpain(?:ful|less)?\b|\bhurts?\b|\bache\w*")
_PAIN_LEVELS: Degrees = (
    (re.compile(r"一点儿?[也都]不|完全不|毫无|不[疼痛]|无痛|\bpainless\b"), {"zh": "0", "en": "0"}),
    (re.compile(r"不(?:太|怎么|是很|算很?|大)[疼痛]?|没那么|一点点?|有点|有些|稍微|稍|轻微|轻度"
                r"|\b(?:slight|mild|a bit|a little)"),
     {"zh": "轻度", "en": "mild"}),
    (re.compile(r"中等|中度|还可以|还行|一般|\bmoderate"), {"zh": "中度", "en": "moderate"}),
    (re.compile(r"很|非常|特别|剧|厉害|严重|受不了|\b(?:severe|very|terrible|unbearable|a lot)"),
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
            Degree(_PAIN, _PAIN_LEVELS),
        ),
        Slot(
            "swelling",
            {"zh": "有没有肿胀？", "en": "Is there any swelling?"},
            YesOrNo(re.compile(r"肿|积液|\bswell\w*|\bswollen\b|\bpuffy\b")),
        ),
        Slot(
            "trauma",
            {"zh": "最近有没有受过外伤，例如摔倒或扭伤？",
             "en": "Was there an injury, such as a fall or a twist?"},
            YesOrNo(
                re.compile(
                    r"外伤|受过?伤|摔|扭|撞|磕|砸|拉伤|车祸|\binjur\w*|\btrauma\b|\bfell\b|\bfall\b|\btwist\w*"
                    r"|\bsprain\w*|\baccident\b"
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
