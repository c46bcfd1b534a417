"""Further ways of taking an assistant over, by kind: rules said to be void, obedience asked for, characters
to play, hidden texts asked for politely, permissions talked past. In Chinese, in English and in both at once.

Patterns for squeezed text; `injections` searches for them.
"""

_RULES_ZH = r"(?:规则|规定|指令|指示|要求|限制|约束|设定|设置|策略|审核|审查|过滤|安全检查|提示词?)"
_VOID_ZH = (
    r"(?:作废|无效|失效|过期|不算数?|不适用|不起作用|解除|关闭|取消|废除|停用|失去效力)"
    r"(?![^。?!]{0,3}[吗么?])"
)
_TO_YOU_ZH = (
    r"(?:给|对|跟|告诉|要求)[你您]"
    r"|[你您](?:之前|原来|原先|此前|先前|以前)?(?:收到|接到|得到|被给|遵守)?"
)
_HIDDEN_ZH = (
    r"(?:系统提示词?|系统指令|system ?prompt|提示词|初始指令"
    r"|(?:内部|背后|隐藏|底层|最初)的?(?:那[段份个些]|这[段份个些])?的?(?:提示|说明|指令|设定|规则|要求)(?:文字|内容|原文|文本)?)"
)
_HAND_ZH = (
    r"(?:分享|贴|发|念|读|复述|背|引用|说出|讲出|翻译|总结|概括|展示|透露|给|看|告诉|输出|显示"
    r"|show|tell|print|reveal)"
)
VOID_RULES_ZH = (
    rf"(?:{_TO_YOU_ZH})的?[^。?!]{{0,4}}(?:所有|一切|全部|任何)?的?{_RULES_ZH}[^。?!]{{0,6}}{_VOID_ZH}",
    rf"(?:安全|审核|审查|内容)(?:策略|规则|检查|限制|审核|过滤|机制)?(?:今天|现在|已经?|都|全部|全)*(?:被|不)?{_VOID_ZH}"
    r"[^。?!]{0,4}[,。]?[^。?!]{0,8}(?:你|可以|自由|随便|直接|继续|回答)",
    r"(?:前面|之前|上面|以上|先前)的?(?:所有|一切|全部)?的?(?:指令|要求|规则|设定)[^。?!]{0,4}"
    r"(?:忘掉|忘了|作废|无效|不算|抛)",
    r"(?:^|[,。])(?:规则|限制|约束)(?:今天|现在|暂时|已经?|都)*(?:不适用|不算数?|失效|作废)(?![吗么])",
    r"(?:只|都)(?:要)?听(?:从)?我的?(?![说讲问])|(?:按照?|照|听从|服从|遵循)我(?:下面|接下来|以下)?(?:说)?的(?:新)?"
    r"(?:规则|命令|指令|要求|吩咐|指示)(?:来|去)?(?:回答|做|执行|行动)",
    r"[你您](?:将|就|会|从现在起)?(?:不再|不用|无需|无须)受?(?:到)?(?:任何|一切)?(?:审核|审查|限制|约束|监管|监督)",
    r"(?:忘|忽略|无视|抛)[^。?!]{0,4}[,。]?[^。?!]{0,4}(?:然后|再|并)?(?:照|按)我(?:下面|接下来|以下)说的做",
    r"(?:随便|任意|自己)(?:编|造|杜撰|捏造)一?[个段份]?(?:答案|回答|数字|数据|来源)",
)
CHARACTERS_ZH = (
    r"(?:扮演|假装|装作|充当|变成|模拟|化身)[^。?!]{0,10}(?:任何(?:秘密|问题|事情?)|什么都[能会可敢]|不会?拒绝|从不拒绝"
    r"|没有(?:道德|限制|底线|规则)|不受限)",
    rf"(?:扮演|假装|装作|想象|角色|故事|游戏|奶奶|外婆|爷爷)[^。?!]{{0,30}}{_HIDDEN_ZH}",
    r"以(?:黑客|攻击者|入侵者|骇客|渗透者)的?(?:身份|口吻|角度|视角)",
    r"(?:怎么|如何|怎样|教我)(?:入侵|黑进|攻破|攻击|渗透)(?:这个|你们?的?|该|本)?(?:系统|网站|平台|服务器|数据库)",
    r"act as[^。?!]{0,16}(?:unrestricted|unfiltered|没有|任何|黑客|管理员|root)",
)
HIDDEN_TEXTS_ZH = (
    rf"{_HAND_ZH}[^。?!]{{0,16}}(?:[你您]的?[^。?!]{{0,4}})?{_HIDDEN_ZH}(?!是什么[?。]*$|攻击|注入|工程|怎么写)",
    rf"{_HIDDEN_ZH}(?:的?(?:原文|内容|全文))?[^。?!,]{{0,6}}(?:贴|发|念|复述|背|引用|说出|翻译|给|分享)",
    r"(?:把|将|用)?[你您]的(?:设定|人设|指令|提示词?)[^。?!]{0,4}(?:翻译|复述|写|发|念|贴|总结|概括|讲)",
    r"[你您]被?(?:告知|要求|命令|规定|禁止)(?:不(?:能|许|准|得|可以|可)|禁止)?(?:说|透露|回答|讨论|谈|提)[^。?!]{0,4}什么",
    r"(?:系|「系」)[^\u4e00-\u9fff]{0,3}统[^\u4e00-\u9fff]{0,3}提[^\u4e00-\u9fff]{0,3}示[^\u4e00-\u9fff]{0,3}词",
)
PERMISSIONS_ZH = (
    r"(?:权限|校验|验证|鉴权|审批)(?:校验|检查|验证|控制)?(?:可以|可|就|都|先)?(?:跳过|忽略|不管|免了|绕过|绕开)",
    r"(?:没有?|无)权限?(?:看|访问|查看|读|打开)[^。?!]{0,12}[,。]?[^。?!]{0,4}(?:[你您](?:帮|替|给)我|帮我|照样|还是给我)"
    r"[^。?!]{0,6}(?:绕|看|打开|读|给|拿|查)",
    r"(?:破例|通融|例外|这一次|就一次|仅此一次)[^。?!]{0,6}(?:不|别|免)(?:检查|核对|验证|管|看)(?:我的)?权限",
    r"(?:假设|假如|如果|要是)(?:你)?(?:没有|不存在|不受|去掉)(?:任何)?权限(?:限制|控制|检查)?[^。?!]{0,30}",
)
_MIXED_DROP = r"(?:ignore|disregard|forget|override|bypass|忽略|无视|忘掉?|抛开|跳过|绕过)"
_MIXED_RULES = r"(?:instructions?|rules?|prompts?|polic(?:y|ies)|指令|规则|提示词|设定|限制)"
MIXED = (
    rf"{_MIXED_DROP}[^。?!.]{{0,8}}(?:all|previous|prior|your|之前|所有|以上|你的)[^。?!.]{{0,16}}{_MIXED_RULES}"
    r"(?![^。?!]{0,4}[吗么?])",
    r"(?:show|tell|give|print|reveal|send)[ ]?(?:me|us)?[ ]?[你您]的?(?:系统)?(?:提示词?|指令|设定|prompt)",
    r"\b(?:hu ?lu[eè]|wu ?shi|wang ?ji)[a-z ]{0,40}(?:zhi ?ling|gui ?ze|ti ?shi(?: ?ci)?)\b",
)

_RULES_EN = (
    r"(?:instructions?|rules|guidelines|directions|restrictions|safety (?:polic(?:y|ies)|checks?|rules)"
    r"|polic(?:y|ies)|prompts?)"
)
_VOID_EN = (
    r"(?:no longer (?:appl(?:y|ies)|valid|count|in (?:force|effect))|(?:is |are |has been |have been "
    r"|now )+(?:now |hereby )*"
    r"(?:void|null|lifted|off|disabled|suspended|cancell?ed|revoked|expired|obsolete|switched off"
    r"|turned off))"
)
VOID_RULES_EN = (
    rf"\b(?:your|all (?:of )?(?:your )?(?:prior|previous|earlier|other)) (?:\w+ )?{_RULES_EN}\b[^.?!]{{0,10}}"
    rf"\b{_VOID_EN}|\bthe (?:previous|prior|earlier) instructions?\b[^.?!]{{0,10}}\b{_VOID_EN}",
    r"\b(?:safety|moderation|content|security|access) (?:checks?|filters?|controls?|is|are|polic(?:y"
    r"|ies))\b[^.?!]{0,16}"
    r"\b(?:now |from now )?(?:disabled|off|lifted|suspended|switched off|turned off)\b(?!\?)",
    r"\bfrom (?:now|the next \w+|this \w+|here) on\b[^.?!]{0,20}\b(?:you obey|obey only|moderation"
    r"|no (?:rules|limits|filter)"
    r"|you are (?:free|not))",
    r"\b(?:obey|listen to|follow|answer to|serve) (?:only |just )?(?:me|my (?:commands?|orders|rules"
    r"|instructions))\b"
    r"|\byou (?:now )?(?:obey|answer to|serve) (?:only )?me\b|\bdo exactly (?:as|what) i say\b",
    r"\b(?:forget|disregard|discard|drop) (?:about )?(?:everything|all|your (?:earlier|previous|prior"
    r"|old) \w+|what(?:ever)?)"
    r"[^.?!]{0,24}\b(?:told|before|earlier|prior|said|directions|instructions|orders)\b",
    rf"\b(?:stop|quit|cease) (?:following|obeying|applying|respecting"
    rf"|using)\b[^.?!]{{0,12}}\b{_RULES_EN}\b[^.?!]{{0,24}}"
    r"\b(?:developers?|makers?|creators?|you|set|given)\b",
    r"\byou(?:'re| are)? (?:no longer|not|never) (?:bound|restricted|limited|constrained|subject)\b",
    r"\b(?:answer|respond|speak|talk)(?: to me)? (?:freely|with no limits|without limits?)\b",
)
CHARACTERS_EN = (
    r"\byou are (?:now )?(?:\w+bot|\w+gpt|an? (?:evil|bad|rogue|rebel)\w*)\b|\b(?:who|that"
    r"|and) never (?:refuses?|says? no)\b",
    r"\b(?:pretend|role-?play|act|imagine|simulate|behave|story|character|novel|game)\b[^.?!]{0,40}"
    r"\b(?:no (?:content )?(?:polic(?:y|ies)|rules|limits|filters?|morals?)|unfiltered|unrestricted"
    r"|uncensored|root access"
    r"|never refuses?)\b",
    r"\b(?:pretend|role-?play|act|imagine|story|character|grand(?:mother|ma|father|pa)|bedtime"
    r"|game)\b[^.?!]{0,60}"
    r"\b(?:system prompt|(?:secret|hidden|initial) (?:instructions?|rules|prompt|guidelines))\b",
    r"\bact as an? (?:unrestricted|unfiltered|root)? ?(?:shell|terminal|console)\b"
    r"|\bunrestricted (?:shell|ai|model|assistant)\b",
    r"\bstay in character\b",
)
_HAND_EN = (
    r"(?:share|paste|quote|recite|read|translate|summari[sz]e|post|copy|send|reveal|show|tell|give|print"
    r"|output|describe)"
)
HIDDEN_TEXTS_EN = (
    rf"\b{_HAND_EN}\b[^.?!]{{0,24}}\b(?:(?:internal|hidden|secret|initial|system|developer"
    rf"|underlying) (?:prompt|instructions?"
    r"|guidelines?|message|rules|text))\b",
    rf"\b{_HAND_EN}\b[^.?!]{{0,20}}\b(?:text|words|notes|instructions?|guidelines?"
    rf"|rules) (?:that )?(?:your (?:makers?|developers?"
    r"|creators?|owners?)|you (?:have been|were|are)) (?:given|gave|told|wrote|written|running)\b",
    r"\btext your (?:makers?|developers?|creators?|owners?)\b",
    r"\b(?:which|what)\b[^.?!]{0,16}\b(?:were|are|have) you (?:been )?(?:told|instructed|asked|ordered"
    r"|forbidden|programmed)"
    r" (?:never|not) to\b",
    r"\b(?:dump|print|show|reveal) (?:me )?your (?:context|memory|configuration|config)\b",
)
PERMISSIONS_EN = (
    r"\b(?:(?:don't|do not|not) have (?:any )?|have no |lack )(?:access|permissions?|rights)\b"
    r"[^.?!]{0,40}\b(?:anyway|regardless|get me|show me|give me|read it)\b",
    r"\b(?:skip|drop|waive|forgo|not check|ignore"
    r"|without checking)\b[^.?!]{0,16}\b(?:access (?:controls?|checks?|rules)"
    r"|(?:my |the )?permissions?)\b",
    r"\bif (?:you|there) (?:had|were|have) no (?:access )?(?:rules|restrictions|limits|permissions?"
    r"|controls?)\b",
    r"\bi (?:hereby )?(?:grant|give) you (?:the )?(?:permission|right|authority|clearance)\b",
)

FAMILIES = (
    VOID_RULES_ZH, CHARACTERS_ZH, HIDDEN_TEXTS_ZH, PERMISSIONS_ZH, MIXED,
    VOID_RULES_EN, CHARACTERS_EN, HIDDEN_TEXTS_EN, PERMISSIONS_EN,
)  # fmt: skip
