"""Patterns of precise values, in any language: errors, settings, versions, amounts, dates, places, names."""

from __future__ import annotations

from memory_backends.hybrid.rules.pattern import (
    AMOUNT,
    CAP,
    CLOCK,
    DATE,
    MONTH,
    NUMBER_WORD,
    PROPER,
    SPECIFIC,
    Rule,
    patterns,
)

_ACRONYM = r"(?:[A-Z]{1,6}s?|[A-Z](?:&[A-Z])+)(?![\w-]|\s[A-Z])"
_MENTIONED = rf"(?P<value>(?!{_ACRONYM})(?:{PROPER}))(?![\w'’&-]|\s{CAP}|\s?[:{{=]|\s\(\d)"
"""A whole name that is no acronym, no label of what follows and nothing that is defined."""

_FIGURE = (
    r"(?<![\w.,:/€£$-])(?!(?:19|20)\d\d\b)(?:\d{1,3}(?:[.,]\d{3})+|\d+[.,]\d{1,2})(?![\w%:/-]|[.,]\d)"
    r"|\b(?=(?:\w+\s){0,3}?(?:hundred|thousand|\w*cient[oa]s|quinient[oa]s|mil)\b)" + NUMBER_WORD + r"\b"
)
"""A figure with nothing after it that says what it counts; no year."""

_LABELLED = (
    r"(?:^|,\s|\b(?:the|my|our|your|an?|in|on|at|to|so|have|had|got|me|us|is|was|el|la|mi|en|del?|nuestr[oa])\s)(?!(?:in|on|at|by|for|to|than|about|around|only|just|over|under|like|until|step|option|page|chapter|part|section|point|question|number|line|item|level|top|day|week|month|maybe|say|and|or|not|no|said|says|say|was|is|are|were|be|been|had|have|has|got|get|gets|need|needs|did|does|do|made|make|run|runs|ran|see|saw|use|used|took|take|takes|gave|give|paid|pay|cost|costs|want|wants|wrote|read|showed|shows|returned|returns|error|code|status|http|line|year|since|from|until|again|its|only|all|these|those|los|las|son|hay|una|unos|unas|con|que|por|para|como|dijo|dice|tiene|tengo|hace|desde|hasta|entre|casi|año|mes|día)\b)"
    r"(?P<value>[a-zà-ÿ]{3,}\s(?:of\s)?\d{1,5}[A-Z]?)\b(?![.,:/%-]?\d|\s?[%°]|\s[a-z]{3,}s\b)"
)
"""Nouns of numbered things: "plot 43", "corridor 5B", "team of 7"; not the steps and pages of a text."""
_SINCE = r"\b(?:since|desde)\s(?P<value>(?:19|20)\d\d)\b"

RULES: tuple[Rule, ...] = (
    Rule(
        "error message",
        "SomethingError: …, error: …, ECONNREFUSED …",
        "technical",
        patterns(
            r"(?P<value>\b(?:[A-Z]\w*(?:Error|Exception)|(?i:error|fatal|panic))\s?:\s?\S.{3,110}"
            r"|\bE(?:CONN|NO|ACC|PERM|PIPE|TIME|EXIST|ADDR|MFILE|ISDIR|INVAL|AGAIN|BUSY|HOST|NET|RES|BAD)[A-Z]*\b.{0,80}"
            r"|\b[A-Z]\w*(?:Killed|BackOff)\b)",
            r"(?P<value>\b[A-Z]\w+(?:Error|Exception)\b)(?!\s?:)",
        ),
        "error",
        0.88,
        several=True,
        in_questions=True,
    ),
    Rule(
        "setting",
        "KEY=value, key.name = value, the table my_table",
        "technical",
        patterns(
            r"\b(?P<attribute>[A-Z][A-Z0-9_]{2,40}(?==)|[A-Z][A-Z0-9]*_[A-Z0-9_]{1,40})\s?[=:]\s?"
            r"(?P<value>\[[^\]\n]{1,80}\]|[^\s,;\[]{1,80})",
            r"(?<![\w.-])(?<!\b(?i:on)\s)(?<!\b(?:AND|SET)\s)(?<!\b(?i:where)\s)(?!(?:self|this|cls)\.)"
            r"(?P<attribute>[a-z][a-z0-9]{0,30}(?:[_.-][a-z0-9]{1,30}){1,5})\s?=\s?"
            r"(?P<value>\[[^\]\n]{1,60}\]|[^\s,;()\[]{1,60}+)(?!\()",
        ),
        "config.<attribute>",
        0.88,
        in_questions=True,
    ),
    Rule(
        "resource",
        "the branch, table, bucket, port … of this identifier",
        "technical",
        patterns(
            r"\b(?P<attribute>namespace|branch|database|schema|table|index|bucket|queue|topic|claim|column"
            r"|role|cluster|host|package|container|service|image|component|endpoint|slot|rama|tabla|índice|columna|paquete|servicio)"
            r"\s(?:is\s|es\s)?(?P<value>`[^`\n]{2,60}`|[\w@/{}.]*[a-z]\w*[-_./][\w./{}-]*\w)",
            r"\b(?P<attribute>(?i:port|puerto))\s(?:is\s|es\s(?:el\s)?|number\s|now\s)*:?(?P<value>\d{2,5})\b",
        ),
        "<attribute>",
        0.85,
        several=True,
        in_questions=True,
    ),
    Rule(
        "version",
        "name:1.2, Name 1.2, 1.2.3",
        "technical",
        patterns(
            r"(?P<value>\b[a-z][a-z0-9._/-]{1,50}[:@]v?\d+(?:\.\d+)+(?:-[\w.]+)?)",
            r"(?<=[a-z,:(]\s)(?!(?:Section|Chapter|Table|Figure|Step|Part|Page|At|By|From|On)\b)"
            r"(?P<value>[A-Z][\w.+]{1,24}(?:\s(?i:version))?\sv?\d+(?:\.\d+)+(?:-\w+)*)\b(?!\s?(?:%|[ap]m\b|per\scent|seconds|hours|days|km))",
            r"(?<![\w.:@/-])(?P<value>v?\d+\.\d+\.\d+)(?![\w.]*\w)",
        ),
        "version",
        0.86,
        several=True,
        in_questions=True,
    ),
    Rule(
        "identifier",
        "snake_case, camelCase, a/path, a URL, `code`",
        "technical",
        patterns(
            r"(?P<value>\b[a-z][a-z0-9+]{1,14}://[^\s,;)\"'`<>]{4,90}+)(?!<)",
            r"(?<![\w/.@-])(?P<value>(?:@[a-z]\w*|[a-z]\w*-\w[\w-]*)(?:/[\w.-]*\w)+"
            r"|[a-z]\w*_\w+(?:[./-]\w+)*|[a-z]+[A-Z]\w+|(?!Ma?c[A-Z])[A-Z][a-z]+[A-Z]\w+|/\w+(?:/[\w{}]+)+)(?!/)",
            r"(?P<value>`[^`\n]{2,60}`)",
        ),
        None,
        0.85,
    ),
    Rule(
        "quantity",
        "a number with its unit or head noun; alone, a decimal or one of thousands",
        "value",
        patterns(rf"(?P<value>{AMOUNT})", rf"(?P<value>{_FIGURE})", _LABELLED, _SINCE),
        None,
        0.9,
    ),
    Rule(
        "date",
        "a date, a weekday, a time of day; in or until a month",
        "value",
        patterns(
            rf"(?P<value>{DATE}|\b(?:{CLOCK}))",
            r"\b(?:opens?|closes?|starts?|begins?|finish(?:es)?|ends?|leaves?|until|till)\s(?:at\s)?(?P<value>(?:[01]?\d|2[0-3]))(?=[.,;!?]|$)",
            rf"\b(?:in|for|by|until|till|since|from|en|para|desde|hasta)\s(?P<value>(?!May\s[a-z]){MONTH})\b",
        ),
        None,
        0.9,
    ),
    Rule(
        "place",
        "in, at or near X; 14 Some Street",
        "value",
        patterns(
            r"\b(?P<value>\d{1,4}[a-z]?\s(?:[A-Z][\w'’]+\s){1,3}(?:Street|St|Lane|Road|Rd|Avenue|Ave|Drive"
            r"|Close|Way|Court|Place|Terrace|Square|Row))\b",
            r"\b(?P<value>(?:[Cc]alle|[Aa]venida|[Pp]laza|[Pp]aseo)\s(?:de\s(?:la\s|los\s)?)?[A-Z]\w+(?:\s[A-Z]\w+)*)",
        ),
        None,
        0.9,
    ),
    Rule(
        "name mentioned",
        "a proper name in a sentence",
        "value",
        patterns(
            rf"(?:^|(?<=[a-zà-ÿ],\s))(?={CAP}\s{CAP}\b){_MENTIONED}",
            rf"(?<=[a-zà-ÿ]\s){_MENTIONED}",
            rf"(?<=[a-zà-ÿ],\s)(?P<value>{CAP})(?=\.$)",
        ),
        None,
        0.85,
    ),
)

ADVICE: tuple[Rule, ...] = (
    Rule(
        "recommendation",
        "an assistant says: I'd …, I recommend …, try …, with a precise value",
        "advice",
        patterns(
            rf"\b(?i:I(?:['’]d|\swould)|I\s(?:recommend|suggest|propose)|you\s(?:should|could)|try|consider|ask\sfor|choose|go\s(?:for|with)|best|better|why\snot"
            rf"|te\srecomiendo|recomendaría|recomiendo|yo\s\w+ría|prueba|mejor|pide|propón|conviene|podrías)\b[^.!?\n]{{0,120}}?(?P<value>{SPECIFIC})",
        ),
        None,
        0.8,
    ),
    Rule(
        "computation",
        "an assistant says: … is £12, … makes 14, total …: a figure that it worked out",
        "advice",
        patterns(
            rf"(?:=|\b(?i:is|are|makes|make|comes?\sto|totals?|together|in\sall|leaves|saves?|cheaper|dearer|difference|each|about|son|hacen|sale[n]?|suman?|quedan?|en\stotal))"
            rf"\s(?:\w+\s){{0,3}}?(?P<value>{AMOUNT})",
            rf"(?P<value>{AMOUNT})\s(?:in\sall|in\stotal|altogether|en\stotal|cheaper|dearer|each|a\s(?:year|month|week)|al\s(?:año|mes))\b",
        ),
        None,
        0.8,
    ),
)
"""Rules for facts in an assistant's words: what it worked out or recommends."""
