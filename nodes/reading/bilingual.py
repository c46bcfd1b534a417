"""What a word of a question is called in the other language: business and policy words, English and Chinese.

So a question finds the documents of the other language too. It stands beside the words themselves and never
takes their place. Each line is one thing: English words and phrases, then Chinese ones, any for any.
"""

import re
from collections.abc import Container, Sequence
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
brand = 品牌
trademark = 商标
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
office = 办公室 场地
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
day, daily = 工作日 日内 每日
week, weekly = 每周 一周 周末
month = 个月 每月 月份
minute = 分钟
time, date = 时间 日期 时限
soon, quickly, fast, promptly = 日内 时限 及时 尽快
within, no later than = 日内 以内 之内 以前
until, before, by the end = 日前 截止 之前
in advance, advance, ahead, beforehand = 提前 事先
notice, notification = 通知 公告
expire, expiry, expired, run out, lapse = 到期 届满 期满 失效
late, overdue, miss the deadline, forget, forgot, forgotten, fail = 逾期 未按期
delay, postpone = 延迟 推迟 延期
night, overnight = 夜间 次日
weekend, public holiday, holiday = 休息日 节假日 周末
frequency, often = 频次 频率 次数
begin, start date, effective date, take effect = 施行 生效 开始
temporary, interim = 临时 暂时
short term = 短期
long term, medium term = 长期 中长期
allowed, allow, permitted, entitled, right = 可以 允许 有权
required, require, mandatory, compulsory, obliged, obligatory, obligation = 应当 必须 需要 义务
forbidden, forbid, prohibited, prohibit, banned, ban = 不得 禁止
risk, consequence, liable, liability, responsible, responsibility = 后果 责任 风险
law, legal, statutory = 法律 依法 法定
legal force, legal effect, legally binding, binding = 效力 有效
suspend, suspended, suspension = 暂停 中止
revoke, withdrawn, cancel, cancellation, terminate, termination = 取消 撤销 终止 解除
compensation, compensate, damage, damages = 赔偿 补偿 赔偿金
sue, lawsuit, court, litigation = 诉讼 维权 起诉
lawyer, attorney, legal fee = 律师 律师费
infringement, infringe, counterfeit, copycat, piracy = 侵权 假冒 维权
dispute, conflict = 争议 纠纷
arbitration, mediation = 仲裁 调解
violation, violate, breach, illegal, offence = 违法 违规 违约
false, fake, forged, cheat = 虚假 虚报 弄虚作假
mistake, error, wrong, incorrect, inaccurate = 错误 不准确 有误
correct, correction, fix, rectify, amend, amendment = 更正 改正 整改 修改
supplement, missing, incomplete = 补正 补充 补报
repay, repayment, pay back, give back, hand back, get back, come back, clawback = 退还 返还 追回 偿还
stop, stopped, halt = 停止 停用
money, funds, sum = 资金 金额
cash = 现金
transfer, remit, remittance = 转账 汇款 转让
currency, foreign currency, foreign exchange = 外币 货币 外汇
dollar, us dollar = 美元
yuan, rmb, renminbi = 人民币
discount, preferential = 优惠 折扣
budget = 预算
profit, net profit, earnings = 利润 净利润
loss, deficit = 损失 亏损
asset = 资产
debt, creditor, insolvency, bankruptcy = 债务 债权 破产
dividend = 分红
invest, investment, investor = 投资 投资人 出资
financing, finance = 融资 财政 金融
stock, equity, stake = 股权 股份
insurance premium, premium = 保费 保险费
insurance policy = 保单
insured, insure, insurer = 投保 参保 保险机构
insurance claim, claim settlement, settle a claim, indemnity = 理赔 赔款
claim, claimed = 申请 申领 报销
receive, collect, obtain, benefit from = 领取 享受 取得
payout, disburse, disbursement, released, paid out = 拨付 发放 兑付
receipt, proof of payment = 凭证 付款凭证
bank statement = 银行流水
bank account = 银行账户 账户
expense, expenditure, spending, bill = 支出 费用 账单
instalment, installment = 分期
prepayment, advance payment, down payment = 预付款
bond, bid bond = 保证金 投标保证金
performance bond = 履约保证金
tax refund, tax rebate, export rebate = 退税 出口退税
value added tax, vat = 增值税
corporate income tax, corporate tax, corporation tax = 企业所得税
personal income tax, individual income tax, income tax = 个人所得税 个税 所得税
stamp duty = 印花税
property tax = 房产税
surcharge = 附加 地方附加
taxpayer = 纳税人
small scale, small scale taxpayer = 小规模 小规模纳税人
tax return, tax declaration, declare = 申报 纳税申报
tax office, tax bureau, tax authority = 税务 税务局
tax payment certificate, tax certificate = 完税凭证 纳税证明
customs, customs duty, tariff, import duty, duty = 海关 关税
customs declaration, customs clearance = 报关 报关单 清关
bonded, bonded zone, free trade zone, pilot zone = 保税 保税区 自贸区
accounting, bookkeeping, accountant = 会计 记账 账簿
audit, auditor, audit report = 审计 审计报告
financial statement, financial report, balance sheet = 财务报表 财务
record, records, archive = 记录 资料 档案
keep, retain, retention, preserve, store = 保存 留存 保留
leave, vacation, day off, time off = 休假 假期 请假
annual leave, paid leave, paid annual leave = 年休假 年假 带薪
maternity leave, maternity, paternity leave = 产假 生育 陪产假
sick leave = 病假
probation, probation period, trial period = 试用期
severance, severance pay = 经济补偿 补偿金
resign, resignation, quit, leave the job = 离职 辞职
sack, dismissal, dismissed, terminate the contract = 解除 辞退 解雇
laid, laid off, job cut = 裁员 裁减
workforce, headcount, number of employees = 职工 职工总数 在职职工 从业人数
colleague, coworker, team member = 同事 员工 成员
team = 团队
manager, management = 管理 负责人
person in charge, owner = 负责人 经营者
earn, income a year, annual salary = 年薪 收入
underpay, underpaid, unpaid wages, wage arrears = 低于最低工资 欠薪 拖欠
overtime pay = 延长工作时间工资 加班费
working hours, working time = 工作时间
labour, labor = 劳动 劳务
labour dispute, labor dispute = 劳动争议
dispatch, agency worker, temporary staff = 劳务派遣 派遣
apprentice, apprenticeship = 学徒
occupation, profession, trade, line of work = 工种 职业 行业
shortage, short supply, in short supply, scarce = 紧缺
professional, specialist, expert = 专家 专业 人才
technician = 技师
worker, workers = 职工 劳动者 工人
wife, husband, spouse, partner = 配偶 夫妻 伴侣
parent, parents = 父母
family, relative = 家庭 亲属
age, aged, years old, age limit = 年龄 周岁
health check, medical check, physical examination, medical exam = 体检 健康证明
hospital, doctor visit = 医院 就医
accident, injury, injured = 事故 伤害 工伤
criminal record = 犯罪记录
resume, experience, work experience = 经历 经验
visa, entry visa = 签证
residence, residence permit, reside = 居留 居住 居留许可
permanent residence, green card = 永久居留 居留证
passport = 护照
nationality, citizen = 国籍 公民
foreign, foreigner = 外国 老外
abroad, overseas, foreign country = 国外 境外 海外 出境
international = 国际
domestic, at home = 境内 国内
asia = 亚洲
country = 国家
translate, translation, translator, interpreter = 翻译 译本
notarised, notarized, notary = 公证
english, chinese, language = 中文 外文 英文 语言
bilingual = 双语
driving licence, driver licence, driving license = 驾驶证 驾照
kindergarten, nursery = 幼儿园
tuition, school fee = 学费
goods, merchandise, product, commodity = 货物 产品 商品
sample = 样品 样例
parcel, package, shipment = 包裹 货运
packaged, packaging, packed, prepackaged, pre packaged = 包装 预包装
air, air freight, by air, aviation = 空运 航空
sea, by sea, ship, vessel, boat = 海运 船舶 水路
port, terminal = 港口 口岸
kilogram, kg, kilo = 公斤 千克 每公斤
tonne, ton, weight = 总质量 重量 吨位
van = 货车 普通货车
refrigerated, refrigeration, cold chain, chilled, frozen = 冷藏 冷链 保鲜
cold store, cold storage = 冷库
overload, overloaded, overweight = 超限 超载
trucking = 货运 运输
fuel, diesel, petrol = 燃油
electric car, electric vehicle, electric van, new energy vehicle = 新能源车辆 新能源 电动
platform, marketplace = 平台
shop, store, retail, online store = 商店 店铺 门店 网店
customer, client, consumer = 客户 消费者 顾客
personal data, personal information, customer data = 个人信息 客户资料 个人隐私
recipient = 接收方 收件人
buyer, purchaser, public buyer = 采购人 买方
sell, seller, selling, sold = 销售 出售 买卖 转让
resell, resale = 转让 上市交易 转售
bought = 购买 购房 购置
borrower = 借款人
guarantor = 担保机构 担保人
manufacturer, manufacturing, manufacture = 制造业 制造
factory, plant, industrial, industry = 工业企业 工业 工厂 产业
production, produce, producer = 生产
machine, machinery, equipment, device = 设备 机械
purchase price, value = 价格 价值
supply chain, raw material = 供应链 原料
build, building, construct, construction, built = 建筑 建设 新建
premises, premise, site, venue, place = 场所 场地 经营场所
area, floor space, square metre, square meter = 面积 平方米
room, guest room, bedroom = 客房 房间
floor, storey, story = 层数 楼层
kitchen = 食品处理区 厨房
gym, fitness centre, fitness center = 健身房
cinema, theatre, theater = 影院
exit, emergency exit, escape route = 安全出口 疏散
fire extinguisher, extinguisher = 灭火器
ramp, wheelchair, barrier free = 坡道 无障碍
screen, display, led, led screen = 电子显示屏 显示屏
landlord, lessor, sublet = 房东 出租 转租
tenant, lessee = 承租 租户
decoration, decorate, fit out = 布展 装修
height, high, tall = 高度
width, wide = 净宽 宽度
distance = 距离
land, land use = 用地 土地
parking, park = 停车
street, road = 道路 临街
hygiene, sanitary, health = 卫生 健康
alcohol, beer, wine, liquor = 酒类 酒水
cafe, bakery, snack, snack bar, milk tea = 餐饮 小吃店 奶茶店
medicine, drug, pharmacy = 药品 药店
authority, bureau, department = 部门 机关 主管部门
official, civil servant, officer, inspector = 工作人员 检查人员
city, municipal, town = 本市 全市 城市 市级
downtown, city centre, city center = 中心城区
district, county = 区县
local, locals, resident, villager = 本地 村民 居民 地方
hand in, turn in, send in, lodge, filed = 提交 报送 申报
announce, announced, inform, notify, tell the authority = 告知 通知 报备 公告
publish, disclose, disclosure, make public, publicity = 公示 公开 公布
list, listed, listing, catalogue, catalog, directory = 名录 目录 名单 入库
grade, graded, class, category, level, tier, rating, rank = 等级 类别 分类 级别
recognise, recognised, recognition, recognize, recognized, accreditation = 认定 认证
evaluate, evaluation, assess, assessment, score, scoring = 评价 评估 评定 得分
diagnosis, diagnose, diagnostic = 诊断
jury, panel, judge = 评审 专家
pitch, presentation, oral defence = 答辩 路演
contest, competition = 大赛 比赛
project = 项目
scheme, programme, program, policy, plan = 政策 计划 方案
help, assist, assistance, help paying = 补助 补贴 帮助 扶持
part, portion, percent = 比例 部分
number, quantity = 数量 人数 个数
count towards, count toward, count, include, included = 计入 包括 计算
exclude, excluded, exception = 除外 不计入 例外
authorise, authorised, authorize, authorized, authorisation, authorization = 授权
sub account, sub user = 子账户 经办
corporate, corporate account, legal person, legal entity = 法人 企业
agent, agency, intermediary = 代理 代办 中介
signature, sign = 签名 签字 签订
proof, evidence = 证明 证据
identity, id card, identification = 身份证明 身份
copy, photocopy = 复印件
business name, company name, name = 名称
business scope, scope of business, line of business = 经营范围
simple, simplified, fast track = 简易 简化
completely, entirely, whole process = 全程 全部
swap, replace, replacement, substitute = 更换 换发 变更
use, used, usage, spend, spent = 使用 用于
new, newly = 新办 新设 新建
same, equal, identical = 同等 相同 同样
joint, jointly, consortium = 联合 统一
organise, organised, organiser, organize, organizer = 组织 组展
booth, stand, pavilion = 展位 展台
travel, trip, business trip = 差旅 出差
hearing = 听证
challenge, contest a decision, dispute a decision = 复核 申诉 异议
contact, hotline, telephone, phone = 联系 电话
message, text message, texted, sms = 短信 消息 信息
suspicious, phishing, impersonate = 可疑 冒充
police = 报警 公安
serious, severe, seriously = 严重
take off, taken off, remove, removed, removal, delist = 移出 移除
job creation, create job, creating job, creating jobs = 带动就业 岗位
micro, micro business, micro enterprise, micro company = 小微企业 小微
mid sized, medium sized, medium = 中型 中小微 中小企业
fresh graduate, recent graduate, new graduate = 毕业生 高校毕业生
guest, visitor, tourist, tourism = 旅游 入住 游客
bed and breakfast = 民宿
organic = 有机
api, interface, api call = 接口 调用
download = 下载
server, cloud = 服务器 上云
browser = 浏览器
digitalise, digitalize, digitise, digitize = 数字化 数字化改造
software = 软件
network, internet = 网络 网站
security measure, data security, cybersecurity = 数据安全 安全措施
data processing, process data = 处理 数据处理
emission = 排放
red = 红色
energy saving, energy efficient, energy efficiency, save energy = 节能
waste, recycling = 废物 回收 余热
clean, cleaner production = 清洁 清洁生产
noise = 噪声
environmental impact = 环境影响
coal = 标准煤
water = 节水 用水
region, regional = 区域 地区
subsidiary, parent company = 子公司 母公司
invoice payment, settle = 付款 结算
city tender, bid, bidder = 投标 采购
public sector, state = 国家 财政
elderly, nursing = 养老 护理
degree required, academic degree, bachelor s degree = 学历 本科学历
employer = 雇主
expert, foreign expert = 外国专家
renew, extend = 续办 续签
new application, again = 重新 再次
paid in, pay in, payment of capital = 缴清 缴足 到位
open a shop, open a store = 开店 网店
data abroad, outbound, send abroad = 传输 出境 国外
give, provide, provided, offer = 提供 给予
return, give back = 退回
move, move out, relocate, leave the city = 搬迁 迁出 迁移 离开
withdraw, withdrawal, take out = 提取 取出
euro = 欧元
at least, no less than = 至少 不少于 不低于
exceed, more than, above, over = 超过 多于 以上
less than, below, under = 低于 不足 未满 以下
other, another, different = 其他 别的 另行
support = 支持
get, receive = 拿到 得到 获得
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
    table = _table()[0]
    return table.get(_known(term, table) or "", ())


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
        if is_whole and is_run and _known(" ".join(piece), table):
            return size
    return 1


def _is_english(word: str) -> bool:
    return word.isascii() and _WORD.search(word) is not None


def singular(word: str) -> str:
    """An English word in the singular, as far as its ending tells; any other as it is."""
    if not word.isascii() or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]


def _known(term: str, table: Container[str]) -> str | None:
    """The spelling of `term` that stands in the table: its plain one, or with its verb as in a dictionary."""
    plain = _plain(term)
    first, blank, rest = plain.partition(" ")
    return next((one for base in _bases(first) if (one := base + blank + rest) in table), None)


def _bases(word: str) -> list[str]:
    """An English word as it is, and what it may be a form of: renting and rented of rent, moved of move."""
    stem = next((word[: -len(end)] for end in ("ing", "ed") if word.endswith(end)), "")
    if not word.isascii() or len(stem) < 3:
        return [word]
    undoubled = [stem[:-1]] if len(stem) > 3 and stem[-1] == stem[-2] else []
    past_of_y = [f"{stem[:-1]}y"] if stem.endswith("i") else []
    return [word, stem, f"{stem}e", *undoubled, *past_of_y]


def _plain(term: str) -> str:
    """The spelling that is looked up: "R&D", "start-ups" and "master's" as r d, start up, master s."""
    return " ".join(singular(word) for word in _WORD.findall(term.casefold()))
