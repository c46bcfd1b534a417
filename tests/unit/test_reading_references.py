"""Which texts lean on something unsaid, by their own words alone."""

import pytest
from reading_sample import INDEX, METRICS, RECEIVED_AT

from nodes.reading.kinds import Reader
from nodes.reading.references import Reference, asks_again, needs_reference, strip_reference

READER = Reader(INDEX, METRICS, RECEIVED_AT)


def mention(text: str) -> str | None:
    said = READER.read(text)
    found = needs_reference(
        said.plain,
        companies_found=bool(said.names),
        periods_found=bool(said.periods),
        metrics_found=bool(said.metrics),
    )
    return found.mention if found else None


LEANING = """
那净利润呢
那净利润呢？
那它有什么缺点？
那超过以后返回什么错误码？
那2022年呢
那云帆能源呢
那需要多少钱
那是什么意思
净利润呢
云帆能源呢？
2022年呢
管理员呢
外地户口呢？
这里的第二条是什么意思
这里面包括医保吗
这里提到的证明去哪开
多少钱，残疾人呢？
谢谢，残疾人呢？
它的利润
它2023年的营收是多少
它们有什么区别
他什么时候上任
她的职务是什么
他们的员工人数
其营业收入是多少
这个限制管理员也一样吗？
这个配置在哪里改？
这个怎么申请
申请这个需要什么材料
这项政策适用于外资企业吗
这些条件必须同时满足吗
这种情况怎么处理
该政策什么时候生效
该公司2023年的营收
此项补贴有截止日期吗
上述条件必须同时满足吗
不符合以上条件可以申请吗
以上材料需要原件吗
刚才提到的配置在哪里修改？
刚才说的补贴是多少
我已经提交了材料，你刚才说的期限是多久
你刚才说的第二点是什么意思
你提到的办法在哪里下载
前面说的费用谁承担
上一个问题的答案是什么
第二种方案呢？
第二种方案的费用是多少
第二个是什么
第三条怎么理解
前者有什么要求
后者呢
两者有什么区别
其中哪些是免费的
其余的呢
另一个呢
最后一个怎么办理
哪个更高？
谁更高
管理员也一样吗？
外地人也可以吗
残疾人也有吗
为什么？
怎么申请？
如何办理
需要什么材料？
有什么条件吗
多少钱
要多久
什么时候截止
在哪里领取
具体流程是什么
有例外吗
还有呢
还有哪些？
举个例子
详细说明一下
继续
再详细一点
我是说净利润
我的意思是去年的
然后去哪里领取
好的，那需要多久？
what about 2022?
What about the managers?
how about its profit
How about Yunfan Energy?
that one
the former
the latter?
the second one
the other option
what does it cost
What does it mean?
How is it calculated?
How do I apply for it?
What are its benefits?
Where did they originate?
What did he say?
Is it free?
Is it available to foreigners?
and the error code?
And for managers?
And in 2022?
but why?
Tell me more
more details
why?
how so
how much?
what else?
which one?
give me an example
Can you explain further?
What are the symptoms?
What is the deadline?
How much is the fee?
Is this policy still valid?
Does this apply to managers?
who can use that?
Why is that important?
Are these documents required?
Those two, what do they cost?
Is the same true for managers?
Does it apply to managers too?
the previous question
you mentioned a limit, what is the limit
any other types?
What other options?
How can I create one?
Which is cheaper?
What is there to see there?
What was the situation back then?
because I lost my job
I mean the net profit
any exceptions?
""".strip().splitlines()

INDEPENDENT = """
云帆科技2023年营收是多少
那云帆科技2023年的营收是多少
云帆科技2023年营收呢
云帆能源的净利润呢
创业补贴怎么申请？
创业补贴怎么申请呢
第一次认定高企奖励多少钱，重新认定呢？
把区域总部设在这里，租金能返还多少？
这里的最低工资是多少
我想来这儿开公司要什么材料
中心城区的最低工资是多少？其他区县呢
申请创业补贴需要什么材料
上传文件最大是多少？
什么是RAG？
PostgreSQL如何创建HNSW索引？
这个月的社保什么时候缴
这个季度的申报截止到哪天
这几年创业补贴有变化吗
这两年的最低工资是多少
这个系统能做什么
那么多公司都能申请创业补贴吗
这么高的税率合理吗
其他公司可以申请创业补贴吗
其实创业补贴很难申请吗
其他人可以代办营业执照吗
尤其是小微企业有什么优惠
员工及其家属的医保怎么办
企业注销后其债务由谁承担
与其罚款不如整改对吗
创业补贴应该怎么申请
小微企业该交多少税
加班费该不该算进工资
因此产生的运输费用谁承担
此外还有哪些创业补贴
彼此担保的企业能贷款吗
员工离职后，他的公积金怎么处理
如果员工辞职，他的社保怎么办
公司成立不满一年，这种情况能申请创业补贴吗
云帆科技和它的子公司2023年营收
营业执照丢了，这个怎么补办
第二季度的社保基数是多少
第一次申请创业补贴要准备什么
生育第二个孩子有补贴吗
第二类医疗器械怎么备案
劳动合同法第三条是什么
18岁以上可以申请居住证吗
注册资本500万以上的企业有什么优惠
我刚刚提交了居住证申请，多久能批准
之前缴纳的社保能转移吗
残疾人就业保障金怎么计算
外籍员工也可以申请创业补贴吗
管理员可以修改上传限制吗
再就业补贴怎么领
再生资源企业有什么优惠
继续教育学时有什么要求
然而小微企业的税率是多少
吉他培训机构需要办学许可吗
人事部门的地址在哪里
最后一个季度的社保基数
上面盖章的合同有效吗
登录失败怎么办
你给我介绍一下创业补贴
谁可以申请人才公寓
哪些企业可以申请创业补贴
哪个部门负责创业补贴
我想了解一下人才公寓的申请条件
2023年云帆科技和云湖置业谁的营收更高
What was Yunfan Technology's revenue in 2023?
What about Yunfan Technology's revenue in 2023?
How do I apply for the start-up subsidy?
What is the start-up subsidy and how do I apply for it?
What about the fees of a housing loan in Yunhu City?
Is it possible to apply online for the housing subsidy?
Is it mandatory to register a trade mark?
It is important that companies register, right?
How long does it take to register a company?
How much does it cost to register a company?
What does it mean to be a small enterprise?
What time is it legal to start night work?
Is it true that small companies pay less tax?
Do employees keep their housing fund when they leave?
Can a company change its name online?
How did Boise get its name?
If a company misses the deadline, can it still apply?
When a worker is injured, who pays for his treatment?
Documents that are required for registration
What happens to companies that do not file on time?
I know that the start-up subsidy exists, who gets the money?
How many employees does a small enterprise have this year?
What changed this quarter for exporters?
Are there any subsidies for start-ups?
Is there a limit for uploads?
There is a limit for uploads, right?
Why isn't there a subsidy for exporters?
What is the difference between sick leave and annual leave?
What are the requirements for the start-up subsidy?
What is the deadline for the tax return?
Who is eligible for the talent housing programme?
Those who work at night get what allowance?
Which documents other than the passport are needed for a visa?
Is throat cancer the same as oesophageal cancer?
Which of the two housing programmes is cheaper for families?
And what is the penalty for late filing in Yunhu City?
So what is the penalty for late filing in Yunhu City?
Tell me about the Neverending Story film.
The former employees of a company want what kind of insurance?
Can you explain more about the housing fund?
If a start-up closes, must the subsidy be repaid?
One of my documents expired, how do I renew a passport?
Then what was Yunfan Technology's net profit in 2022?
""".strip().splitlines()


@pytest.mark.parametrize("text", LEANING)
def test_texts_that_lean_on_something_unsaid(text):
    found = mention(text)
    assert found
    assert found in READER.read(text).plain


@pytest.mark.parametrize("text", INDEPENDENT)
def test_texts_that_stand_alone(text):
    assert mention(text) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("這個限制管理員也一樣嗎？", "這個限制"),
        ("该政策什么时候生效", "该政策"),
        ("刚才提到的配置在哪里修改", "刚才提到的配置"),
        ("第二种方案呢", "第二种"),
        ("净利润呢？", "净利润呢"),
        ("What does IT cost?", "IT"),
        ("Is This Policy valid?", "This Policy"),
        ("What about 2022?", "What about"),
        ("ｗｈａｔ　ｄｏｅｓ　ｉｔ　ｃｏｓｔ", "ｉｔ"),
    ],
)
def test_the_mention_is_quoted_as_the_user_wrote_it(text, words):
    assert needs_reference(text, companies_found=False) == Reference(words)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("那超过以后返回什么错误码？", "超过以后返回什么错误码"),
        ("那净利润呢？", "净利润"),
        ("那么，需要多久？", "需要多久"),
        ("What about 2022?", "2022"),
        ("And the error code?", "the error code"),
        ("創業補貼怎麼申請？", "創業補貼怎麼申請"),
        ("那呢？", "那呢？"),
        ("刚才那个再说一遍", "再说一遍"),
        ("那家公司呢", "公司"),
        ("那个体户呢？", "个体户"),
        ("那条件呢？", "条件"),
    ],
)
def test_strip_reference_keeps_what_is_said(text, rest):
    assert strip_reference(text) == rest


@pytest.mark.parametrize(
    "text", ["Can it apply to a branch?", "Will it lead to a fine?", "Could it spread to other cities?"]
)
def test_it_before_a_verb_is_no_dummy(text):
    assert mention(text) == "it"


@pytest.mark.parametrize(
    "text", ["Will it be possible to pay online?", "Is it necessary to register a branch?"]
)
def test_it_before_a_judgement_is_a_dummy(text):
    assert mention(text) is None


VAGUE = """具体一点 具体点 能具体一点吗 多说一些 再多说点 还有类似的吗 有没有类似的 有类似的政策吗
还有其他补贴吗 怎么办理 怎么办理？ 讲清楚一点 没看懂 不太明白 换个说法 来源是哪里 谁负责 可以网上办理吗
最多能拿多少 多久能批下来"""
VAGUE_EN = """tell me more|Can you tell me more?|how do I apply|How can we register online?
how to apply|who can apply|am I eligible|what do I need|what documents do I need
can you be more specific?|anything similar?|are there similar ones|could you say more|go into detail
how much can I get|I don't understand|explain again|what happens next|in other words?"""
WHOLE = """怎么办理营业执照 创业补贴怎么办理 负责人变更怎么办理 类似案例怎么认定 具体金额以什么为准
网上银行怎么开通 其他应收款是什么 简单随机抽样是什么"""
WHOLE_EN = """how do I apply for a startup subsidy|who can apply for the loan
what do I need to register a company|how much can I get for a patent|what happens if I pay late
tell me more about the talent rent subsidy|how to pay taxes|do I need a permit|What is 一次性创业补贴?"""


@pytest.mark.parametrize("text", [*VAGUE.split(), *VAGUE_EN.replace("\n", "|").split("|")])
def test_a_text_that_names_nothing_leans_on_what_was_said(text):
    assert needs_reference(text, companies_found=False)


@pytest.mark.parametrize("text", [*WHOLE.split(), *WHOLE_EN.replace("\n", "|").split("|")])
def test_the_same_words_with_a_thing_lean_on_nothing(text):
    assert needs_reference(text, companies_found=False) is None


def test_a_long_text_of_small_words_is_read_in_no_time():
    assert needs_reference("怎么" * 2000, companies_found=False) is None


@pytest.mark.parametrize(
    "text",
    [
        *("刚才那个再说一遍", "再说一遍", "重复一下", "请再讲一次好吗？", "重新说一次", "刚才的话再说一遍"),
        *("say that again", "Can you repeat that please?", "again", "Say it again.", "once more"),
        "Come again?",
    ],
)
def test_the_same_once_more_leans_on_what_it_was(text: str) -> None:
    assert asks_again(text)
    assert needs_reference(text, companies_found=False) is not None


@pytest.mark.parametrize(
    "text",
    [
        *("再说说", "再详细说一遍", "重复缴纳社保怎么办", "申请被拒后能再申请一次吗", "再次申请要隔多久"),
        *("what about profit again", "Can I apply again?", "repeat applicants", "how do I repeat the course"),
    ],
)
def test_more_or_another_thing_is_not_the_same_once_more(text: str) -> None:
    assert not asks_again(text)
