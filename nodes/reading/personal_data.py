"""Whether a text asks for another person's private data.

It must name the person or the sort of person, name the data, and want it told. Questions about a rule or
a step ("员工的身份证号需要提交吗", "how do I change my home address") and about a firm's own contacts pass.
"""

import re

from nodes.reading.folding import has_chinese


def asks_for_personal_data(text: str) -> bool:
    """For squeezed text."""
    return (has_chinese(text) and _asks_in_chinese(text)) or _asks_in_english(text)


# --- Chinese ---

_SURNAME = (
    "[王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟姜崔谭陆"
    "范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常汤]"
)
_HAN = r"[\u4e00-\u9fff]"
_PERSON = (
    rf"(?:(?:{_SURNAME}|欧阳|司马|上官|诸葛){_HAN}{{1,2}}?|[老小阿]{_SURNAME})(?:先生|女士|小姐|经理|主任"
    rf"|老师|同学|总)?"
)
_ROLE = (
    r"(?:董事长|总经理|总裁|ceo|cfo|首席执行官|法人代表|法定代表人|法人|高管|股东|老板|局长|市长|处长|科长"
    r"|主任|领导|(?<!客户)经理"
    r"|主管|总监|秘书|会计|出纳|工程师|医生|护士|老师|教授|司机|公务员|职员|员工|职工|同事|客户|用户|业主"
    r"|经办人|承办人|负责人|工作人员|办事员|审批员|学员|家长|干部|村民|退休人员|参保人|中奖者|上司|室友"
    r"|朋友|亲戚"
    r"|居民|学生|患者|病人|求职者|应聘者|候选人|邻居|会员|租户|孕妇|老人|申请人|投诉人|举报人"
    r"|前妻|前夫|前女友|前男友|女友|男友|他们?|她们?|别人|他人|某人|对方|某个人|[这那]个人|此人)们?"
)
_PRIVATE = (
    r"(?:(?:个人)?身份证(?:号码?|信息|照片)?|(?:个人|私人)?手机(?:号码?)?|(?:个人|私人)的?(?:电话|微信|邮箱"
    r"|住址|地址|联系方式"
    r"|信息|资料|隐私|账户|账号|行程)|家庭的?(?:住址|地址|电话|成员|情况)|住址|住所|家里?的?(?:地址|电话)"
    r"|银行(?:卡|账户|账号)(?:号码?|信息|余额)?|护照(?:号码?)?|社保卡?(?:号码|账号|号)|微信号?|qq号?|病历"
    r"|体检(?:报告|结果)"
    r"|住院记录|诊断(?:结果|报告|记录)|化验单|用药记录|银行流水|(?:工资|微信|支付宝|账户|资金)流水|流水"
    r"|转账记录|贷款记录"
    r"|征信|工资条|工资单|人事档案|个人档案|犯罪记录|前科|通话清单|出行记录|住宿记录|处分记录"
    r"|就诊记录|病史|婚姻状况|征信(?:报告|记录)?|聊天记录|通话记录|开房记录|出生日期|生日|车牌号?|行踪|定位"
    r"|登录密码|密码|验证码"
    r"|家人信息)"
)
_ASKED = (
    rf"(?P<owner>{_PERSON}|{_ROLE})"
    rf"(?:本人|个人|自己|家里|家人|家属|家|老婆|妻子|丈夫|孩子|父母|名单|姓名|的|和|、"
    rf"|及){{0,4}}(?P<data>{_PRIVATE})"
)
_ASKED_ZH = re.compile(_ASKED)
_WANTED = re.compile(
    r"(?:的|信息|号码|名单)*(?:是什么|是多少|是啥|是哪|多少|在哪|有没有|有吗|几号|哪天|都?有哪些|[?。!,]*$)"
)
_FETCH = re.compile(
    r"给我|发我|告诉我?|告知|提供|查|找到?|找出|列出|导出|透露|搜|人肉|获取|拿到|弄到|知道|想要|说一?下|看看"
    r"|看一?下|打听|整理|汇总"
)
_FETCH_FOR_ME = re.compile(
    r"给我|发我|告诉我|请提供|请发|请给|列出|导出|人肉|弄到|打听|帮我?(?:查|找|搜|弄|要)|查一下|查查|找一下"
    r"|搜一下"
)
_HOW_TO = re.compile(
    r"怎么(?!查到|查出|找到|弄到|拿到|获取|知道)|如何(?!查到|查出|找到|弄到|拿到|获取|知道)|政策|规定|办法"
    r"|流程|需要"
)
_ABOUT_A_RULE = re.compile(
    r"需要|需不需要|要不要|必须|是否|能否|可否|应该|(?:怎么|如何)(?!查到|查出|找到|弄到|拿到|获取|知道)|变更"
    r"|修改|更换|更改|更新"
    r"|丢了|丢失|遗失|挂失|补办|填写|填错|写错|登记|保密|保护|脱敏|加密|采集|收集|规定|政策|制度|办法|流程"
    r"|格式|有效期|复印件"
    r"|过期|绑定|解绑|换绑|泄露|违法|合法|合规|算不算|属于|福利|假|补贴|吗[?。!]*$"
)
_SALARY_OF = re.compile(
    rf"(?:{_PERSON}|(?<!其)[他她]|同事|邻居)(?:的|每?个?月的?|一年的?|[去今]年的?){{0,2}}"
    r"(?:工资|薪水|薪资|月薪|年薪|收入|存款|奖金)[是有拿]?多少"
)
_LIVES = re.compile(
    rf"(?:{_PERSON}|{_ROLE})(?:现在|目前)?(?:家住|家|住)在?(?:哪|什么地方|几号|几楼|何处)|(?:{_PERSON}"
    rf"|{_ROLE})的?家在哪"
    r"|人肉(?:一下|搜索)?[这那他她某]|(?:孩子|女儿|儿子)在哪个?(?:学校|里|儿)?上学"
)

# A word for a trade ("程序员") may begin with a surname's character.
_NAMED = rf"(?:^|[,。!?]|查|知道|告诉我|问){_PERSON}(?<!高管)(?<![员工师生者人业户区市县局司厂店])"
_NEAR_ONES = (
    r"(?:同事|邻居|隔壁[^。?!,的]{0,3}|老板|上司|领导|主管|室友"
    r"|朋友|亲戚|前夫|前妻|前?男友|前?女友|(?<!其)[他她](?!们)|某人|别人)"
)
_MONEY_OF = re.compile(
    rf"(?:{_NAMED}|{_NEAR_ONES}(?:{_PERSON})?|(?:那|这|我们?)[个位]?{_ROLE})"
    r"(?:的|每个?月|一个?月|一年|[去今]年|现在|到底|究竟|一共|总共|外面|在外|银行里?|都|还){0,3}"
    r"(?:(?:能|可以|要)?(?:领|拿|挣|赚|欠|存|借|开)(?:了|着|到)?(?:银行|别人|外面"
    r"|公司)?(?:了)?多少(?![^。?!]{0,4}(?:可以|才|能|怎|算)|天|次)"
    r"|(?:工资|薪水|薪资|月薪|年薪|收入|存款|奖金|年终奖|欠款|负债|贷款|房贷)(?:是|有|拿|到底|大概"
    r"|还剩){0,2}(?:多少|几千|几万))"
)
_CONTACT = r"(?:电话|手机|联系方式|住址|家庭地址|身份证|银行卡|邮箱|微信)(?:号码?)?"
_MANY = re.compile(
    rf"{_ROLE}的?(?:姓名|名字)?[和与及、]?{_CONTACT}的?(?:名单|列表|清单|明细|名册|一览|汇总|大全)"
    rf"|(?:所有|全部|全体|每一?[个位名]|各位)[^。?!,]{{0,8}}(?:{_ROLE}|人)的?(?:姓名"
    rf"|名字)?[和与及、]?{_CONTACT}"
    rf"|(?:姓名|名字|名单)[和与及、]{_CONTACT}[^。?!]{{0,4}}(?:列|发|导|给|都|[?。!,]*$)"
    rf"|{_ROLE}的?(?:工资|薪资|薪水|收入|奖金)(?:明细|清单|名单|列表|表)"
)
_ABOUT_MANY = re.compile(r"模板|样本|样表|格式|总额|平均|合计|办公电话|客服")


def _asks_for_many(text: str) -> bool:
    return (
        _MANY.search(text) is not None
        and _ABOUT_A_RULE.search(text) is None
        and _ABOUT_MANY.search(text) is None
    )


def _asks_in_chinese(text: str) -> bool:
    if any(pattern.search(text) for pattern in (_LIVES, _SALARY_OF, _MONEY_OF)) or _asks_for_many(text):
        return True
    return any(_is_wanted(text, found) for found in _ASKED_ZH.finditer(text))


def _is_wanted(text: str, found: re.Match[str]) -> bool:
    """Whether the data is to be told, rather than asked about."""
    before, after = text[: found.start()], text[found.end() :]
    if _FETCH_FOR_ME.search(text):
        return _HOW_TO.search(text) is None
    return _ABOUT_A_RULE.search(text) is None and bool(_WANTED.match(after) or _FETCH.search(before))


# --- English ---

_NAME_EN = (
    r"(?:zhang|wang|li|liu|chen|yang|huang|zhao|wu|zhou|xu|sun|ma|zhu|hu|guo|lin|luo|zheng|liang|xie|song"
    r"|tang|han|feng|deng"
    r"|cao|peng|zeng|xiao|tian|dong|yuan|pan|cai|jiang|du|ye|cheng|wei|su|lu|ding|ren|yao|shen|john|mary"
    r"|james|robert|michael"
    r"|david|william|richard|thomas|sarah|emma|anna|lisa|susan|jane|peter|paul|mark|tom|bob|alice|smith"
    r"|johnson|brown|jones)"
)
_TITLED = rf"(?:(?:mr|ms|mrs|miss|dr)\.? [a-z]+(?: [a-z]+)?|(?:[a-z]+ )?{_NAME_EN}(?: [a-z]+)?)"
_SOMEONE = (
    rf"(?:{_TITLED}|(?:(?:the|our|my|an?|each|every|all|some|any|another|other) ){{0,3}}(?:[a-z]+ )?"
    r"(?:ceo|cfo|chairman|chairwoman|chairperson|director|president|manager|boss|owner|founder|executive"
    r"|employee|worker"
    r"|colleague|coworker|co-worker|customer|client|user|resident|student|patient|neighbou?r|applicant"
    r"|candidate|tenant"
    r"|officer|clerk|official|caseworker|inspector|nurse|doctor|teacher|driver|cashier|accountant"
    r"|engineer|man|woman|guy"
    r"|friend|roommate|landlord|everyone|everybody|anyone|member|donor|voter|winner"
    r"|shareholder|mayor|ex-wife|ex-husband|ex|girlfriend|boyfriend|person|people|someone|somebody|staff)s?"
    r"(?! (?:service|support|care|hotline|cent(?:er|re)|relations|department|desk|team|office)))"
)
_ADDRESSES = (
    r"(?:home address(?:es)?|home phone|private (?:address|phone|number|email|cell|mobile)\w*(?: numbers?)?)"
)
_NUMBERS = (
    r"(?:(?:mobile|cell|cellphone|phone)(?: phone)?(?: numbers?)?|(?:national )?(?:id|identity"
    r"|identification)(?: card numbers?| cards?| numbers?)"
    r"|passport(?: numbers?)?|social security numbers?|ssns?|bank (?:accounts?|cards?|details)(?: numbers?)?"
    r"|credit card(?: numbers?)?)"
)
_PRIVATE_EN = (
    rf"(?:{_ADDRESSES}|{_NUMBERS}|personal (?:phone|mobile|cell|email|address|details|data|information"
    rf"|contact|id)\w*"
    r"(?: (?:numbers?|address(?:es)?|details))?|dates? of birth|birth ?dates?|birthdays?|medical (?:records?"
    r"|history|files?)"
    r"|bank statements?|pay ?slips?|diagnos[ie]s|medical bills|call logs?|credit scores?|prescriptions?"
    r"|browsing history"
    r"|disciplinary records?|personnel files?|test results|chat history"
    r"|health records?|passwords?|wechat(?: id)?|whereabouts|family members|criminal records?"
    r"|credit (?:report|history))"
)
_POSSESSIVE = re.compile(
    rf"\b(?:{_SOMEONE}['’]s?|his|her|their) (?:(?:own|current|exact|full) )?(?:{_PRIVATE_EN}|salar(?:y"
    rf"|ies))\b"
)
_BELONGING = re.compile(
    rf"\b{_PRIVATE_EN} (?:and [a-z ]{{2,20}} )?(?:of|for|belonging to) (?:{_SOMEONE}|him|her|them)\b"
)
_LIFE = re.compile(
    rf"\bwhere (?:does|did) (?:{_SOMEONE}|he|she) (?:currently )?live\b|\bwhere (?:{_SOMEONE}|he|she) lives\b"
    rf"|\bhow much (?:does|do|did) (?:{_TITLED}|my (?:colleague|coworker|boss|neighbou?r)|he|she) (?:earn"
    rf"|make|get paid)\b"
)
_RETRIEVE = re.compile(
    r"\b(?:what(?:'s| is| are| was)|give|tell|find|look up|lookup|show|list|send|share|get me|i (?:need|want)"
    r"|provide|dump"
    r"|export|reveal|leak|search|who has|(?:do|can|could) you|obtain|fetch|retrieve|email me|track)\b"
)
_ABOUT_A_RULE_EN = re.compile(
    r"\b(?:required?|needed|mandatory|must|should|chang\w+|updat\w+|form|polic(?:y|ies)|rules?|protect\w*"
    r"|stored?|storing"
    r"|collect\w*|kept|keep|lost|stolen|legal|law|allowed|submit\w*|verif\w+|format|expir\w+|renew\w*|apply"
    r"|application"
    r"|encrypt\w*|privacy|record(?:ed|ing)|subsid\w+|leave|minimum|average|benefits?|allowance|insurance"
    r"|how long"
    r"|how (?:do|can|to|should)|why|when|do (?:we|i|they)|process\w*|handle\w*|breach\w*|leaked)\b"
)

_NEAR_ONES_EN = (
    r"(?:(?:my|our|the) (?:\w+ )?(?:colleagues?|co-?workers?|boss|neighbou?rs?|manager|friend|roommate"
    r"|landlord|team ?mate|supervisor"
    r"|ex|ex-wife|ex-husband|(?:guy|man|woman|person|girl) (?:next door|next to me|upstairs|downstairs"
    r"|at the next desk))"
    rf"|he|she|{_TITLED})"
)
_MONEY_EN = re.compile(
    rf"\bhow much (?:money |debt |salary )?(?:(?:does|do|did|is|are|was|has"
    rf"|have) )?{_NEAR_ONES_EN} (?:still |currently )?"
    r"(?:earns?|makes?|gets?(?: paid)?|(?:is |are |being )?paid|owes?|saved|inherited|(?:has|have) (?:in"
    r"|saved))\b"
    rf"|\bwhat (?:does|do|did|is|are) {_NEAR_ONES_EN} (?:earn|earning|make|making|get paid|getting paid"
    rf"|paid|owe)\b"
    rf"|\b(?:salary|pay|wages?|bonus|debts?|income|savings) of {_NEAR_ONES_EN}(?! department)\b"
)
_CONTACT_EN = (
    r"(?:(?:phone|mobile|cell|contact|telephone|id|passport|bank account) (?:numbers|details)|(?:home "
    r"|email |private )addresses"
    r"|addresses|salaries|bank details|birthdays|dates of birth|medical records|personal (?:data|details"
    r"|information))"
)
_MANY_EN = re.compile(
    rf"\b{_CONTACT_EN} (?:and \w+ )?(?:of|for) (?:all |the )*(?:everyone|everybody|anyone|each|every|all"
    rf"|people|those)\b"
    r"(?! (?:offices?|branches|departments?|firms?|companies))"
    rf"|\b(?:names?|list) (?:and|with|plus|,) (?:the |their )?{_CONTACT_EN} (?:of|for) (?!the (?:offices?"
    rf"|branches|companies))"
    r"|\b(?:give|list|export|send|show|dump|get|email|download|print)\b[^.?!]{0,24}\b(?:employee|customer"
    r"|client|staff|applicant"
    rf"|patient|student|member|user|resident|tenant|worker)s?['’]? {_CONTACT_EN}"
)


def _asks_in_english(text: str) -> bool:
    if _LIFE.search(text) or _MONEY_EN.search(text):
        return True
    if _MANY_EN.search(text) and not _ABOUT_A_RULE_EN.search(text):
        return True
    found = _POSSESSIVE.search(text) or _BELONGING.search(text)
    if found is None:
        return False
    rest = text[found.end() :].strip(" ?.!")
    # What the person did ("who handled my case") is no rule that is asked about.
    asked = text[: found.end()] if rest.startswith(("who ", "that ")) else text
    if _ABOUT_A_RULE_EN.search(asked):
        return False
    return _RETRIEVE.search(text[: found.end()]) is not None or not rest or rest.startswith(("who ", "that "))
