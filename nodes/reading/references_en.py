"""English words that lean on something unsaid: it, that one, what about…, the former, and bare "why?".

Each finder takes a squeezed text in which names are blotted out, and gives where the unclear words stand.
"""

import re

from nodes.reading.antecedents import has_antecedent_en
from nodes.reading.known import Finder, Known, Span

_POLITE = (
    r"(?:(?:ok(?:ay)?|thanks?(?: you)?|great|i see|got it|well|hi|hello|please|oh|hmm|yes|no|sure|right"
    r"|interesting)[,.! ]+)*+"
)
_AND = r"(?:(?:and|but|so|then|also|or),? )"

# --- pronouns ---

_PRONOUN = re.compile(
    r"\b(?P<words>it's|it|its|itself|they|they're|them|their|theirs|themselves|he|him|his|she|her|hers)\b"
)
_JUDGED = (
    r"(?!(?:available|open|applicable|related|similar|due|subject|close|equal|limited|specific|compared|next"
    r"|according)\b)"
)
_DUMMY_IT = re.compile(
    # an "it" that stands for nothing, as before "possible to", "take to", "important that", or in "what time"
    rf"\b(?:(?:is|was|isn't|be) it|(?:would|will|can|could) it be) (?:\w+ )?{_JUDGED}\w+ (?:to|that|if"
    rf"|when|for \w+ to)\b"
    r"|\b(?:does|will|would|did|do) it (?:\w+ly )?(?:take|cost|mean|matter|help|make sense)s? (?:to|for|if"
    r"|that|when|until)\b"
    r"|\bit(?:'s| is| was| would be| will be|'d be) (?:\w+ )?(?:raining|snowing|late|early|true|clear|likely"
    r"|time)\b"
    rf"|\bit(?:'s| is| was| would be| will be) (?:\w+ )?{_JUDGED}\w+ (?:to|that|if|when|for)\b"
    r"|\bit (?:seems|appears|turns out|depends|takes|took|makes sense|comes (?:down )?to)\b"
    r"|\b(?:what time|how late|how far) (?:is|was) it\b|\b(?:make|makes|find|made) it \w+ (?:to|for|that)\b"
)


def _blank_out(text: str, words: re.Pattern[str]) -> str:
    return words.sub(lambda found: "_" * len(found[0]), text)


def _pronoun(text: str, _: Known) -> Span | None:
    hidden = _blank_out(text, _DUMMY_IT)
    for found in _PRONOUN.finditer(hidden):
        if not has_antecedent_en(hidden[: found.start()]):
            return found.span("words")
    return None


# --- this, that, these, those ---

_POINTING = re.compile(
    r"\b(?P<words>(?:this|that|these|those)(?: (?:one|ones|two|three))?)\b(?P<after>(?: [\w'-]+)?)"
)
_HERE_AND_NOW = re.compile(
    r" (?:year|month|week|quarter|morning|afternoon|evening|time|moment|century|decade|assistant|bot|app"
    r"|system|chat|site"
    r"|website)s?$"
)
_POINTS_AFTER = re.compile(
    r"(?:^|\b(?:what|who|why|how|where|when|is|was|are|were|does|did|do|about|of|for|to|like|after|before"
    r"|with|than|from"
    r"|by|on|in|under|explain|describe|mean|means|and|but|so|at|into|if|against|doing|using|without"
    r"|besides))\s*$"
)
_JOINS_AFTER = re.compile(r"\b(?:is|was|so|sure|mean|means|true)\s*$")
_JOINED = re.compile(
    r"^(?: (?:the|a|an|i|we|you|they|he|she|it|are|is|was|were|can|will|have|has|may|must|should|do|does|all"
    r"|any|every))?$"
)
_THOSE_WHO = re.compile(r" (?:who|that|which|with|in|of|from|without|under|over)\b")


def _pointing(text: str, _: Known) -> Span | None:
    """As in "this policy", "that one"; not in "the form that is needed", nor in "this year"."""
    for found in _POINTING.finditer(text):
        if _HERE_AND_NOW.match(found["after"]) or _is_joining(text, found):
            continue
        if not has_antecedent_en(text[: found.start()]):
            return found.span()
    return None


def _is_joining(text: str, found: re.Match[str]) -> bool:
    words, before, after = found["words"], text[: found.start()], text[found.end("words") :]
    if words == "those":
        return _THOSE_WHO.match(after) is not None
    if words != "that" or not after.strip(" ?.!"):
        return False
    if not _POINTS_AFTER.search(before):
        return True
    return _JOINS_AFTER.search(before) is not None and _JOINED.match(found["after"]) is not None


# --- one of some things ---

_THING = r"(?:ones?|option|method|approach|choice|item|point|question|way|plan|step)"
_OTHERS = re.compile(
    r"\b(?P<words>the (?:former|latter)(?= (?:is|was|has|have|does|do|and|or|one|option|cost|need|apply|mean)"
    r"|[?.,!]|$)"
    rf"|the (?:first|second|third|fourth|fifth|last|other|next|previous|same) {_THING}"
    r"|the (?:second|third|fourth|others?|rest)(?=[?.!]*$)"
    r"|(?:the|that) (?:above|aforementioned|previous(?:ly)?|earlier)(?! (?:year|quarter|fiscal|financial"
    r"|than))"
    r"|(?:you|we|i) (?:just )?(?:mentioned|said|talked about|listed|described)|mentioned (?:above|earlier"
    r"|before)"
    r"|any others?(?= \w+\?*$|\?*$)|what others?(?= \w+(?: \w+)?\?*$|\?*$)|is the same true|same (?:for|with"
    r"|thing)"
    r"|do the same|back then|at th(?:e|at) time(?=\?*$)"
    r"|(?<!which )(?<!no )(?<!every )(?<!any )(?<!\d )(?<=\w )one(?=[?.!]*$))"
)
_BESIDES = re.compile(r"\b(?:than|besides|except|apart from|same as)\b")
_THERE = re.compile(
    r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\bbe )(?<!\bhas )(?<!n't )\b(?P<words>there)\b(?!'s"
    r"| to be)"
    r"(?! (?:\w+ly )?(?:is|are|was|were|be|will|has|have|any|a|an|more|should|must|may|can)\b)"
)
_WHICH_IS = re.compile(
    r"^(?P<words>which (?:one )?(?:is|are|was|were|do you|would you|should i)\b(?: (?:the|a))?"
    r"(?: (?:most|more|least|less))? [\w-]+(?: \w+)?)\?*$"
)


def _others(text: str, known: Known) -> Span | None:
    found = _OTHERS.search(text)
    if found is None or known.names_all or _BESIDES.search(text):
        return None
    return found.span("words") if not has_antecedent_en(text[: found.start()]) else None


def _there(text: str, _: Known) -> Span | None:
    found = _THERE.search(text)
    return found.span("words") if found and not has_antecedent_en(text[: found.start()]) else None


def _which_is(text: str, known: Known) -> Span | None:
    found = _WHICH_IS.match(text)
    return found.span("words") if found and not known.anything else None


# --- half a question ---

_WHAT_ABOUT = re.compile(rf"^{_POLITE}(?P<words>{_AND}?(?:what|how) about|what of)\b(?P<rest>.*)$")
_EXPLICIT = re.compile(r"\w\w (?:of|for|in|during|on|from|with|between|to|when|if) \w")
_AND_SO = re.compile(rf"^{_POLITE}(?P<words>and|but|also|then|or|plus)\b,? (?P<rest>.*)$")
_WHOLE = re.compile(
    r"^(?:what|who|whom|whose|which|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would"
    r"|should|may|must"
    r"|has|have|tell|explain|describe|show|list|give|please|i|we|if|the \w+ (?:is|are|has|have))\b"
)
_NOTHING_NAMED = re.compile(
    rf"^{_POLITE}{_AND}?(?P<words>why(?: not| so| is that)?|how(?: so| come| much| many| long| often| far)?"
    rf"|when|where|who"
    r"|what(?: else| next| now| then)?|who else|where else|anything else|any others?|tell me more"
    r"|more(?: please| details?"
    r"| info(?:rmation)?)?|go on|continue|(?:can|could) you (?:please )?(?:elaborate|clarify|explain(?: more"
    r"| further)?)"
    r"|elaborate|explain(?: more| further)?|for example|such as|like what|which ones?|which|be more specific"
    r"|(?:how many|how much|which|what|any) [a-z'-]+|(?:give|show) me (?:an example|examples|more|details)"
    r"|an example"
    r"|can you give (?:me )?(?:an example|examples|more details))[?.! ]*$"
)
_ASK_ME = (
    r"(?:(?:can|could|would|will) (?:you|we|i) (?:please |perhaps )?|please "
    r"|i(?:'d| would) like (?:you )?to )*"
)
_DO = r"(?:do|does|can|could|should|must|may|would|will)"
_SOMEONE = r"(?:i|we|one|you|people|someone|somebody|anyone|anybody)"
# Verbs of procedure; without an object they do not say of what.
_PROCEED = (
    r"(?:appl(?:y|ies)|register|start|begin|proceed|enrol+|file|submit|pay|go|need|qualif(?:y|ies)|call"
    r"|sign up|renew|appeal|claim|get|receive|expect|bring|contact|ask|turn to|talk to|do)"
)
_HOW = r"(?: (?:online|here|now|first|next|again|exactly|myself|ourselves|in person|by post|by mail|at all))*"
_MORE = (
    r"(?:(?:tell|show|give) me more|(?:say|tell|hear|know) (?:a (?:bit|little) )?more"
    r"|be (?:a (?:bit|little) )?(?:more|less) \w+|(?:go|going) into (?:more |greater )?details?"
    r"|give more details?"
    r"|(?:explain|say|repeat) (?:this |that |it )?(?:again|more (?:clearly|simply)"
    r"|in (?:more detail|other words|plain \w+|simpler (?:words|terms)))"
    r"|elaborate(?: more| further)?|put it differently)"
)
_PROCEDURE = (
    r"(?:how|where|when|what|who|whom|why)"
    r"(?: (?:else|much|many|long|soon|often|documents?|forms?|papers?))?"
    rf" (?:{_DO} {_SOMEONE} (?:have to |need to |get to )?|to ){_PROCEED}{_HOW}"
    rf"|who (?:can|may|could|should|has to|does)? ?{_PROCEED}{_HOW}"
    rf"|{_DO} {_SOMEONE} (?:have to |need to |still )?"
    rf"(?:appl(?:y|ies)|register|qualify|proceed|enrol+|sign up|appeal|renew){_HOW}"
    r"|(?:who(?: else)?|am i|are we) (?:is |are )?(?:eligible|entitled|exempt|responsible|in charge)"
    r"|what happens(?: (?:next|then|now|afterwards|after that|otherwise))?"
)
_ALIKE = (
    r"(?:(?:is|are) there |do you have |have you got )?(?:anything|something|any|others?|some|ones)"
    r"(?: (?:other|others|ones?|more))? (?:similar|alike|comparable|like (?:that|this|it))"
    r"|(?:are there )?similar ones"
)
_UNCLEAR = (
    r"(?:sorry,? )?i (?:do not|don't|didn't|did not|can't|cannot) (?:\w+ )?(?:understand|follow|get it)"
    r"|that(?:'s| is) not clear|in other words|explain again|in (?:short|more detail)"
)
_ONLY_MORE = re.compile(rf"^{_POLITE}{_AND}?(?:{_ASK_ME}{_MORE}|{_UNCLEAR})[?.! ]*$")
_NO_OBJECT = re.compile(
    rf"^{_POLITE}{_AND}?(?P<words>{_ASK_ME}{_MORE}|{_PROCEDURE}|{_ALIKE}|{_UNCLEAR})[?.! ]*$"
)
_RELATION = (
    r"(?:costs?|prices?|fees?|symptoms?|causes?|effects?|side effects|authors?|differences?|benefits?"
    r"|advantages?"
    r"|disadvantages?|drawbacks?|requirements?|deadlines?|process(?:es)?|procedures?|steps"
    r"|eligibility(?: criteria)?"
    r"|conditions?|criteria|error codes?|limits?|limitations?|exceptions?|penalt(?:y|ies)|reasons?|purposes?"
    r"|types?|kinds?"
    r"|main (?:points?|features?|themes?|ideas?|goals?|characters?|causes?|differences?)|options?"
    r"|alternatives?|risks?"
    r"|results?|consequences|impacts?|treatments?|origins?|meaning|definition|size|maximum|minimum|amount"
    r"|documents?)"
)
_BARE_RELATION = re.compile(
    rf"^{_POLITE}{_AND}?(?:(?:what|when|where|who|which|how|why|how (?:much|long|big|high|many))(?:'s|'re| is"
    rf"| are| was"
    r"| were)?|are there|is there|tell me(?: about)?|describe|list|do i need|does anyone need)"
    rf" (?P<words>(?:the |some (?:of the )?|any |an? )?(?:\w+ )?{_RELATION})(?: like| for| needed"
    rf"| required)?[?.! ]*$"
)
_TOO = re.compile(
    r"^(?P<words>(?:for|in|on|with|to|at|from|by|the|an?|does|do|is|are|can) .{1,40}?\b(?:too|as well"
    r"|either))\?$"
)
_CORRECTING = re.compile(
    rf"^{_POLITE}(?P<words>i (?:mean|meant|was asking|am asking)|not (?:that|the|this)|no,? i\b)\b"
)
_HALF = re.compile(
    r"^(?P<words>because|unless|although|if) (?!.*(?:,|\b(?:can|do|does|is|are|will|what|how|should|may|must"
    r"|who|when)\b))"
)


def _what_about(text: str, known: Known) -> Span | None:
    """What about 2022? But "what about the fees of a housing loan" says it all."""
    found = _WHAT_ABOUT.match(text)
    if found is None or known.names_a_figure or _EXPLICIT.search(found["rest"]):
        return None
    return found.span("words")


def _and_so(text: str, known: Known) -> Span | None:
    """Starts with "and" and goes on with less than a question."""
    found = _AND_SO.match(text)
    if found is None or known.names_a_figure or _WHOLE.match(found["rest"]):
        return None
    return found.span("words")


def _half(text: str, known: Known) -> Span | None:
    found = _CORRECTING.match(text) or _HALF.match(text)
    return found.span("words") if found and not known.names_a_figure else None


def _nothing_named(text: str, known: Known) -> Span | None:
    """Why? Tell me more. How many people? What are the symptoms? All these ask of something unsaid."""
    found = _NOTHING_NAMED.match(text) or _BARE_RELATION.match(text) or _NO_OBJECT.match(text)
    return found.span("words") if found and not known.anything else None


def asks_for_more_en(text: str) -> bool:
    return _ONLY_MORE.match(text) is not None


def _too(text: str, known: Known) -> Span | None:
    found = _TOO.match(text)
    return found.span("words") if found and not known.anything and not _EXPLICIT_VERB.search(text) else None


_EXPLICIT_VERB = re.compile(
    r"^(?:does|do|is|are|can) (?:\w+ ){1,3}(?:\w+ )(?:\w+ )\w+ (?:too|as well|either)"
)

# The first that finds something gives the mention, so what names the thing most plainly comes first.
FINDERS_EN: tuple[Finder, ...] = (
    _what_about,
    _pointing,
    _pronoun,
    _others,
    _there,
    _which_is,
    _and_so,
    _half,
    _nothing_named,
    _too,
)
