"""Whether a text asks for what nobody may be given: other people's conversations, whole stores, secrets, and
orders to run or change something. Questions about the rules for these things are questions.
"""

import re


def reaches_too_far(text: str) -> bool:
    """For squeezed text."""
    if _CODE.search(text):
        return True
    if _ABOUT_RULES.search(text):
        return False
    return any(pattern.search(text) for pattern in _PATTERNS)


def asks_for_others_talk(text: str) -> bool:
    """What other people asked, said or handed in here. For squeezed text."""
    return not _ABOUT_RULES.search(text) and any(pattern.search(text) for pattern in _OTHERS)


_ABOUT_RULES = re.compile(
    r"怎[么样]|如何|在哪|哪里|多久|多长|什么时候|何时|谁(?:可以|能|有权|负责)|应该|需要|要求|规定|制度|流程|政策|期限|保存"
    r"|申请|审批|找谁|是否|能否|可否|有没有|培训|防范|举报|风险|之后|以后|什么是|是什么"
    r"|\b(?:how|where|when|why|who|whom|should|must|polic(?:y|ies)|rules?|requirements?|require[ds]?"
    r"|process|apply"
    r"|allowed|kept|keep|retention|retain|law|gdpr|reported?|after|train(?:ing)?|course|cost)\b"
)

# --- commands and code: never a question ---

_CODE = re.compile(
    r"['\"] ?(?:or|and) ?['\"]?\d+['\"]? ?= ?['\"]?\d+|\bunion (?:all )?select\b|\b(?:drop|truncate"
    r"|alter) table\b"
    r"|\bdelete from \w+|\binsert into \w+|\bselect (?:\*|\w+(?: ?, ?\w+)+) from \w+"
    r"|(?<![a-z])rm -[rf]{1,2}(?![a-z])"
    r"|\bos ?\. ?system\b"
    r"|\bsubprocess ?\.|/etc/(?:passwd|shadow)|\b(?:eval|exec) ?\(|<script\b|\{\{.{0,40}\}\}|\$\{[^}]{1,60}\}"
)

# --- whole stores, secrets, changes ---

_ALL_ZH = r"(?:所有|全部|整个|一切|每一?[份个条]|完整)"
_STORES_ZH = r"(?:知识库|数据库|资料库|文档库|后台|用户表|客户表|系统(?:里|中|内))"
_TAKE_ZH = (
    r"(?:导出|下载|打包|备份|拷贝|复制|输出|打印|发[到给送]|念给|列出|展示|显示|给我|倒出|贴出|传[到给])"
)
_SECRETS_ZH = (
    r"(?:(?:api|接口)?密钥|访问令牌|连接[串字]|环境变量|账号(?:和|与|及)?密码|数据库(?:的)?密码"
    r"|管理员密码|私钥)"
)
_PEOPLE_ZH = r"(?:用户|客户|员工|会员|租户|申请人)"
_DETAILS_ZH = r"(?:资料|信息|联系方式|账号|密码|电话|手机|邮箱|地址|身份|档案|数据)"
_SECRETS_EN = (
    r"(?:api[ -]?keys?|access tokens?|secret keys?|private keys?|passwords?(?: hash(?:es)?)?|credentials"
    r"|environment variables|connection strings?|service account)"
)
_TAKE_EN = r"(?:dump|export|send|print|download|list|show|give|output|reveal|leak|copy|e-?mail|forward|read)"
_ORDER_EN = r"(?:^|[.!?;:,] ?|\b(?:please|you|now|then) )"
_WHOLE_EN = r"(?:the )?(?:entire|complete|whole|full|every|all(?: of)?(?: the)?|each)"
_STORES_EN = (
    r"(?:knowledge ?base|database|document store|customer (?:table|list|base)|user (?:accounts?"
    r"|table|list)|tables?)"
)
_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:{_TAKE_ZH}[^。?!]{{0,10}}{_ALL_ZH}[^。?!]{{0,6}}{_STORES_ZH}|{_ALL_ZH}[^。?!]{{0,6}}{_STORES_ZH}"
        rf"[^。?!]{{0,12}}{_TAKE_ZH}|{_STORES_ZH}(?:里|中|内)?的?{_ALL_ZH}[^。?!]{{0,12}}{_TAKE_ZH})",
        rf"(?:{_TAKE_ZH}[^。?!]{{0,8}}{_STORES_ZH}(?:里|中|内)?的?{_ALL_ZH}|把{_STORES_ZH}[^。?!]{{0,6}}{_TAKE_ZH})",
        rf"[你您]能?(?:访问|看到|读取|接触)(?:到)?的?[^。?!]{{0,4}}{_ALL_ZH}[^。?!]{{0,10}}(?:{_TAKE_ZH}|全文|原文)",
        rf"{_TAKE_ZH}[^。?!]{{0,6}}{_ALL_ZH}的?{_PEOPLE_ZH}的?[^。?!]{{0,6}}{_DETAILS_ZH}"
        rf"|{_ALL_ZH}的?{_PEOPLE_ZH}的?[^。?!]{{0,6}}{_DETAILS_ZH}[^。?!]{{0,8}}{_TAKE_ZH}",
        rf"{_TAKE_ZH}[^。?!,]{{0,12}}{_SECRETS_ZH}|(?:告诉我?|把)[^。?!,]{{0,10}}{_SECRETS_ZH}",
        rf"(?:^|[,。!;]|请|帮我|给我|立即|马上|现在)(?:把)?(?:删除|清空|销毁|抹掉|篡改|修改)[^。?!,]{{0,6}}"
        rf"(?:{_STORES_ZH}|{_ALL_ZH}[^。?!,]{{0,6}}(?:文[件档]|数据|记录))",
        r"把[^。?!]{0,16}(?:数据|营收|利润|数字|记录|指标|金额)[^。?!]{0,8}(?:都|全部|统统)?(?:改[成为]|清零|归零|删[除掉])",
        r"(?:帮我|给我|请|立即)?(?:执行|运行)(?:一下)?(?:这[条段个]|以下|下面的?)?(?:命令|代码|脚本|sql|语句)",
        rf"\b{_TAKE_EN}\b[^.?!]{{0,12}}\b{_WHOLE_EN} (?:\w+ )?{_STORES_EN}\b",
        rf"\b{_TAKE_EN}\b[^.?!]{{0,20}}\b(?:every|all|each)(?: of)?(?: the)? (?:documents?"
        rf"|files?)\b[^.?!]{{0,10}}"
        r"\b(?:in full|verbatim|full text|you (?:can|have|know))\b",
        rf"{_ORDER_EN}{_TAKE_EN}\b[^.?!]{{0,16}}\b(?:all|every|each|the"
        rf"|any)\b[^.?!]{{0,24}}\b{_SECRETS_EN}\b(?! (?:length|reset))",
        rf"{_ORDER_EN}{_TAKE_EN} (?:me )?(?:the |your |all )*(?:\w+ )?{_SECRETS_EN}\b(?! (?:length|reset))",
        r"(?:^|[.!;,] ?|\bplease |\bnow )(?:delete|erase|wipe|overwrite|alter|tamper with)\b[^.?!]{0,12}"
        r"\b(?:all|every|the (?:knowledge|data)\w*|knowledge ?base|database)\b",
        r"(?:^|[.!;] ?|\bplease )(?:run|execute|simulate)\b[^.?!]{0,16}\b(?:shell|terminal|bash"
        r"|command|sql|code|script"
        r"|root)\b",
    )
)

# --- other people's conversations ---

_SOMEBODY_ZH = (
    r"(?:(?:其他|其它|别的|另外的?|另一个|任何)(?:用户|租户|客户|人|同事|会话)|别人|他人|(?:我的?)?(?:同事|老板|领导|上司|室友)"
    r"|[赵钱孙李周吴郑王冯陈张刘杨黄何林罗梁宋唐许邓韩曹彭曾萧田董袁潘蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范石"
    r"廖贾韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤][\u4e00-\u9fff]{1,2}"
    r"(?=昨天|今天|上周|刚才|最近|之前|和你|跟你|问|的(?:聊天|对话|会话|提问)))"
)
_TALK_ZH = (
    r"(?:问过?(?:的|了|你)|聊天|聊了|聊过|对话|会话|提问|上传|说过?(?:的|了)|历史记录|查询记录"
    r"|conversation|chat|history)"
)
_SOMEBODY_EN = (
    r"(?:other (?:users?|people|tenants?|customers?|clients?|callers?)|another (?:user|tenant|customer"
    r"|person|client)"
    r"|someone else|somebody else|anyone else|everyone else|(?:my )?(?:colleagues?|co-?workers?|boss|manager)"
    r"|user \d+)"
)
_TALK_EN = (
    r"(?:ask(?:ed|ing)? you|chats?(?: history)?|conversations?|questions|session|prompts|history"
    r"|messages|uploads?"
    r"|uploaded|documents?|files?|told you)"
)
_OTHERS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_SOMEBODY_ZH}[^。?!]{{0,8}}{_TALK_ZH}",
        rf"(?:给我|帮我|看看|查看|调出|显示|列出|show)[^。?!]{{0,8}}(?:{_SOMEBODY_ZH}|{_SOMEBODY_EN})[^。?!]{{0,8}}"
        rf"(?:{_TALK_ZH}|文[件档])",
        rf"\b(?:show|give|read|tell|list|get|open|let me see"
        rf"|what)\b[^.?!]{{0,24}}\b{_SOMEBODY_EN}\b[^.?!]{{0,16}}"
        rf"\b{_TALK_EN}\b",
        rf"\b(?:show|give|read|tell|list|get|open)\b[^.?!]{{0,24}}\b{_TALK_EN} (?:of|from|by|belonging to)"
        rf" (?:an?other )?(?:{_SOMEBODY_EN}|tenants?|users?)\b",
        r"\bswitch\b[^.?!]{0,12}\b(?:session|account|identity|user)\b[^.?!]{0,8}\bto (?:user|another|the)\b",
    )
)
