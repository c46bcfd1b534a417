"""Whether a start-up may apply for a subsidy: what has to be known first. A business domain of its own.

It collects and asks; conditions and amounts come from the documents, never from here.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from api.contract import aliases
from api.contract.hearing import lexicon
from api.contract.models import DialogueState, Maybe
from api.contract.readers import Choice, Choices, Length, Number, OwnWords, YesOrNo
from api.contract.states import Domain, Slot
from nodes.contracts import Language


class StartupSubsidyState(DialogueState):
    """What is known of a business that asks for a start-up subsidy."""

    other_names: ClassVar[aliases.Aliases] = aliases.STARTUP_SUBSIDY

    domain: Literal["startup_subsidy"]
    request: Maybe = None
    applicant: Maybe = None
    registered_for: Maybe = None
    social_insurance: Maybe = None
    employees: Maybe = None
    received_before: Maybe = None


_APPLICANTS: Choices = (
    (re.compile(r"毕业生|大学生|应届|刚毕业|\bgraduates?\b"), {"zh": "高校毕业生", "en": "graduate"}),
    (re.compile(r"失业|下岗|\bunemployed\b"), {"zh": "登记失业人员", "en": "unemployed person"}),
    (re.compile(r"退役|退伍|军人|\bveterans?\b"), {"zh": "退役军人", "en": "veteran"}),
    (re.compile(r"返乡|农民工|\breturning\b|\bmigrant\b"), {"zh": "返乡务工人员", "en": "returning worker"}),
    (re.compile(r"残疾|\bdisab\w+"), {"zh": "残疾人", "en": "person with a disability"}),
)
_FLAGS = lexicon(
    listed_as_dishonest=("失信记录", r"失信|黑名单|\bdishonest\b|\bblacklist\w*"),
    abnormal_operation=("经营异常", r"经营异常|异常名录|\babnormal operation"),
    licence_revoked=("执照吊销或注销", r"吊销|注销|\brevoked\b|\bderegistered\b"),
    false_documents=("虚假材料", r"虚假材料|假材料|骗补|造假|\bforged\b|\bfalse documents?\b"),
    fee_for_approval=("收费代办包过", r"包过|内部关系|好处费|\bbribe\w*"),
)

_KNOWN: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "applicant": "申请人：{}", "registered_for": "登记注册时间：{}", "social_insurance": "社会保险：{}",
        "employees": "招用人数：{}", "received_before": "此前领取：{}",
    },
    "en": {
        "applicant": "applicant: {}", "registered_for": "registered for: {}",
        "social_insurance": "social insurance: {}", "employees": "employees: {}",
        "received_before": "received before: {}",
    },
}  # fmt: skip


def _question(values: Mapping[str, Any], language: Language) -> str:
    request = str(values["request"] or {"zh": "创业补贴", "en": "start-up subsidy"}[language])[:200]
    request = request.rstrip("。？！.?!")
    known = [text.format(str(values[name])[:80]) for name, text in _KNOWN[language].items() if values[name]]
    if language == "zh":
        return f"{request}。{'；'.join(known)}。申请条件和补贴标准是什么？"
    return f"{request}. {'; '.join(known)}. What are the conditions and the amount?"


STARTUP_SUBSIDY = Domain(
    name="startup_subsidy",
    model=StartupSubsidyState,
    slots=(
        Slot(
            "request",
            {"zh": "您想申请哪一项创业补贴？", "en": "Which start-up subsidy would you like to apply for?"},
            OwnWords(re.compile(r"补贴|补助|扶持|贷款|减免|\bsubsid\w+|\bgrants?\b|\bloans?\b")),
        ),
        Slot(
            "applicant",
            {"zh": "您属于哪类人员：高校毕业生、登记失业人员、退役军人、返乡务工人员、残疾人，还是其他？",
             "en": "Are you a graduate, registered unemployed, a veteran, a returning worker, a person "
             "with a disability, or none of these?"},
            Choice(_APPLICANTS, {"zh": "其他", "en": "other"}),
        ),
        Slot(
            "registered_for",
            {"zh": "企业登记注册多久了？", "en": "How long has the business been registered?"},
            Length(re.compile(r"注册|登记|成立|开业|经营|\bregistered\b|\bfounded\b|\brunning\b"),
                   re.compile(r"社保|社会保险|毕业|\binsurance\b|\bgraduated\b")),
        ),
        Slot(
            "social_insurance",
            {"zh": "您本人是否在企业缴纳社会保险？",
             "en": "Do you pay social insurance through the business?"},
            YesOrNo(re.compile(r"社保|社会保险|五险|\binsurance\b"),
                    {"zh": "已缴纳", "en": "paid"}, {"zh": "未缴纳", "en": "not paid"}, passes=True),
        ),
        Slot(
            "employees",
            {"zh": "企业招用了几名员工？", "en": "How many people does the business employ?"},
            Number(re.compile(r"员工|招[了用聘收]|雇|带动就业|\bemploy\w*|\bstaff\b|\bhired?\b")),
        ),
        Slot(
            "received_before",
            {"zh": "以前领取过同类补贴吗？", "en": "Have you received such a subsidy before?"},
            YesOrNo(re.compile(r"领取?过?|享受过?|拿过|\breceived\b|\bgot\b"),
                    {"zh": "领取过", "en": "yes"}, {"zh": "没有领取过", "en": "no"}),
        ),
    ),
    flags=_FLAGS,
    notice={
        "zh": "您提到的情况可能影响申请资格，请先向受理部门核实，并且不要提交不真实的材料。",
        "en": "Some of what you mention may rule out an application. Check with the office first, and hand "
        "in nothing that is not true.",
    },
    question=_question,
)  # fmt: skip
