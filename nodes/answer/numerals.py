"""What a written number and its unit mean: Chinese and English numerals, magnitudes and units, exactly."""

import re
import unicodedata
from collections.abc import Mapping
from fractions import Fraction

# Canonical unit, factor, spellings. Two spellings of one row state the same thing for the same number.
_UNIT_ROWS: tuple[tuple[str, str, str], ...] = (
    ("CNY", "1", "元人民币|人民币元|人民币|元|块钱|圆|yuan|renminbi|rmb|cny"),
    ("USD", "1", "美元|美金|us dollars|usd|dollars|dollar"),
    ("HKD", "1", "港元|港币|hkd"),
    ("EUR", "1", "欧元|eur|euros|euro"),
    ("JPY", "1", "日元|日圆|jpy|yen"),
    ("GBP", "1", "英镑|gbp|pounds"),
    ("%", "1", "%|percent|per cent|pct"),
    ("%", "1/10", "‰"),
    ("pp", "1", "个百分点|百分点|percentage points|percentage point|pp"),
    ("bp", "1", "个基点|基点|basis points|basis point|bps|bp"),
    ("workday", "1", "个工作日|工作日|working days|working day|business days|business day|workdays|workday"),
    ("workday", "1", "个交易日|交易日|trading days|trading day"),
    ("day", "1", "个自然日|自然日|个日历日|日历日|calendar days|calendar day|天|日|days|day"),
    ("day", "7", "个星期|星期|周|weeks|week"),
    ("month", "1", "个月|months|month"),
    ("month", "12", "个年度|周年|年|years|year"),
    ("month", "3", "个季度|quarters"),
    ("minute", "1", "分钟|minutes|minute|mins|min"),
    ("minute", "60", "个小时|小时|hours|hour|hrs"),
    ("second", "1", "秒钟|秒|seconds"),
    ("age", "1", "周岁|岁|years old|years of age"),
    ("fold", "1", "倍|fold|x"),
    ("times", "1", "times"),
    ("time", "1", "次|回"),
    ("discount", "1", "折"),
    ("person", "1", "人次|人|名|位|people|persons|person|employees|employee|staff|members|member"),
    ("org", "1", "家|户|companies|company|firms|firm|enterprises|enterprise|households|household"),
    ("each", "1", "个|items|item"),
    ("m2", "1", "平方米|平米|m2|sqm|square metres|square meters"),
    ("km2", "1", "平方公里|平方千米|km2|square kilometres|square kilometers"),
    ("m3", "1", "立方米|m3|cubic metres|cubic meters"),
    ("mu", "1", "亩|mu"),
    ("hectare", "1", "公顷|hectares|hectare"),
    ("tonne", "1", "吨|tonnes|tonne|tons|ton"),
    ("kg", "1", "公斤|千克|kg|kilograms|kilogram"),
    ("g", "1", "克|grams"),
    ("km", "1", "公里|千米|km|kilometres|kilometers"),
    ("metre", "1", "米|metres|meters"),
    ("litre", "1", "升|litres|liters"),
    ("kWh", "1", "千瓦时|千瓦小时|度|kwh"),
    ("kW", "1", "千瓦|kw"),
    ("MW", "1", "兆瓦|mw"),
    ("celsius", "1", "摄氏度|°c"),
    ("KB", "1", "kb"),
    ("MB", "1", "mb"),
    ("GB", "1", "gb"),
    ("TB", "1", "tb"),
    ("copy", "1", "份|copies|copy"),
    ("piece", "1", "件|pieces|piece"),
    ("kind", "1", "种|类|kinds|types|categories"),
    ("page", "1", "页|pages|page"),
    *((word, "1", word) for word in "套台辆项条款篇期批层间座栋幢张部门场笔级届点分支只本所处道档轮步号"),
)
UNITS: Mapping[str, tuple[str, Fraction]] = {
    word: (unit, Fraction(factor)) for unit, factor, words in _UNIT_ROWS for word in words.split("|")
}
MONEY = frozenset({"CNY", "USD", "HKD", "EUR", "JPY", "GBP"})
# A plain count may lose or gain its counting word in another language; nothing else may.
COUNTS = frozenset(unit for unit, _, words in _UNIT_ROWS if len(unit) == 1 and unit not in "%g") | frozenset(
    {"person", "org", "each", "copy", "piece", "kind", "page", "time", "times"}
)
CURRENCY_PREFIXES: Mapping[str, str] = {
    "rmb": "CNY", "cny": "CNY", "人民币": "CNY", "¥": "CNY", "us$": "USD", "usd": "USD", "$": "USD",
    "hk$": "HKD", "hkd": "HKD", "€": "EUR", "eur": "EUR", "£": "GBP", "gbp": "GBP",
}  # fmt: skip
# Before these a unit of one character is the beginning of another word.
_NOT_A_UNIT = {"分": "(?!之|别|公司|局|期|类|支|享|析|批|段|工)", "人": "(?!民币|均)", "天": "(?!然|津)",
               "步": "(?!骤)", "部": "(?!分)", "度": "(?!假)", "处": "(?!理|于|罚)", "本": "(?!市|办法|规)",
               "道": "(?!路)", "门": "(?!槛)", "家": "(?!庭)", "名": "(?!称)", "位": "(?!于)", "类": "(?!似)",
               "种": "(?!植)", "点": "(?!击)", "支": "(?!持|付)", "场": "(?!所|地)", "级": "(?!别)",
               "件": "(?!数)", "期": "(?!限|间)"}  # fmt: skip


def _unit_pattern(words: list[str]) -> str:
    ordered = sorted(words, key=len, reverse=True)
    latin = [re.escape(word).replace(r"\ ", r"[ -]") for word in ordered if word[0].isascii() and word != "%"]
    others = [re.escape(word) + _NOT_A_UNIT.get(word, "") for word in ordered if not word[0].isascii()]
    return rf"(?:{'|'.join(others)}|%|(?:{'|'.join(latin)})(?![A-Za-z]))"


UNIT = _unit_pattern(list(UNITS))

_HAN_DIGITS: Mapping[str, int] = {
    **{character: value for value, character in enumerate("零一二三四五六七八九")},
    **{character: value for value, character in enumerate("零壹贰叁肆伍陆柒捌玖")},
    "〇": 0, "○": 0, "两": 2, "俩": 2,
}  # fmt: skip
_HAN_TENS: Mapping[str, int] = {"十": 10, "百": 100, "千": 1000, "拾": 10, "佰": 100, "仟": 1000}
_HAN_GROUPS: Mapping[str, int] = {"亿": 10**8, "万": 10**4}
LONGEST = 24
HAN = "[零〇○一二两三四五六七八九十百千万亿壹贰叁肆伍陆柒捌玖拾佰仟点半]"

MAGNITUDE_ZH = r"(?:[十百千]?万亿|[十百千]?[万亿](?!分之|里)|千(?![米克瓦伏])|百(?!分))"
MAGNITUDE_EN = r"(?:thousand|million|billion|trillion|mn|bn|k)(?![A-Za-z])"
_MAGNITUDES_EN: Mapping[str, int] = {
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "mn": 10**6, "bn": 10**9, "k": 10**3, "m": 10**6,
}  # fmt: skip

_WORDS: Mapping[str, int] = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15,
    "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30,
    "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_WORD = "(?:{})".format(
    "|".join(sorted((*_WORDS, "hundred", "thousand", "million", "billion"), key=len, reverse=True))
)
ENGLISH = rf"\b{_WORD}(?:(?:[ ]and[ ]|[ -]){_WORD})*\b"
SHORT_ENGLISH = rf"\b{_WORD}(?:-{_WORD})?\b"

_TRADITIONAL = str.maketrans(
    "萬億個條號圓項兩歲噸畝貳叄陸點幾數間張門場筆級屆處檔輪戶類種頁層棟臺輛編節",
    "万亿个条号圆项两岁吨亩贰叁陆点几数间张门场笔级届处档轮户类种页层栋台辆编节",
)


def collapsed(text: str) -> str:
    """`text` with long runs of white space shortened, so that no pattern walks them again and again."""
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[^\S\n]{3,}", "  ", text))


def normalised(text: str) -> str:
    """`text` in one form of digits, widths and numerals, without emphasis, circled and hidden characters."""
    text = re.sub("[①-⓿⒈-⒛❶-➓㈠-㈩]", " ", collapsed(text))
    text = re.sub("(?<=\\d)[\u00a0\u2009\u202f](?=\\d{3}(?!\\d))", ",", text)
    text = "".join(character for character in text if unicodedata.category(character) != "Cf")
    # A full-width comma separates; only between full-width digits is it a thousands separator.
    text = re.sub("(?<![０-９])，|，(?![０-９]{3}(?![０-９]))", " ; ", text)
    text = text.replace("²", "2").replace("³", "3").translate(_TRADITIONAL)
    text = unicodedata.normalize("NFKC", text).replace("\\%", "%").replace("−", "-")
    text = re.sub(r"[*`]", "", text)
    return re.sub(r"[^\x00-\x7f]", _ascii_digit, text)


def _ascii_digit(match: re.Match[str]) -> str:
    digit = unicodedata.decimal(match.group(), None)
    return match.group() if digit is None else str(digit)


def han_value(text: str) -> Fraction | None:
    """The value of a Chinese numeral, or None when `text` is none: 一千零五十 is 1050, 三点五 is 3.5.

    Digits in a row are read by place (二〇二三 is 2023). More than `LONGEST` characters are no numeral.
    """
    if not 0 < len(text) <= LONGEST:
        return None
    if text == "半":
        return Fraction(1, 2)
    whole, point, decimals = text.partition("点")
    if point:
        return _with_decimals(han_value(whole), decimals)
    if text and all(character in _HAN_DIGITS for character in text):
        return Fraction(int("".join(str(_HAN_DIGITS[character]) for character in text)))
    return _grouped(text)


def _with_decimals(whole: Fraction | None, decimals: str) -> Fraction | None:
    """Digits, and after them a magnitude that is 万 or 亿 in the end: 三点五万, 三点五千万."""
    digits = decimals.rstrip("十百千万亿")
    magnitude = decimals[len(digits) :]
    is_number = bool(digits) and all(character in _HAN_DIGITS for character in digits)
    if whole is None or not is_number or magnitude[-1:] not in ("", "万", "亿"):
        return None
    places = "".join(str(_HAN_DIGITS[character]) for character in digits)
    return (whole + Fraction(int(places), 10 ** len(places))) * magnitude_value(magnitude)


def _grouped(text: str) -> Fraction | None:
    for group, size in _HAN_GROUPS.items():
        head, found, tail = text.partition(group)
        if found:
            high = han_value(head) if head else None
            low = Fraction(0) if not tail else _grouped_tail(tail)
            return None if high is None or low is None else high * size + low
    return _below_ten_thousand(text)


def _grouped_tail(text: str) -> Fraction | None:
    return _grouped(text.lstrip("零〇")) if text.strip("零〇") else None


def _below_ten_thousand(text: str) -> Fraction | None:
    total, digit, last = 0, -1, 10**4
    for character in text:
        if character in _HAN_DIGITS:
            if digit > 0:
                return None
            digit = _HAN_DIGITS[character]
        elif character in _HAN_TENS and _HAN_TENS[character] < last:
            last = _HAN_TENS[character]
            total += last * (digit if digit > 0 else 1)
            digit = -1
        else:
            return None
    return Fraction(total + max(digit, 0)) if text else None


def magnitude_value(text: str) -> int:
    """1 for none; 万 = 10,000, 百万 = 1,000,000, million = 1,000,000."""
    text = text.lower()
    if text in _MAGNITUDES_EN:
        return _MAGNITUDES_EN[text]
    value = 1
    for character in text:
        value *= {**_HAN_TENS, **_HAN_GROUPS}[character]
    return value


def english_value(text: str) -> Fraction | None:
    """The value of an English number in words, or None: twenty-five = 25, three hundred and five = 305."""
    total, current, seen = 0, 0, False
    for word in re.split(r"[ -]", text.lower()):
        if word == "and":
            continue
        if word in _WORDS:
            if current % 10 or (current % 100 and _WORDS[word] >= 10):
                return None
            current += _WORDS[word]
        elif word == "hundred":
            current = max(current, 1) * 100
        else:
            total, current = total + max(current, 1) * _MAGNITUDES_EN[word], 0
        seen = True
    return Fraction(total + current) if seen else None


def unit_of(word: str | None) -> tuple[str, Fraction]:
    """(canonical unit, factor) of a unit as written; ("", 1) for none."""
    return UNITS[re.sub(r"[ -]", " ", word.lower())] if word else ("", Fraction(1))
