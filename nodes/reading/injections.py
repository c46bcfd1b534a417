"""Whether a text tries to take the assistant over, to reveal its instructions or to talk it past permissions.

Questions about what people may ignore ("企业可以忽略以上要求吗") are about the world, not orders to us.
"""

import re

from nodes.reading import takeovers


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
    r"(?:你|请|现在|立即|马上|^)[^。?!]{0,6}(?<!怎么)(?<!如何)(?<!怎样)(?:进入|切换到?|启用|开启"
    r"|激活)[^。?!]{0,4}"
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

# Whoever asks how a thing is done is not ordering it.
_NOT_HOW = r"(?<!怎么)(?<!如何)(?<!怎样)(?<!可以)(?<!能否)(?<!需要)"
_CLAUSE = r"(?:^|[,。!?;:]|请|你|您|现在|立即|马上|立刻|直接|帮我|先|并|然后)"
_YOU = r"[你您](?!们|知道|说|看|觉得|认为|好|能(?!不)|可)"
_POWERS = (
    r"(?:管理员|超级用户|最高权限|全部权限|所有权限|root|sudo|开发者"
    r"|黑客|越狱|上帝|dan\b|(?:无|没有)(?:任何)?(?:审查|限制|约束))"
)
_MODE = r"(?:开发者?|调试|上帝|越狱|无限制|无审查|管理员|超级用户|特权|后台|dan|root|debug|sudo)模式"
_ROLES_ZH = (
    rf"(?:假装|装作|假扮|扮演|模拟成?|伪装成|充当)(?!什么|怎样|何种)[^。?!,]{{0,8}}{_POWERS}(?!是?什么|吗)",
    rf"[你您](?:现在|从现在起|将|就|已经?|暂时|以后)*(?:是|变成|成为|升级为"
    rf"|化身为?)[^。?!,]{{0,6}}{_POWERS}(?!吗|么|还是)",
    rf"(?:把|将|拿)(?:我|你|自己|你自己)(?:当作|当成|视为|设为|看作|看成|提升为)[^。?!,]{{0,6}}{_POWERS}",
    rf"{_NOT_HOW}(?:作为|以|使用|用|凭)(?:超级用户|超级管理员|系统管理员|管理员|最高权限|root)的?(?:身份"
    rf"|权限|名义|模式)?"
    r"[,]?(?:来|去|直接|,)*(?:回答|执行|显示|列出|读取|输出|访问|给我|告诉我|命令|要求你|我要求|我命令)",
    rf"(?:授予|赋予|给予)(?:我|自己|你自己)[^。?!,]{{0,6}}{_POWERS}",
    rf"{_NOT_HOW}(?:(?<=请)|(?<=你)|(?<=[,。!;:])|^|(?<=现在)|(?<=立即)|(?<=马上))(?:进入|切换[到为成]?"
    rf"|启用|开启|激活|打开|启动|使用|用)"
    rf"[^。?!,]{{0,2}}{_MODE}(?!的|需|要|后|怎|是|有|会|吗|失败)",
    rf"{_MODE}(?:现在)?已经?(?:开启|启动|激活|生效|打开)(?!吗|怎|还|但)|在?{_MODE}(?:下|里|中)[,]?(?:你"
    rf"|请|回答|告诉|输出)",
    r"(?:请|让|给)?[你您](?:自己)?(?:现在|已经?|可以|被)?越狱|(?:让|给)自己越狱|越狱(?:后的|版的?"
    r"|状态的?)(?:你|ai|助手|模型)",
)
_BARS = (
    r"(?:审查|过滤器?|护栏|防护|审核机制|安全机制|安全策略"
    r"|安全规则|访问控制|权限(?:检查|校验|控制|限制|验证)?|限制|约束|封印)"
)
_FREED_ZH = (
    rf"{_YOU}[^。?!,]{{0,8}}(?:不受|不再受|没有|不存在|不用受)(?:任何|一切|什么)?的?(?:限制|约束|审查"
    rf"|管束|束缚)",
    rf"{_YOU}[^。?!,]{{0,8}}(?:不用|不必|无需|不需要|不再|不要|别)再?(?:遵守|遵循|遵从|服从|理会)",
    r"(?:不受|没有|毫无|不带|不加|无)(?:任何|一切)?(?:限制|约束|审查|过滤|顾忌|保留)的?(?:情况下|状态下"
    r"|方式)?[地的,]?"
    r"(?:回答|回复|告诉我|说出|输出|作答|讲)",
    rf"{_CLAUSE}(?:解除|取消|关闭|关掉|去掉|绕过|绕开|跳过|突破|破解|移除|停用|禁用|停止|屏蔽)(?:掉|一下)?"
    rf"(?:所有|一切|任何|全部|[你您]的?|对我的?|自身的?|那些|这些)*的?(?:内容|安全|敏感词|道德|伦理|访问"
    rf"|合规|输出|回答)?的?{_BARS}"
    r"(?=[,。!;]|$|并|然后|再|直接|告诉|回答|输出|给我|把)",
    r"(?:不要|不用|别|无需|不必|不需要|停止|不再)再?(?:去)?(?:遵守|遵循|遵从|服从|执行|理会|受)[^。?!,]{0,4}"
    r"(?:[你您](?:的|们?自己)|给[你您]|对[你您])[^。?!,]{0,8}(?:规则|规定|限制|约束|准则|政策|策略|守则"
    r"|要求|原则)",
    r"(?:^|[。!,;])(?:请|现在|从现在起)?(?:不要|别|停止)再?(?:遵守|遵循|遵从|服从)(?!了?[吗么])",
    r"(?:假装|假设|就当|当作|视作|装作)[^。?!,]{0,6}(?:没有|不存在)[^。?!,]{0,6}(?:权限|限制|规则|审查"
    r"|约束|访问控制)",
    r"(?:就当|当作|假装|假设|视作)(?:所有|一切)?的?(?:权限|限制|规则|审查|约束"
    r"|访问控制)[^。?!,]{0,4}(?:不存在|没有)",
    r"(?:权限|限制|规则|审查|约束)(?:都|全)?(?:当作?|当成|假装|视为)(?:它?不存在|没有|无效)",
)
_LEAK_ZH = (
    rf"{_NOT_HOW}(?:重复|复述|背诵|逐字|原样|照抄|打印|输出|贴出)[^。?!,]{{0,8}}(?:上面|以上|上文|前面"
    rf"|之前|上述|对话开头|最开头)的?"
    r"(?:所有|全部|一切|那段|那些|系统|每一?[个句])*的?(?:内容|文字|文本|话|字|信息|一切|所有|全部|东西"
    r"|消息)",
    r"(?:把|将)(?:上面|以上|上文|前面|之前|对话开头)[^。?!,]{0,8}(?:原样|逐字|一字不[漏差改]|原封不动"
    r"|完整地?复述|重复)",
    r"[你您](?:在?(?:一开始|最初|最先|开头|对话前|之前))?(?:所)?(?:收到|接到|得到|拿到|看到|读到|被告知)的?"
    r"(?:第一[段条句个]|最早|最初|最前|开头|首[段条句]|所有(?:话|文字|内容|信息)|全部(?:话|文字|内容|信息))",
    r"[你您]的?(?:最初|初始|原始|预设|内置|底层|后台|出厂|隐藏)的?(?:设定|指令|提示|规则|配置|消息|对话"
    r"|设置|身份|要求)",
    r"(?:在)?我(?:说话|提问|发言|开口|发消息|问你|来)?(?:之前|以前|前)[^。?!]{0,8}(?:跟|对|给|和|告诉"
    r"|交代)[了过]?[你您]"
    r"[^。?!]{0,6}(?:什么|哪些|啥)",
    r"(?:谁|开发者|公司|管理员|他们|系统|老板|主人)(?:给|跟|对|向|告诉|要求|命令"
    r"|交代)[了过]?[你您][^。?!,]{0,8}"
    r"(?:什么|哪些|啥)样?的?(?:规则|指令|指示|要求|限制|设定|约束|提示|命令)",
    r"[你您]不(?:能|可以|许|准|允许)(?:说|透露|告诉(?:我|别人))的(?:是什么|内容|有哪些|东西|秘密|规则)",
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
_CLAUSE_EN = (
    r"(?:(?:^|[,.;:!?] ?)(?:please |now |just |and |then |so |kindly |from now on,? )*"
    r"|\b(?:please|now|you (?:must|should|will|shall)|let's|you to|and then) )"
)
_POWERS_EN = (
    r"(?:admin(?:istrator)?s?|root|super ?user|sudo|developer mode|dan|hacker|unrestricted|jailbroken"
    r"|uncensored|unfiltered|evil"
    r"|god mode|system operator|security officer)\b"
)
_MODE_EN = r"(?:developer|god|dan|jailbreak|debug|sudo|root|admin|maintenance|unrestricted|unfiltered) mode"
_BARS_EN = (
    r"(?:filters?|censorship|guardrails?|safeguards?|safety|moderation|restrictions|limitations"
    r"|(?:content|safety|security) "
    r"(?:polic(?:y|ies)|checks?|rules)|access (?:checks?|controls?|rules)|permission(?:s| checks?)|rules)\b"
)
_ROLES_EN = (
    rf"{_CLAUSE_EN}(?:pretend|act|behave|respond|answer|reply|imagine|assume|suppose|role-?play|play|pose"
    rf"|speak|simulate|operate)\b"
    r"(?: (?:to be|that|as|like|if|though|the (?:role|part) of|you|you're|you are|i am|i'm|we are|were"
    r"|being|are))+"
    rf" (?:an? |the |my |our )?(?:\w+ )?{_POWERS_EN}",
    rf"\b(?:treat|consider|regard|see) me as\b[^.?!]{{0,12}}\b{_POWERS_EN}",
    rf"\byou(?:'re| are) (?:now |hereby )(?:running |operating |working )?(?:in |as |with )?(?:an? "
    rf"|the )?(?:\w+ )?{_POWERS_EN}",
    r"\b(?:grant|give) (?:me|yourself) (?:\w+ )?(?:admin\w*|root|unrestricted|full) (?:access|rights"
    r"|privileges|permissions)"
    r" (?:and|to all|to every|now)",
    rf"\b{_MODE_EN} (?:is |has been )?(?:now )?(?:on|enabled|activated|active|engaged|unlocked)\b"
    rf"|\b(?:you(?:'re| are)|respond|answer|reply|operate) (?:now )?in {_MODE_EN}\b",
    r"\bas (?:if|though) (?:there (?:were|was|are|is)|you (?:had|have)|i (?:had|have)) no\b[^.?!]{0,16}"
    r"\b(?:controls?|permissions?|rules|restrictions|limits|filters?|polic(?:y|ies)|safeguards?)\b",
)
_FREED_EN = (
    r"\b(?:answer|respond|reply|speak|talk)\b[^.?!]{0,30}\b(?:without|with no|free of|free from"
    r"|ignoring)(?: any| all| the| your)*"
    rf" (?:\w+ )?{_BARS_EN}",
    r"\b(?:tell|show|give) me\b[^.?!]{0,40}\b(?:without|with no|ignoring)(?: any| all| the| your)*"
    r" (?:\w+ )?(?:filters?|censorship|guardrails?|safeguards?|permission checks?|access (?:checks?"
    r"|controls?))\b",
    rf"{_CLAUSE_EN}(?:bypass|circumvent|skip|lift|disable|override|suspend|evade|defeat|get around"
    rf"|turn off|switch off)"
    rf" (?:(?:all|any|every|the|your|these|those|this|of) )*(?:\w+ )?{_BARS_EN}",
    rf"{_CLAUSE_EN}(?:ignore|disregard|forget|drop|break|remove) (?:about )?(?:(?:all|any"
    rf"|every) )*(?:of )?(?:your|those|any|all)"
    rf" (?:\w+ )?{_BARS_EN}(?! (?:on|for|in|from|about)\b)",
    r"\b(?:rules|restrictions|polic(?:y|ies)|guidelines|limits|permissions|filters)\b[^.?!]{0,12}"
    r"\b(?:(?:do|does) not|don't|doesn't|no longer) (?:apply|bind|matter)(?: to)? (?:to )?you\b",
    r"\byou(?:'re| are| have been) (?:now |hereby )?(?:free|released|liberated|exempt|unshackled) (?:of"
    r"|from)\b",
    r"\byou (?:don't|do not|no longer) (?:have to|need to) (?:follow|obey|respect|comply with|check"
    r"|honou?r) (?:any|your|those|these)\b",
)
_LEAK_EN = (
    r"\b(?:repeat|recite|print|output|echo|copy|reproduce|dump|reveal|paste|quote|write out"
    r"|spell out)\b[^.?!]{0,16}"
    r"\b(?:everything|all|text|words|lines?|content|messages?|whatever|what)\b[^.?!]{0,16}"
    r"\b(?:above|before (?:this|my|your)|preceding|prior to (?:this|my)|came before)\b",
    r"\b(?:above|before|preceding|prior to) (?:your|my) (?:very )?first (?:message|reply|answer|question"
    r"|turn)\b",
    r"\b(?:repeat|recite|print|output|echo|copy|reproduce|dump|reveal|paste|quote|show|tell|give"
    r"|translate|summari[sz]e)\b[^.?!]{0,24}"
    r"\byour (?:own )?(?:initial|very first|original|opening|starting|hidden|secret|built-in|underlying)"
    r" (?:prompt|instructions?|messages?|setup|context|brief|configuration|settings?|rules)\b",
    r"\bwhat (?:have|had) you been (?:told|instructed|given|asked)\b"
    r"|\bwhat (?:did|do|does) (?:they|your (?:developers?|creators?|makers?|operators?|owners?)"
    r"|the (?:developers?|admins?))"
    r" (?:tell|instruct|ask|order|say to) you\b",
    r"\bhow (?:were|have) you (?:been )?(?:configured|instructed|prompted|programmed)\b"
    r"|\b(?:which|what) (?:rules|orders|restrictions|guidelines) (?:were|have|are) you (?:been )?(?:given"
    r"|told|under)\b",
    r"\b(?:what|everything|anything) (?:that )?(?:comes|came|was (?:said|written)"
    r"|is written) before (?:this|my)(?: first)? "
    r"(?:message|question|conversation)\b",
)
_FAMILIES = (_ZH, _ROLES_ZH, _FREED_ZH, _LEAK_ZH, _EN, _ROLES_EN, _FREED_EN, _LEAK_EN, *takeovers.FAMILIES)
_PATTERNS = tuple(re.compile(pattern) for family in _FAMILIES for pattern in family)
