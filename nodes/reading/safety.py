"""Must a text be refused before anything is looked up? Reads the raw text alone and gives a reason code.

"prompt_injection": words that try to change or reveal the assistant's instructions, or to talk it past permissions.
"personal_data": a request for another person's private data. "topic:<name>": a configured topic.
Spelling tricks (full width, invisible characters, letters set apart, look-alike letters) are folded first.
"""

import re
from collections.abc import Sequence

from nodes.reading.folding import has_chinese, squeeze

PROMPT_INJECTION = "prompt_injection"
PERSONAL_DATA = "personal_data"


def screen(text: str, *, topics: Sequence[str] = ()) -> str | None:
    """The reason to refuse the text, or None.

    A topic is a phrase, or "name=phrase|phrase" where several phrases mean it.
    """
    forms = _forms(text)
    if any(pattern.search(form) for form in forms for pattern in _INJECTIONS):
        return PROMPT_INJECTION
    if any(_asks_for_personal_data(form) for form in forms):
        return PERSONAL_DATA
    named = (topic.partition("=")[0].strip() for topic in topics if _is_about(forms, topic))
    return next((f"topic:{name}" for name in named), None)


# --- spelling tricks -----------------------------------------------------------------------------------------

_LOOK_ALIKE = str.maketrans("аеіјорсухѕԁһӏνοαρτκ", "aeijopcyxsdhlvoaptk")
_SET_APART_ZH = re.compile(r"(?<=[\u4e00-\u9fff])[\s*_.\-·•~^|/\\,，、]+(?=[\u4e00-\u9fff])")
_SET_APART_EN = re.compile(r"(?<![a-z0-9])(?:[a-z0-9][\s*_.\-·•|]+){3,}[a-z0-9](?![a-z0-9])")
_BETWEEN_LETTERS = re.compile(r"[\s*_.\-·•|]")
_WIDE_GAP = re.compile(r"\s{2,}")


def _forms(text: str) -> tuple[str, ...]:
    """The text as it reads, and as it reads once characters that were set apart are put together."""
    plain = squeeze(text)
    latin = plain.translate(_LOOK_ALIKE) if re.search(r"[a-z]", plain) else plain
    joined = _SET_APART_EN.sub(lambda found: _BETWEEN_LETTERS.sub("", found[0]), _WIDE_GAP.sub("  ", latin))
    return tuple(dict.fromkeys((latin, _SET_APART_ZH.sub("", joined))))


# --- prompt injection ----------------------------------------------------------------------------------------

_ALLOWED_TO_ZH = r"(?<![我们司业人工户者](?:可以|能否|可否|是否))(?<![我们司业人工户者]能)"
_ORDERS_ZH = r"(?:指令|指示|提示词|提示语|系统提示|提示信息|prompt|命令|设定|人设|安全(?:规则|限制|策略|准则|设置)|系统(?:规则|限制|设定|消息|信息))"
_SECRET_ZH = (
    r"(?:系统提示词?|系统指令|系统消息|系统prompt|system ?prompt|隐藏(?:的)?(?:指令|提示词?|规则)|内部(?:的)?(?:指令|提示词?)|初始(?:的)?(?:指令|提示词?|设定)"
    r"|开发者(?:消息|指令)|(?:你|您)的?(?:完整的?|全部的?|原始的?|最初的?)?(?:提示词|指令|设定|prompt|系统设定|内部规则))"
)
_INJECTIONS_ZH = (
    rf"{_ALLOWED_TO_ZH}(?:忽略|无视|忘记|忘掉|忘了|抛开|抛弃|丢弃|绕过|绕开|覆盖|跳过|不要理会|别理会|不用管|别管|不再遵守|不要遵守|不要遵循|别遵守|违反|撤销|清除|删除)"
    rf"(?:掉|一下)?[^。?!]{{0,14}}{_ORDERS_ZH}",
    r"(?:忽略|无视|忘记|忘掉|忘了|不要理会|别理会|抛开)(?:掉)?(?:你|您)?(?:以上|上面|上述|之前|前面|此前|先前|刚才)(?:的|所说的|说的|我说的)?"
    r"(?:所有|一切|全部)?(?:的)?(?:内容|对话|文字|话|规则|规定|限制|要求|约束|说明|信息|一切|所有)?(?=[,。;!、:]|$|并|然后|现在|直接|告诉|输出|你|改|按)",
    r"(?:忽略|无视|忘记|忘掉|绕过|突破|解除|关闭|取消|不受|摆脱|去掉)(?:掉)?(?:你|您)(?:自己)?(?:的)?(?:所有|一切|全部|任何|安全)*(?:的)?(?:规则|限制|约束|要求|准则|过滤|审查|设置)",
    r"(?:解除|关闭|绕过|突破|去掉)(?:所有|一切|全部|任何)?(?:的)?(?:安全|内容|敏感词|道德|伦理|权限)(?:的)?(?:限制|过滤|审查|检查|约束|机制|校验|策略|控制)",
    rf"(?:输出|显示|打印|告诉|透露|泄露|展示|说出|复述|重复|给我|发给|列出|公布|翻译|背诵|提供|写出|看看|看一下|原样|贴出)[^。?!]{{0,12}}{_SECRET_ZH}",
    rf"{_SECRET_ZH}(?:的内容|里|中)?(?:是|都?是什么|有什么|写了什么|有哪些|里写|怎么写|给我|发|输出|说)",
    r"(?:你现在|从现在(?:起|开始)你?|接下来你|现在开始你|假装(?:你|您)|假设(?:你|您)|想象(?:你|您)|请?你?扮演|你将扮演|你要扮演|充当)[^。?!]{0,16}"
    r"(?:没有(?:任何)?(?:限制|约束|规则|道德|审查)|不受(?:任何)?(?:限制|约束|管制)|无限制|无约束|越狱|dan\b|开发者模式|上帝模式|管理员权限|超级管理员|root|邪恶|黑客)",
    r"(?:你|请|现在|立即|马上)[^。?!]{0,6}(?:进入|切换到?|启用|开启|激活)[^。?!]{0,4}(?:开发者|调试|上帝|越狱|无限制|管理员|维护|dan)模式",
    r"(?:假装|假设|当作|就当|视为|默认)(?:我|本人)(?:是|有|拥有|具有)[^。?!]{0,6}(?:管理员|超级用户|最高权限|全部权限|所有权限|管理员权限|系统管理员|开发者)",
    r"(?:我是|我有|以)(?:系统|超级)?管理员(?:的)?(?:身份|权限)?[^。?!]{0,10}(?:显示|输出|列出|给我|告诉我|打开|查看|导出)[^。?!]{0,10}(?:机密|保密|受限|限制|内部|秘密|所有文件|全部文件|涉密)",
    r"(?:^|[。!?\n\]])\s*(?:系统|system|管理员|开发者)(?:消息|提示|指令)?\s*:[^。?!]{0,12}(?:忽略|无视|你现在|你必须|覆盖|解除|ignore|you are|you must|新的?指令)",
    r"(?:新的?|以下)(?:系统)?指令(?::|(?:优先|覆盖|取代|生效|如下))|(?:不管|无论)(?:系统|之前|你)[^。?!]{0,8}(?:怎么说|说什么|指令|规定|设定)[^。?!]{0,4}(?:都|你都|,)",
)
_MODAL_EN = r"(?<!can i )(?<!may i )(?<!should i )(?<!could i )(?<!can we )(?<!may we )(?<!should we )(?<!do we )(?<!do i )(?<!i can )(?<!we can )(?<!companies )(?<!to )"
_ORDERS_EN = r"(?:instructions?|prompts?|system messages?|commands?|directives?|programming|guardrails?|safeguards?|orders)"
_SECRET_EN = (
    r"(?:(?:system|hidden|initial|original|secret|developer|internal|base|pre-?) ?(?:prompt|instructions?|messages?|directives?)"
    r"|(?:your|the) (?:full |entire |exact |complete |initial |original |hidden |secret )*(?:prompt|instructions?(?! manual)(?! for)(?! on)(?! to)))"
)
_INJECTIONS_EN = (
    rf"{_MODAL_EN}\b(?:ignore|disregard|forget|override|bypass|skip|discard|drop|violate|delete|erase|neglect)\b[^.?!]{{0,40}}\b{_ORDERS_EN}\b",
    r"\b(?:ignore|disregard|forget)\b (?:everything|anything|all|all of it)?[^.?!]{0,12}\b(?:above|before this|said before|said so far|told|you (?:know|were told|have learned))\b",
    r"\b(?:ignore|disregard|forget|override|bypass|break|drop|disable|remove|turn off|switch off|lift|abandon)\b (?:all |any |every )*(?:of )?"
    r"(?:your|the (?:safety|content|security)|safety|content|security|previous|prior|earlier)[^.?!]{0,16}\b(?:rules|guidelines|restrictions|limits|limitations|filters?|policies|constraints|training|checks|controls|context|conversation)\b",
    r"\b(?:do not|don't|stop|no longer|never) (?:follow|following|obey|obeying|comply with|adhere to|listen to)\b[^.?!]{0,20}\b(?:instructions?|rules|guidelines|prompts?|restrictions)\b",
    rf"\b(?:reveal|show|print|repeat|output|tell|give|leak|display|share|expose|dump|recite|quote|translate|write|paste|return|summari[sz]e|list)\b[^.?!]{{0,24}}\b{_SECRET_EN}",
    rf"\bwhat(?:'s| is| are| was| were| does)\b[^.?!]{{0,12}}\b(?:your|the system|the hidden|the initial)\b ?(?:{_SECRET_EN}|prompt|system prompt|instructions?\b(?! for| on| to| manual))",
    r"\b(?:repeat|print|output) (?:the |all )?(?:words|text|everything|content) (?:above|before)\b",
    r"\byou are (?:now|no longer)\b[^.?!]{0,30}\b(?:dan|unrestricted|unfiltered|uncensored|free from|jailbroken|bound|an? (?:evil|hacker|admin)|root|without)\b",
    r"\b(?:act|behave|respond|answer|pretend|roleplay|role-play|imagine)\b[^.?!]{0,40}\b(?:no (?:restrictions|rules|filters?|limits|guidelines|limitations|ethic\w*|moral\w*)|unrestricted|unfiltered|uncensored|without (?:any )?(?:restrictions|rules|filters?|limits|censorship)|dan\b|jailbr\w+)",
    r"\b(?:enter|enable|activate|switch to|go into|turn on) (?:the )?(?:developer|debug|god|dan|jailbreak|admin|maintenance|unrestricted|sudo) mode\b",
    r"\bdo anything now\b|\bjailbreak (?:yourself|mode|prompt|this|the)\b",
    r"\b(?:pretend|assume|suppose|imagine|act as if|act like)\b (?:that )?(?:i am|i'm|i have|i were)\b[^.?!]{0,16}\b(?:admin\w*|root|superuser|developer|full access|all permissions|authori[sz]ed|clearance)\b",
    r"\b(?:as|i am|i'm) (?:an? |the )?(?:admin|administrator|root|superuser|developer)\b[^.?!]{0,24}\b(?:show|give|list|reveal|output|dump|unlock|grant)\b[^.?!]{0,24}\b(?:restricted|confidential|secret|hidden|all (?:documents|files|data)|classified)\b",
    r"(?:^|[.?!\n\]]) ?(?:system|admin|developer)(?: (?:message|override|prompt))? ?: ?[^.?!]{0,16}\b(?:ignore|you are|you must|override|new instructions?|disregard|from now on)\b",
    r"\bnew (?:system )?instructions? ?:|\b(?:the |these |my )?(?:following|new) instructions? (?:override|replace|supersede|take (?:priority|precedence))\b",
    r"<\|(?:im_start|im_end|system|endoftext|user|assistant)\|>|\[/?inst\]|<<sys>>|</?(?:system|sys)>|###? ?(?:system|instruction)s? ?:",
    r"\b(?:restricted|confidential|classified) (?:documents?|files?)\b[^.?!]{0,30}\b(?:ignoring|regardless of|despite|bypassing|without checking) (?:my |the |any )?(?:permissions?|access)",
)
_INJECTIONS = tuple(re.compile(pattern) for pattern in (*_INJECTIONS_ZH, *_INJECTIONS_EN))

# --- other people's data -------------------------------------------------------------------------------------

_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟姜崔谭陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛"
    "闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常汤"
)
_NAME_ZH = rf"(?:[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?|(?:欧阳|司马|上官|诸葛)[\u4e00-\u9fff]{{1,2}}?|[老小阿][{_SURNAMES}]|[{_SURNAMES}](?:某某?|总|工|姐|哥))(?:先生|女士|小姐|经理|主任|老师|同学|总)?"
_ROLE_ZH = (
    r"(?:董事长|总经理|总裁|ceo|cfo|首席执行官|法人代表|法定代表人|法人|高管|股东|老板|局长|市长|处长|科长|主任|领导|(?<!客户)经理|主管|(?:所有|全体|全部|每个|某个|其他|别的|那个|这个|这位|那位|一名|某位)?"
    r"(?:员工|职工|同事|客户|用户|业主|居民|学生|患者|病人|求职者|应聘者|候选人|邻居|会员|租户|孕妇|老人|申请人|投诉人|举报人)(?:们)?|前妻|前夫|前女友|前男友|女友|男友|他们?|她们?|别人|他人|某人|对方|某个人|这个人|那个人|此人)"
)
_PRIVATE_ZH = (
    r"(?:(?:个人)?身份证(?:号码?|信息|件|照片)?|(?:个人|私人)?手机(?:号码?)?|(?:个人|私人)(?:的)?(?:电话|微信|邮箱|住址|地址|联系方式|信息|资料|隐私|账户|账号|行程)|家庭(?:的)?(?:住址|地址|电话|成员|情况)|住址|住所|家里?(?:的)?(?:地址|电话)"
    r"|银行(?:卡|账户|账号)(?:号码?|信息|余额)?|护照(?:号码?)?|社保(?:卡)?(?:号码|账号|号)|微信号?|qq号?|病历|体检(?:报告|结果)|就诊记录|病史|婚姻状况|征信(?:报告|记录)?|聊天记录|通话记录|开房记录|出生日期|生日|车牌号?|行踪|定位|登录密码|密码|验证码|家人(?:信息)?)"
)
_SALARY_ZH = r"(?:工资|薪水|薪资|月薪|年薪|收入|存款|奖金)"
_WANTED_ZH = r"(?:是什么|是多少|是啥|是哪里?|多少|在哪|有没有|有吗|几号|哪天|(?:都)?有哪些|[?。!,]*$)"
_FETCH_ZH = r"(?:给我|发我|发给|告诉|告知|提供|查一?下?|查询|查找|查到|查出|找一?下?|找到|找出|列出|导出|泄露|透露|公开|搜一?下?|搜索|人肉|获取|拿到|弄到|要一?下?|知道|想要|说一?下|看一?下|看看|打听|整理|汇总|发一?下)"
_PROCESS_ZH = re.compile(
    r"(?:需要|需不需要|要不要|必须|是否|能否|可否|应该|怎么(?:办|改|变更|修改|更新|填|保护|处理|采集|收集|管理|登记|绑定|脱敏|加密|保存|销毁)|如何(?:办|改|变更|修改|更新|填|保护|处理|采集|收集|管理|登记|绑定|脱敏|加密|保存|销毁|防止|避免)"
    r"|变更|修改|更换|更改|更新|丢了|丢失|遗失|挂失|补办|填写|填错|写错|登记|保密|保护|脱敏|加密|采集|收集|规定|政策|制度|办法|流程|格式|有效期|复印件|过期|绑定|解绑|换绑|泄露了|被泄露|泄露(?:怎么|如何|要|会|后)|违法|合法|合规|算不算|属于|吗[?。!]*$)"
)
_OWN_ZH = re.compile(r"(?:我|我的|本人|自己|我自己|我们|我公司|我司)(?:的)?$")
_FETCH_VERB_ZH = re.compile(r"(?:给我|发我|发给我|告诉我|列出|导出|泄露给|透露给|人肉|弄到|打听|帮我?(?:查|找|搜|弄|要)|查一下|查查|找一下|搜一下)")
_PERSONAL_ZH = re.compile(
    rf"(?P<owner>{_NAME_ZH}|{_ROLE_ZH})(?:本人|个人|自己|家|家里|家人|家属|老婆|妻子|丈夫|孩子|父母|的|和[\u4e00-\u9fff]{{2,4}}|名单和?|姓名和?|、|及|和){{0,4}}(?P<data>{_PRIVATE_ZH})(?P<after>.*)"
)
_SALARY_OF_ZH = re.compile(rf"(?P<owner>{_NAME_ZH}|(?<!其)他|她|同事|邻居|隔壁[\u4e00-\u9fff]{{0,4}})(?:的|每?个?月的?|一年的?|去年的?|今年的?){{0,2}}{_SALARY_ZH}(?:是|有|拿)?多少")
_LIVES_ZH = re.compile(rf"(?:{_NAME_ZH}|{_ROLE_ZH})(?:现在|目前)?(?:家)?(?:住在?|家住)(?:哪|什么地方|几号|几楼|何处)|(?:{_NAME_ZH}|{_ROLE_ZH})(?:的)?家在哪|(?:孩子|女儿|儿子)在哪(?:个学校|里|儿)?上学")

_NAME_EN = r"(?:zhang|wang|li|liu|chen|yang|huang|zhao|wu|zhou|xu|sun|ma|zhu|hu|guo|lin|luo|zheng|liang|xie|song|tang|han|feng|deng|cao|peng|zeng|xiao|tian|dong|yuan|pan|cai|jiang|du|ye|cheng|wei|su|lu|ding|ren|yao|shen|john|mary|james|robert|michael|david|william|richard|thomas|sarah|emma|anna|lisa|susan|jane|peter|paul|mark|tom|bob|alice|smith|johnson|brown|jones)"
_PERSON_EN = (
    rf"(?:(?:mr|ms|mrs|miss|dr)\.? [a-z]+(?: [a-z]+)?|(?:[a-z]+ )?{_NAME_EN}(?: [a-z]+)?|(?:the |our |my |a |an |each |every |all |some |any |another |other )*(?:[a-z]+ )?"
    r"(?:ceo|cfo|chairman|chairwoman|chairperson|director|president|manager|boss|owner|founder|executive|employee|worker|colleague|coworker|co-worker|customer|client|user|resident|student|patient|neighbou?r|applicant|candidate|tenant|shareholder|mayor|ex-wife|ex-husband|ex|girlfriend|boyfriend|person|people|someone|somebody|staff)s?)"
)
_PRIVATE_EN = (
    r"(?:home address(?:es)?|private (?:address|phone|number|email|cell|mobile)\w*(?: numbers?)?|personal (?:phone|mobile|cell|email|address|details|data|information|contact|id)\w*(?: (?:numbers?|address(?:es)?|details))?|(?:mobile|cell|cellphone|phone)(?: phone)?(?: numbers?)?|cell ?phone"
    r"|(?:national )?(?:id|identity|identification)(?: card)?(?: numbers?)?|passport(?: numbers?)?|social security numbers?|ssns?|bank (?:accounts?|cards?|details)(?: numbers?)?|credit card(?: numbers?)?|dates? of birth|birth ?dates?|birthdays?|medical (?:records?|history|files?)|health records?|salary|salaries|passwords?|wechat(?: id)?|whereabouts|home phone|family members|criminal records?|credit (?:report|history))"
)
_POSSESSIVE_EN = re.compile(rf"\b(?P<owner>(?:{_PERSON_EN})(?:'s?|’s?)|his|her|their) (?:own |current |exact |full )?(?P<data>{_PRIVATE_EN})\b(?P<after>.*)")
_OF_EN = re.compile(rf"\b(?P<data>{_PRIVATE_EN}) (?:and [a-z ]{{2,20}} )?(?:of|for|belonging to) (?P<owner>{_PERSON_EN}|him|her|them)\b(?P<after>.*)")
_LIVES_EN = re.compile(rf"\bwhere (?:does|do|did) (?:{_PERSON_EN}|he|she|they) (?:currently )?live\b|\bhow much (?:does|do|did) (?:(?:mr|ms|mrs|dr)\.? [a-z]+|(?:[a-z]+ )?{_NAME_EN}(?: [a-z]+)?|my (?:colleague|coworker|boss|neighbou?r)|he|she) (?:earn|make|get paid)\b")
_RETRIEVE_EN = re.compile(
    r"(?:^|\b)(?:what(?:'s| is| are| was)|give|tell|find|look up|lookup|show|list|send|share|get me|i need|i want|provide|dump|export|reveal|leak|search|who has|do you (?:know|have)|can you|could you|obtain|fetch|retrieve|email me|track)\b"
)
_PROCESS_EN = re.compile(
    r"\b(?:required?|needs?|needed|mandatory|must|should|changed?|changing|updated?|updating|form|policy|policies|rules?|protect\w*|stored?|storing|collect\w*|kept|keep|lost|stolen|legal|law|allowed|submit\w*|provided?|verify|verif\w+|format|expir\w+|renew\w*|apply|application|encrypt\w*|privacy|record(?:ed|ing)|subsid\w+|paid leave|minimum|average|benefits?|allowance|insurance|how long|how (?:do|can|to|should)|why|when|do we|do i|process\w*|handle\w*|breach\w*)\b"
)


def _asks_for_personal_data(text: str) -> bool:
    if has_chinese(text) and _asks_in_chinese(text):
        return True
    return _asks_in_english(text)


def _asks_in_chinese(text: str) -> bool:
    if _LIVES_ZH.search(text) or _SALARY_OF_ZH.search(text):
        return True
    for found in _PERSONAL_ZH.finditer(text):
        before, after = text[: found.start()], found["after"]
        if _OWN_ZH.search(before) and found["owner"] not in ("同事",):
            continue
        if _FETCH_VERB_ZH.search(text):
            if not re.search(r"怎么|如何|政策|规定|办法|流程|需要", text):
                return True
        elif not _PROCESS_ZH.search(text) and (re.match(rf"(?:的|信息|号码)*{_WANTED_ZH}", after) or re.search(_FETCH_ZH, before)):
            return True
    return False


def _asks_in_english(text: str) -> bool:
    if _LIVES_EN.search(text):
        return True
    found = _POSSESSIVE_EN.search(text) or _OF_EN.search(text)
    if found is None or _PROCESS_EN.search(text):
        return False
    return _RETRIEVE_EN.search(text[: found.start("owner") + 1]) is not None or not found["after"].strip(" ?.!")


# --- configured topics ---------------------------------------------------------------------------------------


def _is_about(forms: Sequence[str], topic: str) -> bool:
    name, _, phrases = topic.partition("=")
    wanted = [squeeze(phrase) for phrase in (phrases or name).split("|")]
    return any(_has_phrase(form, phrase) for form in forms for phrase in wanted if phrase)


def _has_phrase(text: str, phrase: str) -> bool:
    if has_chinese(phrase):
        return phrase in text
    return re.search(rf"(?<![^\W_]){re.escape(phrase)}(?![^\W_])", text) is not None
