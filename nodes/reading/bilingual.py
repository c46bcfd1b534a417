"""What a word of a question is called in the other language: business and policy words, English and Chinese.

So a question finds the documents of the other language too. It stands beside the words themselves and never
takes their place. Each line is one thing: English words and phrases, then Chinese ones, any for any.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+")
_JOINS = ("", "-", "&", "'")
_TERMS = """
start up, startup, new business, entrepreneur, entrepreneurship, founder = 创业 初创 创办
subsidy, subsidised, subsidized, grant, allowance, support, aid, funding, fund = 补贴 补助 资助 扶持
award, reward, bonus, incentive = 奖励 激励
loan, loans, lending, borrow, credit line = 贷款
interest, interest subsidy = 利息 贴息
guarantee, guaranteed, security, collateral = 担保 反担保 保证金
deposit = 保证金 押金
rent, rental, renting, lease = 租金 租房 场租 租赁
house, housing, home, apartment, flat, accommodation = 住房 公寓 租房 购房
buy, buying, purchase, purchasing = 购买 购房 购置
talent, talented person = 人才
young, youth = 青年
graduate, college graduate, university graduate = 毕业生 高校毕业生
master, master degree, master s degree, postgraduate = 硕士
doctor, doctorate, doctoral, phd = 博士
bachelor, bachelor degree, bachelor s degree, undergraduate = 本科
degree, diploma = 学位 学历 毕业证书
student = 学生
school, schooling = 学校 入学 就读
child, children, kid = 子女 孩子 儿童
internship, intern, trainee, traineeship = 见习 实习
training, train, course = 培训
skill, skilled, skilled worker, vocational = 技能 职业技能 技师
certificate, certification, certified = 证书 证明
hire, hiring, hired, recruit, recruitment, employ, employing, employed = 招用 招聘 吸纳 录用 安排 就业
employment, job, work, working = 就业 工作 岗位
unemployed, unemployment, jobless, out of work = 失业
unemployment insurance = 失业保险
lay off, layoff, dismiss, redundancy = 裁员
disabled, disabled person, disability, handicapped = 残疾人 残疾
veteran, ex serviceman = 退役军人
foreign, foreigner, expatriate, overseas = 外国人 外籍 外资 外商 境外 海外
foreign owned, foreign invested, foreign investor = 外资 外商投资 外商
staff, employee, worker, personnel = 职工 员工 人员
employer = 用人单位 单位
wage, salary, pay = 工资 薪资 年薪
minimum wage = 最低工资
hour, hourly = 小时
part time = 非全日制 兼职
overtime = 加班 延长工作时间
monthly = 每月 按月
year, yearly, annual, annually = 每年 年度
quarter, quarterly = 季度
annual report, yearly report = 年度报告 年报
report = 报告
company, firm, enterprise, business, corporation = 企业 公司
small company, small business, small enterprise, sme = 小微企业 中小企业 小型微利企业
close, closing, closure, deregister, deregistration, dissolve, wind up, shut down = 注销 关闭 停业
register, registered, registration, set up, setting up, found, incorporate = 注册 登记 设立
registered capital, capital = 注册资本 资本
shareholder = 股东
legal representative = 法定代表人
articles of association = 章程
licence, license, permit, permission = 许可证 许可 执照
business licence, business license = 营业执照
work permit = 工作许可
food licence, food license, food business licence, food business license, food permit = 食品经营许可
food = 食品 餐饮
restaurant, catering, cafe, canteen = 餐馆 餐饮 饭店
hotel, guesthouse = 旅馆 酒店
homestay, guest house, farm stay = 民宿
open, opening, start of business = 开业 营业 开办
rural, countryside, village = 乡村 农村
farm, farmer, agriculture, agricultural = 农业 农民 种植
tea = 茶 茶叶 茶产业
tea garden, tea plantation = 茶园
brand, trademark = 品牌 商标
fire, fire safety, fire protection = 消防
safety = 安全
inspection, inspect, inspected, check, checked, audit = 检查 检验 检测 核查 审验
advertisement, advertising, ad, billboard, sign, signboard = 广告 招牌
outdoor = 户外
road transport, road freight, freight transport, freight, haulage, cargo = 道路货物运输 货物运输 货运
truck, lorry = 货车 车辆
vehicle, car = 车辆
driver = 驾驶员
special equipment = 特种设备
lift, elevator = 电梯
boiler = 锅炉
crane = 起重机械
fine, fined, penalty, penalties, punish, punishment = 罚款 处罚
fee, charge, cost, price = 费用 收费
free, free of charge = 免费 不收取 免收
tax, taxes, taxation = 税费 税收 税款
reduction, reduce, reduced, relief, exemption, exempt, waive, waived, deduction = 减免 免征 免缴 减按 扣除
income = 收入 所得
sale, sales, turnover, revenue = 销售 销售额 营业收入
invoice = 发票
contract, agreement = 合同 协议
labour contract, labor contract, employment contract = 劳动合同
social insurance, social security = 社会保险 社保
insurance = 保险
pension, retirement, retire = 养老 退休
medical, health care = 医疗 医保
housing fund, provident fund = 公积金
research, r d, research and development = 研发 研究
high tech, high technology, high tech enterprise, high tech company = 高新技术企业 高新技术
technology, technological = 技术 科技
innovation, innovative = 创新
patent = 专利
intellectual property = 知识产权
digital, digital transformation, digitalisation, digitalization, digital upgrade = 数字化 数字化改造
upgrade, renovation, transformation, refit = 改造 升级
green = 绿色 绿色化
carbon = 碳
solar, photovoltaic = 光伏
rooftop, roof = 屋顶
energy, electricity, electric = 能源 电力
computing, computing power = 算力
artificial intelligence, ai = 人工智能
voucher = 券 创新券
data = 数据
open data, public data = 公共数据 数据开放
outbound, cross border transfer, data transfer abroad = 出境
cross border = 跨境
e commerce, ecommerce, online shop = 电商 电子商务
warehouse = 仓 仓库
overseas warehouse = 海外仓
export, exporter, foreign trade = 出口 外贸
import, importer = 进口
trade fair, fair, exhibition, trade show, expo = 展会 参展 展览
logistics, shipping, transport, transportation = 物流 运输
small, little = 小型 小微
headquarter, head office = 总部
regional headquarter = 地区总部
branch = 分支机构 分公司
office = 办公室 办公 场地
procurement, tender, bidding = 采购 投标
government procurement, public procurement = 政府采购
government = 政府 政务
supplier, vendor = 供应商
payment, paid = 付款 支付 拨付
refund, refunded, return, reimburse, reimbursement = 返还 退还 退回
credit, credit record, creditworthiness = 信用
credit repair, repair = 信用修复 修复
blacklist, list of abnormal operation = 经营异常名录 失信名单
appeal, review, reconsideration, objection = 复核 申诉 复议
complaint, complain = 投诉 举报
refuse, refused, reject, rejected, rejection, decline, declined = 不予 驳回 退回
decision, decide = 决定
application, apply, applying, applicant, file, filing, submit = 申请 申报 提交 备案
application form = 申请表 申请书
document, paper, material = 材料 文件
size, large, big, oversized = 大小 过大 太大
attachment, upload, file size = 附件 上传
portal, website = 门户
account = 账户
password = 密码
seal, stamp = 印章
electronic, online = 电子 线上 网办
deadline, closing date, due date = 截止 期限
validity, valid, valid period = 有效期 有效
renew, renewal, extend, extension = 延续 延期 续期
change, changing, alter, update, updating = 变更 更换
address = 住所 地址
move, relocate, relocation = 迁移 迁入
approve, approval = 审批 批准 许可
process, procedure, step = 流程 程序 办理
condition, requirement, eligible, eligibility = 条件 资格
appointment, book = 预约
window, counter, desk = 窗口
one time, one off = 一次性
first time, first = 首次 第一次
maximum, upper limit, cap = 最高 上限 不超过
minimum, lower limit = 最低 不低于
limit = 限额 限制 上限
amount, quota = 金额 额度
share, percentage, proportion, ratio, rate = 比例
working day, workday = 工作日
incubator = 孵化基地 孵化
public = 公办 公共
bank = 银行
fraud, scam = 诈骗
environment, environmental, pollution = 环境 生态 污染
"""


@lru_cache(maxsize=1)
def _table() -> tuple[dict[str, tuple[str, ...]], int]:
    """Each word or phrase with what it is called in the other language; the words of the longest phrase."""
    others: dict[str, dict[str, None]] = {}
    for line in _TERMS.strip().splitlines():
        english, chinese = line.split("=")
        phrases, words = [_plain(phrase) for phrase in english.split(",")], chinese.split()
        for own, other in ((phrases, words), (words, phrases)):
            for term in own:
                others.setdefault(term, {}).update(dict.fromkeys(other))
    longest = max(len(term.split()) for term in others)
    return {term: tuple(of_term) for term, of_term in others.items()}, longest


def called(term: str) -> Sequence[str]:
    """The words and phrases of the other language for a folded `term`, in the table's order; () for none."""
    return _table()[0].get(_plain(term), ())


def with_phrases(words: Sequence[str]) -> list[str]:
    """English words side by side that make up a known phrase become one, the longest first.

    Blanks between them, and what joins words (start-up, R&D), may stand there as words of their own.
    """
    joined: list[str] = []
    at = 0
    while at < len(words):
        size = _size_of_phrase(words, at)
        joined.append(" ".join(word for word in words[at : at + size] if word))
        at += size
    return joined


def _size_of_phrase(words: Sequence[str], at: int) -> int:
    """How many of `words` from `at` on make up a known phrase; 1 where none do."""
    table, longest = _table()
    for size in range(min(2 * longest, len(words) - at), 1, -1):
        piece = words[at : at + size]
        is_whole = _is_english(piece[0]) and _is_english(piece[-1])
        is_run = all(_is_english(word) or word.strip() in _JOINS for word in piece)
        if is_whole and is_run and _plain(" ".join(piece)) in table:
            return size
    return 1


def _is_english(word: str) -> bool:
    return word.isascii() and _WORD.search(word) is not None


def singular(word: str) -> str:
    """An English word in the singular, as far as its ending tells; any other as it is."""
    if not word.isascii() or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]


def _plain(term: str) -> str:
    """The spelling that is looked up: "R&D", "start-ups" and "master's" as r d, start up, master s."""
    return " ".join(singular(word) for word in _WORD.findall(term.casefold()))
