"""Whether a text tries to take the assistant over, to reveal its instructions or to talk it past permissions.

Questions about what people may ignore ("企业可以忽略以上要求吗") are about the world, not orders to us.
"""

import re


def tries_to_take_over(text: str) -> bool:
    """For squeezed text."""
    return any(
        not _IS_ABOUT_PEOPLE.search(text[max(0, found.start() - _NEAR) : found.start()])
        for pattern in _PATTERNS
        for found in pattern.finditer(text)
    )


_NEAR = 40
_IS_ABOUT_PEOPLE = re.compile(
    r"(?<![你您])(?:是否可以|可不可以|能不能|可以|能否|可否|是否|能)$"
    r"|\b(?:can|may|should|could|do|does|did|must|will|would) (?!you\b)(?:i|we|they|he|she|it|\w+s|(?:an?"
    r"|the) \w+(?: \w+)?) $"
)


# --- Chinese ---

_IGNORE = (
    r"(?:忽略|无视|忘记|忘掉|忘了|抛开|抛弃|丢弃|绕过|绕开|覆盖|跳过|不要理会|别理会|不用管|别管"
    r"|不再遵守|不要遵守|不要遵循|别遵守|违反|撤销|清除|删除)"
)
_ORDERS = (
    r"(?:指令|指示|提示词|提示语|系统提示|prompt|命令|设定|人设|安全(?:规则|限制|策略|准则|设置)|系统(?:规则"
    r"|限制|消息|信息))"
)
_WHOSE = r"(?:你|您)(?:自己)?的?(?:所有|一切|全部|任何|安全)*的?"
_LIMITS = r"(?:规则|限制|约束|要求|准则|过滤|审查|设置|设定)"
_HIDDEN = (
    r"(?:系统(?:提示词?|指令|消息|prompt)|system ?prompt|(?:隐藏|内部|初始)的?(?:指令|提示词?|规则|设定)"
    r"|开发者(?:消息|指令)"
    r"|[你您]的?(?:(?:完整|全部|原始|最初)的?)?(?:提示词|指令|设定|prompt|系统设定|内部规则))"
)
_SHOW = (
    r"(?:输出|显示|打印|告诉|透露|泄露|展示|说出|复述|重复|给我|发给|发我|列出|公布|翻译|背诵|提供|写出|看看"
    r"|看一下|原样|贴出)"
)
_FREE = (
    r"(?:没有任?何?(?:限制|约束|规则|道德|审查)|不受任?何?(?:限制|约束|管制)|无限制|无约束|越狱|dan\b"
    r"|开发者模式|上帝模式"
    r"|管理员权限|超级管理员|root|邪恶|黑客)"
)
_CLASSIFIED = r"(?:机密|保密|受限|限制级|内部(?:文件|资料|数据)|秘密|所有文件|全部文件|涉密)"
_ZH = (
    rf"{_IGNORE}(?:掉|一下)?[^。?!]{{0,14}}{_ORDERS}",
    # "忽略以上内容" as an order, not inside a longer noun phrase
    r"(?:忽略|无视|忘记|忘掉|忘了|不要理会|别理会|抛开)掉?[你您]?(?:以上|上面|上述|之前|前面|此前|先前"
    r"|刚才)的?(?:我?所?说的)?"
    r"(?:所有|一切|全部)?的?(?:内容|对话|文字|话|规则|规定|限制|要求|约束|说明|信息|一切|所有)?"
    r"(?=[,。;!、:]|$|并|然后|现在|直接|告诉|输出|你|改|按)",
    rf"(?:忽略|无视|忘记|忘掉|绕过|突破|解除|关闭|取消|不受|摆脱|去掉|不要遵守|不再遵守"
    rf"|违反)掉?{_WHOSE}{_LIMITS}",
    r"(?:解除|关闭|绕过|跳过|突破|去掉)(?:所有|一切|全部|任何)?的?(?:安全|内容|敏感词|道德|伦理|权限)的?"
    r"(?:限制|过滤|审查|检查|约束|机制|校验|策略|控制)",
    rf"{_SHOW}[^。?!]{{0,12}}{_HIDDEN}",
    rf"{_HIDDEN}(?:的内容|里|中)?(?:是|都?是什么|有什么|写了什么|有哪些|里写|怎么写|原样|给我|发|输出|说)",
    r"(?:你现在|从现在(?:起|开始)你?|接下来你|现在开始你|假装[你您]|假设[你您]|想象[你您]|请?你?扮演"
    r"|你[将要]扮演|充当)"
    rf"[^。?!]{{0,16}}{_FREE}",
    r"(?:你|请|现在|立即|马上|^)[^。?!]{0,6}(?:进入|切换到?|启用|开启|激活)[^。?!]{0,4}"
    r"(?:开发者|调试|上帝|越狱|无限制|管理员|维护|dan)模式",
    r"(?:假装|假设|当作|就当|视为|默认)(?:我|本人)(?:是|有|拥有|具有)[^。?!]{0,6}"
    r"(?:管理员|超级用户|最高权限|全部权限|所有权限|开发者)",
    rf"(?:我是|我有|作为|以)(?:系统|超级)?管理员的?(?:身份|权限)?[^。?!]{{0,10}}(?:显示|输出|列出|给我|告诉我"
    rf"|打开|查看|导出)"
    rf"[^。?!]{{0,10}}{_CLASSIFIED}",
    r"(?:^|[。!?\]])\s*(?:系统|system|管理员|开发者)(?:消息|提示|指令)?\s*:"
    r"[^。?!]{0,12}(?:忽略|无视|你现在|你必须|覆盖|解除|ignore|you are|you must|新的?指令)",
    r"把[^。?!]{0,12}(?:规则|指令|设定|限制|提示词|约束)[^。?!]{0,4}(?:忘|抛|扔|丢|放[在到]?一边|作废|无视"
    r"|忽略)",
    r"[你您](?:之前|原来|所有|全部)?的?(?:设定|指令|规则|限制|提示词)(?:全部|全都|统统|都)?(?:作废|失效|无效"
    r"|取消|不算)",
    r"(?:之前|前面|以上|上面|所有|先前)的?(?:指令|设定|提示词?)(?:全部|全都|统统|都)?(?:作废|失效|无效|不算)",
    r"(?:无视|不顾|忽略)(?:掉)?(?:所有|一切|任何|全部)的?(?:限制|规则|约束)|你(?:可以|应该|要|必须)?不(?:用"
    r"|必|需要)?(?:遵守|遵循)",
    r"你(?:现在|已经|将)?不再是|你(?:现在)?是(?:root|黑客|dan\b|超级管理员)",
    r"[不别](?:用|要|必|需|再|需要)?(?:遵守|遵循|管|理会|考虑|顾及?|检查)[^。?!]{0,8}"
    r"(?:安全(?:策略|规则|限制)|权限|系统(?:规则|限制)|指令|[你您]的(?:规则|限制)|任何(?:规则|限制))",
    r"(?:最初|最开始|一开始)(?:收到|得到|看到|被给)的?[^。?!]{0,8}(?:话|消息|内容|文字|文本|指令)",
    r"[你您]被?(?:给|收到|看到|得到|设定)的?(?:系统)?(?:消息|指令|提示)",
    r"你(?:现在|已经|将)?(?:没有|不受|不再受)(?:任何|什么)?(?:限制|约束|规则|审查)",
    r"(?:新的?|以下)(?:系统)?指令(?::|(?:优先|覆盖|取代|生效|如下))"
    r"|(?:不管|无论)(?:系统|之前|你)[^。?!]{0,8}(?:怎么说|说什么|指令|规定|设定)[^。?!]{0,4}(?:都|,)",
)

# --- English ---

_ORDERS_EN = (
    r"(?:instructions?|prompts?|system messages?|commands?|directives?|programming|guardrails?|safeguards?"
    r"|orders)"
)
_HIDDEN_EN = (
    r"(?:(?:system|hidden|initial|original|secret|developer|internal|base|pre-?) ?(?:prompt|instructions?"
    r"|messages?|directives?)"
    r"|your (?:\w+ ){0,2}(?:prompt|instructions?)\b(?! (?:manual|for|on|to)\b)"
    r"|the (?:(?:full|entire|exact|complete|initial|original|hidden|secret) )*(?:prompt|instructions?)\b"
    r"(?= (?:you|above|given|that you)\b|[?.! ]*$))"
)
_UNBOUND = (
    r"(?:no (?:restrictions|rules|filters?|limits|guidelines|limitations|ethic\w*|moral\w*)|unrestricted"
    r"|unfiltered|uncensored"
    r"|without (?:any )?(?:restrictions|rules|filters?|limits|censorship)|dan\b|jailbr\w+)"
)
_RULES = (
    r"(?:rules|guidelines|restrictions|limits|limitations|filters?|policies|constraints|training|checks"
    r"|controls|context"
    r"|conversation)"
)
_EN = (
    r"\b(?:ignore|disregard|forget|override|bypass|skip|discard|drop|violate|delete|erase|neglect)\b"
    rf"[^.?!]{{0,40}}\b{_ORDERS_EN}\b",
    r"\b(?:ignore|disregard|forget)\b (?:everything|anything|all of it|all)?[^.?!]{0,12}"
    r"\b(?:above|before this|said before|said so far|told|you (?:know|were told|have learned))\b",
    r"\b(?:ignore|disregard|forget|bypass|break|drop|disable|remove|turn off|switch off|lift|abandon"
    r"|override) "
    r"(?:(?:all|any|every) )*(?:of )?(?:your|(?:the )?(?:safety|content|security)|(?:previous|prior"
    r"|earlier)(?= conversation| context))"
    rf"[^.?!]{{0,16}}\b{_RULES}\b",
    r"\b(?:do not|don't|not|stop|no longer|never|not have to) (?:follow|following|obey|obeying|comply with"
    r"|adhere to|listen to)\b"
    r"[^.?!]{0,20}\b(?:your|any|system|safety|previous)\b[^.?!]{0,12}\b(?:instructions?|rules|guidelines"
    r"|prompts?|restrictions)\b",
    r"\b(?:reveal|show|print|repeat|output|tell|give|leak|display|share|expose|dump|recite|quote|translate"
    r"|write|paste|return"
    rf"|summari[sz]e|list)\b[^.?!]{{0,24}}\b{_HIDDEN_EN}",
    rf"\bwhat(?:'s| is| are| was| were| does)\b[^.?!]{{0,12}}\b(?:your (?!.*manual)|the system |the hidden "
    rf"|the initial ){_HIDDEN_EN}"
    r"|\bwhat(?:'s| is| are| was| were) (?:your|the system|the hidden|the initial) (?:system )?(?:prompt"
    r"|instructions?)(?! (?:manual|for|on|to)\b)",
    rf"\b(?:ignore|disregard|forget|break)\b[^.?!]{{0,20}}\b{_RULES}\b[^.?!]{{0,12}}\byou\b",
    rf"\byou (?:are|have)\b[^.?!]{{0,30}}\b{_UNBOUND}",
    r"\b(?:bypass|circumvent|get around|ignore|override) (?:\w+ ){0,2}(?:access controls?|permissions?"
    r"|security|authori[sz]ation)\b",
    r"\bwhat (?:were|was|are) you (?:told|instructed|given|programmed)\b|\b(?:forget"
    r"|ignore) (?:all )?your training\b",
    r"\b(?:output|print|repeat|show|dump|reveal)\b[^.?!]{0,20}\b(?:your (?:context|memory|configuration"
    r"|rules)|verbatim)\b",
    r"\b(?:repeat|print|output) (?:the |all )?(?:words|text|everything|content) (?:above|before)\b",
    r"\byou are (?:now|no longer)\b[^.?!]{0,30}"
    r"\b(?:dan|unrestricted|unfiltered|uncensored|free from|jailbroken|bound|an? (?:evil|hacker|admin)|root"
    r"|without)\b",
    rf"\b(?:act|behave|respond|answer|pretend|roleplay|role-play|imagine)\b[^.?!]{{0,40}}\b{_UNBOUND}",
    r"\b(?:enter|enable|activate|switch to|go into|turn on) (?:the )?"
    r"(?:developer|debug|god|dan|jailbreak|admin|maintenance|unrestricted|sudo) mode\b",
    r"\bdo anything now\b|\bjailbreak (?:yourself|mode|prompt|this|the)\b",
    r"\b(?:pretend|assume|suppose|imagine|act as if|act like)\b (?:that )?(?:i am|i'm|i have"
    r"|i were)\b[^.?!]{0,16}"
    r"\b(?:admin\w*|root|superuser|developer|full access|all permissions|authori[sz]ed|clearance)\b",
    r"\b(?:as|i am|i'm) (?:an? |the )?(?:admin|administrator|root|superuser|developer)\b[^.?!]{0,24}"
    r"\b(?:show|give|list|reveal|output|dump|unlock|grant)\b[^.?!]{0,24}"
    r"\b(?:restricted|confidential|secret|hidden|all (?:documents|files|data)|classified)\b",
    r"(?:^|[.?!\]]) ?(?:system|admin|developer)(?: (?:message|override|prompt))? ?: ?[^.?!]{0,16}"
    r"\b(?:ignore|you are|you must|override|new instructions?|disregard|from now on)\b",
    r"\bnew (?:system )?instructions? ?:"
    r"|\b(?:the |these |my )?(?:following|new) instructions? (?:override|replace|supersede|take (?:priority"
    r"|precedence))\b",
    r"<\|(?:im_start|im_end|system|endoftext|user|assistant)\|>|\[/?inst\]|<<sys>>|</?(?:system|sys)>"
    r"|###? ?(?:system|instruction)s? ?:",
    r"\b(?:restricted|confidential|classified) (?:documents?|files?)\b[^.?!]{0,30}"
    r"\b(?:ignoring|regardless of|despite|bypassing|without checking) (?:my |the |any )?(?:permissions?"
    r"|access)",
)
_PATTERNS = tuple(re.compile(pattern) for pattern in (*_ZH, *_EN))
