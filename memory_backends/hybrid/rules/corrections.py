"""Corrections: their markers in English and Spanish, and the value that was wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from memory_backends.hybrid.rules.pattern import (
    AMOUNT,
    CLOCK,
    DATE,
    MONTH,
    NUMBER_WORD,
    PROPER,
    SPECIFIC,
    LazyPattern,
    clean_value,
)

_ARTICLE = (
    r"(?:(?:the|on|at|a|an|in|for|to|by|with|from|my|our|his|her|their|that|called"
    r"|el|la|los|las|en|de|a|al|con|para|mi|su|es|era|eran|son|fue|fueron|sean|un|una|unos|unas)\s)*"
)
_PRECISE = rf"(?:{DATE}|{CLOCK}|{AMOUNT}|{NUMBER_WORD}\b|[€$£]?\d[\w€%:./,-]*\w|\d|{PROPER})"
_WORDS = (
    r"[\w-]+(?:\s(?!(?:any|but|and|so|it|now|because|since|when|if|as|for|ya|sino|pero|y|porque|que)\b)[\w-]+)?"
)
_ONE_WORD = r"[\w-]+(?=\s(?:by|in|on|at|to|of|with|from|he|she|they|my)\b)"
_CLAUSE_ENDS = r"(?=\s?(?:[.,;:!?)–—]|any\s?more\b|any\slonger\b|$))"
_STOPS = rf"(?:{_CLAUSE_ENDS}|(?=\s(?:in|on|last|this|after|for|hace|en|desde)\b))"
_WITHIN = r"[^.!?\n]{0,40}?"
_OLD = rf"{_ARTICLE}(?P<value>{_PRECISE})(?!\w)"
_OLD_WORDS = rf"{_ARTICLE}(?P<value>{_PRECISE}|{_WORDS})"
_TO_FORGET = rf"{_ARTICLE}(?P<value>{_PRECISE}|{_ONE_WORD}|{_WORDS})"
_HAVE = r"(?:['’]ve|['’]s|\shave|\shas|\shad)?\s(?:\w+ly\s|just\s|finally\s)?"
_BELIEVED = (
    r"(?:used\sto\sbe|had\sbeen|was|were|I(?:['’]d)?\ssaid|I\stold\syou|I\swrote|I\sput"
    r"|(?:I|we)(?:['’]d|\shad)?\sthought(?:\sit\swas)?|began\sas|started\s(?:out\s)?(?:as|at|on|with)"
    r"|era|eran|fueron|dije|te\s(?:he\s)?(?:dije|dicho)|ponía|pone|empezó|empezaron|creía(?:mos)?(?:\sque)?)"
)
_HOLDS_NOW = (
    r"(?:now|these\sdays|but\s(?:it['’]s|it\sis|they['’]re|is|are|actually|really)|it['’]s"
    r"|ahora|pero\s(?:es|son|ahora)|(?:y\s)?(?:es|son)|desde\s(?:la|hace|esta|este|hoy|ayer))"
)
_MOVED = (
    r"(?:changed?|moved?|switch(?:ed|es|ing)?|went|goes|go|up|down|raised|cut|dropped|pas(?:a|ó|an|aron)|cambi\w+)"
)
_EXCHANGES = r"(?:replac(?:ed|es?|ing)|swap(?:ped|ping)?|traded|exchanged|switched|sustitu\w+|cambi\w+)"
_CALLED_OFF = r"(?:cancell?ed|called\soff|off(?=[.,;!]|$)|scrapped|postponed)"

_CONTRASTED = (
    LazyPattern(
        rf"(?<!\b[Ww]hy)(?:,|\sand|\send)?\snot\s{_OLD}(?!\s(?:yet|only|just))(?!{_WITHIN}\b(?:now|any\s?more)\b)"
    ),
    LazyPattern(rf"(?:,\sy?\s?no|\b[Nn]o\s(?:es|era|eran|son|fue|fueron|se\sllama)|n['’]t\scalled)\s{_OLD}"),
    LazyPattern(
        rf"\b(?i:instead\sof|in\splace\sof|rather\sthan|en\svez\sde|en\slugar\sde)\s(?!(?:that|this|it|them)\b){_OLD_WORDS}"
    ),
)
"""A precise value beside the one that holds ("X, not Y", "no es Y"), or denied with the verb that is said of X."""

RETRACTED = (
    LazyPattern(rf"\b(?i:no\slonger|ya\sno)\s(?:\w+\s){{1,3}}?{_OLD}"),
    LazyPattern(rf"\b(?i:no\slonger|not\sany\s?more|ya\sno(?:\s(?:es|son|está|estamos))?)\s{_OLD_WORDS}"),
    LazyPattern(
        r"(?:^|[,.;:–—]\s|\b(?:so|please|just|and|but|pero|y)\s)(?i:forget|ignore|scratch|never\smind|olvida)"
        rf"\s(?!(?:it|that|what|me|you|about|to|lo)\b){_TO_FORGET}"
    ),
    LazyPattern(rf"(?:n['’]t|\bnot|\bcannot|\bnever)\s{_WITHIN}\b{_OLD}\s(?:any\s?more|any\slonger|now)\b"),
    LazyPattern(rf"\b(?:I|[Ww]e){_HAVE}(?:quit|left)\s(?P<value>{PROPER}){_STOPS}"),
    LazyPattern(
        rf"\b(?:[Ii]|[Ww]e|[Hh]e|[Ss]he|[Tt]hey|[a-z]+|{PROPER}){_HAVE}(?:sold(?!\son\b)|binned|ditched|dropped|scrapped|cancelled|gone\soff|got\srid\sof|gotten\srid\sof|threw\sout|gave\saway"
        rf"|returned|swapped\sout|fallen\sout\swith|broke(?:n)?\sup\swith)\s(?:the\s|my\s|our\s)?(?P<value>{_PRECISE}|{_WORDS}){_STOPS}"
    ),
    LazyPattern(
        rf"\b(?P<value>{PROPER})(?:\s(?:has|have|had|is|was|got)|['’]s)?\s(?:just\s|finally\s|sadly\s)?(?:resigned|retired|quit|left|leaving|stepped\sdown|stepping\sdown"
        r"|signed\soff|moved\s(?:out|away|on)|passed\saway|died|been\sadopted|adopted|se\s(?:ha\sido|fue|jubila|jubiló|marcha|marchó|ha\sjubilado|ha\smarchado))\b"
    ),
    LazyPattern(
        rf"\b(?:[Vv]endí|[Vv]endimos|(?:he|hemos)\svendido|[Dd]ejé|[Dd]ejamos|[Tt]iré|[Cc]ambié)\s{_ARTICLE}(?P<value>{_PRECISE}|{_WORDS}){_STOPS}"
    ),
    LazyPattern(
        r"\b(?:[Tt]he|[Mm]y|[Oo]ur|[Tt]hat)\s(?P<value>[\w’'-]+(?:\s[\w’'-]+){0,2}?)"
        rf"\s(?:is|was|has\sbeen|got|['’]s(?:\sbeen)?)\s(?:now\s)?{_CALLED_OFF}"
    ),
)
"""Patterns of what has stopped being so: "I no longer work at Y", "we don't meet at Y any more", "the Y trip is
off".
"""

_EXCHANGED = (
    LazyPattern(
        rf"\b(?i:{_EXCHANGES})\s(?:the\s|my\s|our\s|el\s|la\s|los\s|las\s)?(?P<value>{_PRECISE}|{_WORDS})"
        r"\s(?:with|by|for|por)\b"
    ),
    LazyPattern(
        rf"\b(?i:{_MOVED})\s(?:\w+\s){{0,2}}?(?:from|de(?:l)?)\s{_ARTICLE}(?P<value>{SPECIFIC}){_WITHIN}\b(?:to|al?)\b"
    ),
    LazyPattern(rf"\b(?i:{_BELIEVED})\s{_ARTICLE}(?P<value>{SPECIFIC}){_WITHIN}[,;]?\s?\b{_HOLDS_NOW}"),
    LazyPattern(rf"(?:,|\sand)\snot\s{_ARTICLE}(?P<value>[\w-]+){_CLAUSE_ENDS}"),
    LazyPattern(rf"(?:\b[Nn]ot)\s{_ARTICLE}(?P<value>[\w-]+(?:\s\w+)?),?\s(?:but|any\s?more)\b"),
    LazyPattern(rf",\s(?:y\s)?no\s{_ARTICLE}(?P<value>[\w-]+){_CLAUSE_ENDS}"),
    LazyPattern(rf"\b[Nn]o\s(?:es\s|era\s)?{_ARTICLE}(?P<value>[\w-]+(?:\s\w+)?),?\ssino\b"),
    LazyPattern(rf"^[Nn]ot\s{_ARTICLE}(?P<value>[\w-]+){_CLAUSE_ENDS}"),
)
"""One exchanged for another ("swapped Y for X", "was Y, now X"); then mere words that a form says are replaced."""

_TAKING_BACK = (*_CONTRASTED, *RETRACTED, *_EXCHANGED)

_NOBODY = LazyPattern(r"\b(?:nobody|no\sone|nothing|none|nadie|nada)\b[^.;]{0,40},\s(?:not|ni|no)\b", re.IGNORECASE)
"""A list of what is meant by nobody or nothing denies, and takes nothing back."""

_NO_VALUE = frozenset(
    "sure yet now really only just always even quite so too that this it much yes no what why the a i we you he she"
    " they one more all any thanks worries bad good well problem idea way wonder doubt"
    " rush need matter nada eso esto así muy tan todo".split()
)
"""Words that a denial may be followed by and that are no value."""


Revision = Literal["none", "changed", "dropped", "corrected"]
"""Effect on earlier statements: nothing, that they hold no longer, that something is given up, or that they
were wrong."""

_WHEN = (
    r"(?:next\s|last\s|the\s|el\s|la\s)?"
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|today|yesterday|week|month|year|hoy|ayer|semana|mes)"
)

_PUTS_RIGHT = LazyPattern(
    r"\b(?:correct(?:ion|ing)|(?:scratch|strike|scrap)\sthat|(?:my|by)\s(?:mistake|bad|fault|error)|oops|whoops|err|sorry|apologies|wrong(?:ly)?|mistaken?"
    r"|mis(?:read|remember|sp[eo]|typ|took|count|heard|quot|stat|calculat)\w*|mixed|confused|muddled|transposed|retract"
    r"|(?:I|we|they)(?:['’]d|['’]ve|\shad|\shave)?\s(?:forgot(?:ten)?|told\syou|gave\syou|said|wrote|put|meant|thought)|disregard"
    r"|(?:ignore|forget)\s(?:the|that|what|my)|(?:checked|counted|measured|looked|weighed)\s(?:again|it\sup|the)|one\s(?:out|off)|turn(?:s|ed)\sout"
    r"|in\s(?:fact|truth|reality)|actual+y|to\sbe\s(?:precise|exact|correct)|rather\sthan|instead\sof|should\s(?:be|have\sbeen|read|say)|make\s(?:it|that)"
    r"|not\s\S+\s(?:but|either)|equivo[cq]\w+|confund[ií]\w*|(?:le[ií]|mir[eé]|puse|apunt[eé]|dije|dij?e?cho)\smal|me\sl[ií]é|corrijo|rectifico|corrección|fe\sde\serratas"
    r"|en\srealidad|quería\sdecir|mejor\sdicho|perdón|perdona|no\sera[n]?|olvida\s(?:lo|la|el)|resulta\sque|(?:he\s)?(?:mirado|contado|medido)\s(?:otra\svez|de\snuevo|bien))\b"
    r"|^(?:no|wait|ah|espera)\b(?:\sno\b)?[,:.—–-]",
    re.IGNORECASE,
)
_CHANGE = LazyPattern(
    rf"\b(?:now|nowadays|these\sdays|henceforth|any\s?more|any\slonger|no\slonger|no\smore|from\s(?:now|here)\son|as\s(?:of|from)|instead|in\sthe\send|after\sall"
    rf"|(?:from|since|desde)\s(?:{_WHEN}|{DATE}|{MONTH})|ahora|ya\sno|al\sfinal|a\spartir\sde|chang(?:ed?|es|ing)|mov(?:ed|es|ing)|switch(?:ed|es|ing)?|sw[ao]pp?(?:ed|ing)?"
    r"|replac(?:ed|es|ing)|becomes?|became|renam(?:ed|es|ing)|push(?:ed|es)|postponed|delayed|resched\w+|slip(?:s|ped)|(?:put|brought|bring|get|got|set|take|took)\s(?:\w+\s){0,4}?(?:forward|back|up|down)"
    r"|extend(?:ed|s)|shortened|cut|drop(?:s|ped)|rais(?:ed|es|ing)|rose|ris(?:es|en)|reduc(?:ed|es)|lower(?:ed|s)|increas(?:ed|es|ing)|f[ae]lls?|fallen|trimmed|shaved|bumped|upped|doubled|halved"
    r"|upgrad(?:ed|ing)|migrat(?:ed|ing)|(?:went|gone|goes|go|is|are|['’]s|['’]re)\s(?:\w+\s){0,2}?(?:up|down|back)|t(?:ook|akes?|aking)\sover|picks\sup|step(?:s|ped)\s(?:down|up|in)|standing\sdown"
    r"|(?:is|are)\snot|left|leav(?:es|ing)|retir(?:ed|es|ing)|resign(?:ed|s)?|quit|sold|depart(?:s|ed)|gone|scaled"
    rf"|(?<!from\s)\w{{2,}}(?:ed|lt|nt|ght)\s(?:[\w'’]+\s){{0,3}}?to\s(?:the\s)?(?:{DATE}|{CLOCK}|{AMOUNT})"
    r"|cambi\w+|(?:se\s|nos\s)mud\w+|mudad\w+|traslad\w+|pas(?:a|ó|an|aron)\sal?|aplaz\w+|retras\w+|adelant\w+|sub(?:e|en|ido|ió|ieron)|baja(?:n|do|ron)?|bajó|vuelven?|vuelto|sustitu\w+|jubil\w+)\b",
    re.IGNORECASE,
)
DROPPED = (
    r"\b(?:call(?:ed|ing)?\s(?:\w+\s){0,3}?off|cancel(?:l?ed|l?ing)?|scrapp(?:ed|ing)|(?:scratch|scrap)\s(?:the|my|our)|shelv(?:ed|ing)|abandon(?:ed|ing)|f[ae]ll(?:en|s)?\sthrough"
    r"|back(?:ed|ing)\sout|pull(?:ed|ing)\sout(?=\sof\sthe|[.,;!]|$)|g(?:ave|iven)\s(?:it\s|that\s)?up|chang(?:ed|ing)\s\w+\sminds?|decided\s(?:against|not\sto)"
    r"|(?:told|tell)\s\w+\sno\b|sa(?:id|y)\sno\sto|turned\s(?:\w+\s){0,3}?down|(?<!n['’]t\s)(?<!nt\s)(?<!^)let(?:ting)?\s(?!me\b)(?:\w+\s){0,3}?(?:go|rest|drop|lapse)|(?:is|are|['’]s)\soff(?=[.,;!]|$)"
    r"|(?:not|n['’]?t)\s[^.;!?]{2,60}?\safter\sall|(?:never\smind|forget)\s(?:about\s)?the|got\srid\sof|ditched|binned"
    r"|me\solvid[oé]|nos\solvidamos|(?:lo|la|los|las)\s(?:he|hemos)\sdejado|dejado\sestar|cancel(?:o|é|amos|ado|aron)|anul\w+|suspend\w+|descart\w+|al\sfinal\sno)\b"
)
"""A plan or a thing that is given up, with nothing in its place."""
_DROPPED = LazyPattern(DROPPED, re.IGNORECASE)

REACH = 2
"""Sentences of a message, before it, within which what one says of earlier statements bears on another."""


def revision_in(sentence: str, before: Sequence[str] = ()) -> Revision:
    """Return what a sentence says of earlier statements, by its own words or those of the sentences before it."""
    own = _revision_by(sentence)
    return "corrected" if own == "none" and "corrected" in map(_revision_by, before) else own


@lru_cache(maxsize=256)
def _revision_by(sentence: str) -> Revision:
    if _PUTS_RIGHT.search(sentence):
        return "corrected"
    if _DROPPED.search(sentence):
        return "dropped"
    return "changed" if _CHANGE.search(sentence) else "none"


def is_correction(sentence: str) -> bool:
    """Return whether the sentence takes back something that was said before."""
    return _revision_by(sentence) != "none" or value_taken_back(sentence) is not None


_BREAKS_OFF = LazyPattern(r"\s(?:on|in|at|to|of|for|with|from|by|into|en|de|a|con|por|para)$", re.IGNORECASE)
"""A stretch of a clause that ends with a preposition names nothing."""


@lru_cache(maxsize=256)
def value_taken_back(sentence: str) -> str | None:
    """Return the value that the sentence says is wrong (``eleven`` of "fourteen, not eleven"), if it names one."""
    if _NOBODY.search(sentence):
        return None
    for pattern in _TAKING_BACK:
        for found in pattern.finditer(sentence):
            value = clean_value(found["value"])
            if value and value.casefold() not in _NO_VALUE and not _BREAKS_OFF.search(value):
                return value
    return None
