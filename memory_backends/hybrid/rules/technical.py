"""How precise values are written, in whatever language: errors, settings, versions, amounts, dates."""

from __future__ import annotations

from memory_backends.hybrid.rules.pattern import AMOUNT, CAP, CLOCK, DATE, MONEY, PROPER, Rule, pattern

_ERRNO = (
    r"E(?:CONN(?:REFUSED|RESET|ABORTED)|NO(?:ENT|SPC|MEM|TDIR|TEMPTY|TFOUND|BUFS)|ACCES|PERM|PIPE|TIMEDOUT|EXIST"
    r"|ADDR(?:INUSE|NOTAVAIL)|MFILE|ISDIR|INVAL|AGAIN|BUSY|(?:HOST|NET)UNREACH|RESOLVE|BADENGINE|LIFECYCLE)"
)
_ACRONYM = r"(?:[A-Z]{1,6}s?|[A-Z](?:&[A-Z])+)(?![\w-]|\s[A-Z])"
_MENTIONED = rf"(?P<value>(?!{_ACRONYM})(?:{PROPER}))(?![\w'’&-]|\s{CAP}|\s?[:{{=]|\s\(\d)"
"""A whole name that is no acronym, no label of what follows and nothing that is defined."""

RULES: tuple[Rule, ...] = (
    Rule(
        "error message",
        pattern(
            r"(?P<value>\b(?:[A-Z]\w*(?:Error|Exception)|(?i:error|fatal|panic))\s?:\s?\S.{3,110}"
            rf"|\b{_ERRNO}\b.{{0,80}}|\b(?:OOMKilled|CrashLoopBackOff|ImagePullBackOff)\b)"
        ),
        "error",
        0.9,
        0.85,
        several=True,
        in_questions=True,
    ),
    Rule(
        "error message",
        pattern(r"(?P<value>\b[A-Z]\w+(?:Error|Exception)\b)(?!\s?:)"),
        "error",
        0.85,
        0.8,
        several=True,
    ),
    Rule(
        "deadline",
        pattern(
            rf"\b(?i:deadline|due|fecha\slímite|plazo|entrega|signed\soff\sby|has\sto\sbe\s\w+\sby|sign-off)"
            rf"\b[^.!?\n]{{0,40}}?\s(?P<value>{DATE})"
        ),
        "deadline",
        0.9,
        0.95,
        in_questions=True,
    ),
    Rule(
        "budget",
        pattern(rf"\b(?i:budget|presupuesto)\b[^.!?\n]{{0,40}}?\s(?P<value>{MONEY})"),
        "budget",
        0.9,
        0.9,
        in_questions=True,
    ),
    Rule(
        "port",
        pattern(r"\b(?i:port|puerto)\s(?:is\s|es\s(?:el\s)?|number\s|now\s)*:?(?P<value>\d{2,5})\b"),
        "port",
        0.9,
        0.85,
        several=True,
        in_questions=True,
    ),
    Rule(
        "port",
        pattern(r"\b(?i:sits|listens?|listening|runs?|running|put)\son\s(?P<value>\d{4,5})\b"),
        "port",
        0.85,
        0.85,
        several=True,
    ),
    Rule(
        "named",
        pattern(
            r"\b(?P<attribute>namespace|branch|database|schema|table|index|bucket|queue|topic|claim|column"
            r"|role|cluster|host|package"
            r"|container|service|image|component|endpoint|slot|rama|tabla|índice|base\sde\sdatos|columna"
            r"|paquete|servicio)"
            r"\s(?:is\s|es\s)?(?P<value>`[^`\n]{2,60}`|[\w@/{}.]*[a-z]\w*[-_./][\w./{}-]*\w)"
        ),
        "<attribute>",
        0.85,
        0.8,
        several=True,
        in_questions=True,
    ),
    Rule(
        "setting",
        pattern(
            r"\b(?P<attribute>[A-Z][A-Z0-9_]{2,40}(?==)|[A-Z][A-Z0-9]*_[A-Z0-9_]{1,40})\s?[=:]\s?"
            r"(?P<value>\[[^\]\n]{1,80}\]|[^\s,;\[]{1,80})"
        ),
        "config.<attribute>",
        0.9,
        0.85,
        in_questions=True,
    ),
    Rule(
        "setting",
        pattern(
            r"(?<![\w.-])(?<!\b(?i:on)\s)(?<!\b(?:AND|SET)\s)(?<!\b(?i:where)\s)(?!(?:self|this|cls)\.)"
            r"(?P<attribute>[a-z][a-z0-9]{0,30}(?:[_.-][a-z0-9]{1,30}){1,5})\s?=\s?"
            r"(?P<value>\[[^\]\n]{1,60}\]|[^\s,;()\[]{1,60}+)(?!\()"
        ),
        "config.<attribute>",
        0.85,
        0.8,
        in_questions=True,
    ),
    Rule(
        "address",
        pattern(r"(?P<value>\b[a-z][a-z0-9+]{1,14}://[^\s,;)\"'`<>]{4,90}+)(?!<)"),
        "address",
        0.9,
        0.8,
        several=True,
        in_questions=True,
    ),
    Rule(
        "image",
        pattern(r"(?P<value>\b[a-z][a-z0-9._/-]{1,50}[:@]v?\d+(?:\.\d+)+(?:-[\w.]+)?)"),
        "version",
        0.9,
        0.85,
        several=True,
        in_questions=True,
    ),
    Rule(
        "version",
        pattern(
            r"\b(?!(?:Section|Chapter|Table|Figure|Step|Part|Page)\b)"
            r"(?P<value>[A-Z][\w.+]{1,24}(?:\s(?i:version))?\sv?\d+(?:\.\d+)+(?:-\w+)*)\b(?!\s?(?:%|[ap]m\b"
            r"|seconds|hours|days))"
        ),
        "version",
        0.85,
        0.8,
        several=True,
        in_questions=True,
    ),
    Rule("amount", pattern(rf"(?P<value>{AMOUNT})"), None, 0.9, 0.7),
    Rule("version number", pattern(r"(?<![\w.])(?P<value>v?\d+\.\d+\.\d+)(?![\w.]*\w)"), None, 0.9, 0.74),
    Rule(
        "identifier",
        pattern(
            r"(?<![\w/.@-])(?P<value>(?:@[a-z]\w*|[a-z]\w*-\w[\w-]*)(?:/[\w.-]*\w)+"
            r"|[a-z]\w*_\w+(?:[./-]\w+)*|[a-z]+[A-Z]\w+|(?!Ma?c[A-Z])[A-Z][a-z]+[A-Z]\w+|/\w+(?:/[\w{}]+)+)(?!/)"
        ),
        None,
        0.85,
        0.74,
    ),
    Rule("code", pattern(r"(?P<value>`[^`\n]{2,60}`)"), None, 0.85, 0.74),
    Rule(
        "name mentioned",
        pattern(rf"(?:^|(?<=[a-zà-ÿ],\s))(?={CAP}\s{CAP}\b){_MENTIONED}"),
        None,
        0.88,
        0.7,
    ),
    Rule(
        "name mentioned",
        pattern(rf"(?<=[a-zà-ÿ]\s){_MENTIONED}"),
        None,
        0.88,
        0.7,
    ),
    Rule("date", pattern(rf"(?P<value>{DATE}|\b(?:{CLOCK}))"), None, 0.9, 0.7),
)
