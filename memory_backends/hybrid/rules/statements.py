"""Rules for standing instructions, corrections, events and plans."""

from __future__ import annotations

from memory_backends.hybrid.rules.corrections import DROPPED, RETRACTED
from memory_backends.hybrid.rules.pattern import (
    DATE,
    MONTH,
    NUMBER_WORD,
    PROPER,
    QUOTED,
    SPECIFIC,
    VALUE,
    LazyPattern,
    Rule,
    patterns,
)

_ACT = (
    r"(?:call|use|tell|give(?!\sup\b)|answer|reply|respond|write|draft|send|suggest|mention|say|put|add|assume|round"
    r"|include|ask|address|explain|show|translate|start(?!\swith\b)|end|begin|touch|repeat|remind|quote|list|format|spell|check"
    r"|offer|recommend|speak|talk|leave|change|correct|apologi[sz]e|summari[sz]e|abbreviate|convert|sign|refer|book"
    r"|order|schedule|delete|push|commit|run|deploy|make|keep|name|number|guess|invent|read|finish|stick|do)"
)
_ACTO = (
    r"(?:me|nos|lo|la|les?)\s(?:l[oa]s?\s)?(?:llames|hables|digas|pongas|des|mandes|trates|contestes|respondas|escribas|cuentes|hagas|metas"
    r"|preguntes|recuerdes|corrijas|traduzcas|uses|recomiendes|expliques)|(?:uses|pongas|escribas|digas|metas|redondees"
    r"|cambies|inventes|toques|añadas|contestes|respondas|empieces|termines|mandes|preguntes)"
)
_OF_A_REPLY = (
    r"(?:bullets?|bullet\spoints?|emojis?|lists?|tables?|headings?|jargon|abbreviations?|acronyms?|exclamation\smarks?|capitals|italics|bold|markdown"
    r"|brackets|footnotes?|apologies|disclaimers?|pleasantries|greetings?|compliments?|flattery|jokes?|puns?|metaphors?|idioms?|adjectives?|adverbs?"
    r"|questions|suggestions|alternatives|summar(?:y|ies)|recaps?|explanations?|preambles?|introductions?|caveats?|warnings?|spoilers?|guess(?:es|ing)"
    r"|placeholders?|comments?|translations?|names?|surnames?|nicknames?|decimals?|fractions?|percentages?|links?|urls?|quotes?|quotations?|code|dashes"
    r"|words?|phrases?|sentences?|paragraphs?|viñetas|listas|tablas|siglas|anglicismos|diminutivos|exclamaciones|disculpas|bromas|preguntas|resúmenes"
    r"|rodeos|mayúsculas|negritas|adornos|tecnicismos|abreviaturas|nombres)"
)
"""Nouns for parts of a reply. "No emojis" is an instruction; "no dependants" is a fact."""
_BEGIN = (
    r"(?:^|[;:–—]\s|[,.!]\s(?:and\s)?)"
    r"(?:and\s|so\s|but\s|also\s|please,?\s|pls\s|kindly\s|can\syou\s|could\syou\s(?:please\s)?)*"
)
"""Pattern of the beginning of an imperative."""
_WORDING = (
    r"(?:write|give|show|keep|speak|talk|list|quote|refer|format|spell|phrase"
    r"|present|explain|answer|reply|respond|round|limit|state|report)"
)
_OF_WORDING = (
    r"(?:names?|units?|spelling|formats?|tone|style|wording|words|figures|notation|language|english|spanish|dates?|abbreviations|emojis?|bullets?|terms"
    r"|initials|metric|imperial|celsius|fahrenheit|capitals|lower\scase|upper\scase|snake_case|camelCase|quotes|sentences|paragraphs|markdown|tables?)"
)
_PRODUCE = (
    r"(?:give|write|send|show|make|draft|suggest|quote|list|propose|mention|answer|reply"
    r"|explain|translate|code|cite|name|recommend|use|speak|talk|plan|calculate|summari[sz]e)"
)
_ANYTHING = r"[^\n]{3,140}"

_SOMEBODY = r"\b(?:I(?!s\b)|we|he|she|they|my\s\w+|our\s\w+|(?-i:[A-Z])\w+)"

RETRACTION = "retraction"
"""The rule whose value is the one that no longer holds."""

EVENT = "event"
"""The rule for what happened, which no later change undoes."""

CLAIMS = frozenset({EVENT, "habit", "plan", "statement"})
"""Rules for any verb, whose statements may say nothing that matters."""

RULES: tuple[Rule, ...] = (
    Rule(
        "standing instruction",
        "from now on …, whenever I …, always or never + verb",
        "instruction",
        patterns(
            rf"(?P<value>(?i:\b(?:from\snow\son|from\shere\son|going\sforward,|in\s(?:the\s)?future\s?,|only\sever|(?:whenever|every\stime|each\stime|any\stime|"
            rf"if\syou\sever|if\sI\sever)\s(?:(?:I|you|we)\s)?(?:say|ask|mention|type|write|send|draft|offer|suggest|book|quote|tell|give|paste|answer|reply|plan|schedule)\b"
            rf"|please\sremember\sto\b)){_ANYTHING})",
            rf"(?P<value>(?i:(?:^|[,;:–—]\s|\b(?:please|pls)\s)(?:always|never)\s(?:ever\s)?{_ACT}\b|^(?:always|never)\s(?!mind|again|been|had|has|seen|heard|thought|knew|an?\b|did|happened|in\b|was|have|give|fails|works|got|mine)){_ANYTHING})",
            rf"(?P<value>(?i:^(?:please\s)?(?:remember\sthat|note\sthat)\s(?:I|my|we|our)\b){_ANYTHING})",
            rf"(?P<value>(?i:\b(?:a\spartir\sde\s(?:ahora|hoy)|de\s(?:ahora|hoy|aquí)\sen\sadelante|(?:cada\svez|siempre)\sque\s(?:te|me|diga"
            rf"|escriba|mencione|pida|pregunte|mande)|cuando\ste\s\w+|recuerda\sque|nunca\s(?:{_ACTO}))\b){_ANYTHING})",
            rf"(?P<value>(?i:(?:^|[,;:]\s)siempre\s(?:en|con|sin|de|que|me|responde|contesta|usa|pon)\b){_ANYTHING})",
        ),
        "<who>.instructions",
        0.85,
        several=True,
        in_questions=True,
    ),
    Rule(
        "prohibition",
        "don't, stop or avoid + verb; no + plural; without",
        "instruction",
        patterns(
            rf"(?P<value>(?i:(?:^|[,;:–—(]\s?|\b(?:please|pls|and|but|so|just)\s)(?:do\snot|don['’]?t)\s(?:ever\s)?{_ACT}\b){_ANYTHING})",
            r"(?P<value>(?i:(?:^|[,;:–—]\s|\bplease\s)(?:stop|avoid|skip|leave\sout|drop)\s(?:(?:the|all|any)\s)?(?:\w+ing|\w+s)\b)[^\n]{0,140})",
            rf"(?P<value>(?i:^(?:and\s|also\s|please,?\s)?no\s(?:more\s|(?:[a-z]+\s)?(?={_OF_A_REPLY}\b|[a-z]+(?:\s[a-z]+)?s,?\splease\b))[a-z]+)(?![^.\n]*\bfor\s(?:me|us)\b)[^\n?]{{0,140}})",
            rf"(?P<value>(?i:\bno\s(?:{_ACTO})\b(?![,.!?]))[^\n]{{0,140}})",
            r"(?P<value>(?i:\bnada\sde\s(?!eso\b|nada\b|esto\b|particular\b)\w+s\b)[^\n]{0,140})",
        ),
        "<who>.instructions",
        0.8,
        several=True,
        in_questions=True,
    ),
    Rule(
        "manner",
        "answer me …, keep it …, address me as …, I want you to …",
        "instruction",
        patterns(
            r"(?P<value>(?i:^(?:and\s|so\s|but\s|please,?\s)?(?:answer|reply|respond|address|speak|talk)\s(?:to\s)?(?:me|us)\b|^(?:and\s|please,?\s)?"
            r"(?:answer|reply|respond)\s(?:in|with|without|only|briefly)\b"
            r"|\b(?:keep|make)\s(?:it|them|(?:your|all|the)\s\w+)\s(?:short|brief|under|simple|plain|formal|informal|concise|below|to\s(?:one|two|three|\d))\b"
            r"|\b(?:call|address)\sme\s(?!(?:back|later|when|at|on|if|tomorrow|tonight)\b))[^\n]{3,140})",
            r"(?P<value>(?i:\bI(?:['’]d)?\s(?:want|need|like|prefer|rather)\s(?:that\s)?you\s(?:to\s)?(?:always|never|not|only|answer|reply|write|use|call|give|put"
            r"|show)\b|\bI\sdon['’]t\swant\s(?:you\sto|any|to\ssee|to\sbe\scalled)\b)[^\n]{3,140})",
            rf"(?P<value>(?i:{_BEGIN}{_WORDING}\s(?:me\s|us\s|to\s(?:me|us)\s)?+(?!(?:an?|the|this|that|one|(?:in|as)\s(?:that|it|front|there|well|soon|if|{MONTH}))\b)"
            r"(?:(?:[\w-]+\s){0,3}?(?:in|as|without|under|below|over|rather\sthan|instead\sof|not|never)|plainly|(?!really|only)\w+ly)\b)[^\n]{2,140})",
            rf"(?P<value>(?i:{_BEGIN}use\s(?:[\w-]+\s){{0,3}}?{_OF_WORDING}\b)[^\n]{{0,140}})",
            r"(?P<value>(?i:(?:^|[,;:–—]\s|\bplease\s)be\s(?:\w+ly\s)?(?:blunt|brief|honest|concise|direct|frank|formal|informal|precise|specific|strict|short|critical|polite"
            r"|succinct|terse|gentle|patient|careful\swith)\b)[^\n]{0,140})",
            LazyPattern(
                rf"(?P<value>(?i:(?:[^.!?\n]{{0,80}}\b)?(?:when(?:ever)?|if|every\stime|each\stime|any\stime|(?:in|for)\s(?:anything|everything)|(?:any|every|each|all)\s(?:[\w-]+\s){{1,2}}?)\s?you\s(?:ever\s)?{_PRODUCE}\b)[^\n]{{0,140}})",
                needs=r"(?i:you\s)",
            ),
            r"(?P<value>(?i:\b(?:I(?:['’]d|\swould)\s(?:be\s\w+|appreciate\sit|prefer\sit|like\sit)\sif\syou|it\s(?:helps|is\seasier|works\sbetter)\s(?:me\s|for\sme\s)?(?:if|when)\syou"
            r"|I(?:['’]d|\swould)\s(?:ask|rather|sooner|prefer|like|want|need)\s(?:that\s)?you(?!\sto\s(?:help|make|write|draft|give|find|look|check|show|tell)\b)|(?:le|te)\s(?:agradec\w+|ruego|rogaría|pediría)\sque)\b)[^\n]{3,140})",
            rf"(?P<value>(?i:{_BEGIN}(?:spare\sme|keep\s(?:[\w'’-]+\s){{1,5}}?out\sof|cut\s(?:out\s)?the|drop\sthe|lose\sthe|hold\sthe|go\seasy\son|leave\sout|enough\s(?:with|of)|no\sneed\s(?:to|for)"
            r"|stick\s(?:to|with)|make\ssure\s(?:to|you|that\syou)|be\ssure\sto|remember\sto|try\s(?:not\s)?to|assume|treat|(?:talk|speak)(?!\s(?:soon|later|tomorrow)\b)|limit|refer\sto)\b)[^\n]{3,140})",
            rf"(?P<value>(?i:{_BEGIN}(?:only|just)\s(?:{_ACT}|the\s(?:facts|answer|code|numbers?|result)|facts|lines|code|numbers?|answers)\b)[^\n]{{0,140}})",
            rf"(?P<value>(?i:^(?:and\s|so\s|but\s|also\s|oh,?\s)*(?:when(?:ever)?|if|every\stime|each\stime|any\stime|anytime)\s[^,.!?\n]{{3,80}},?\s(?:please\s|just\s|then\s|always\s|never\s)*(?:do\snot|don['’]?t|{_ACT})\b)[^\n]{{2,140}})",
            r"(?P<value>(?i:\byou\s(?:should|must|can|have\sto|need\sto)\s(?:always|never|only|just|not)\b)[^\n]{3,140})",
            LazyPattern(
                r"(?P<value>(?i:[^.!?\n]{3,60}\s(?:is|are)\s(?:enough|plenty|fine|too\s(?:long|much|many|short))\sfor\sme\b)[^\n]{0,60})",
                needs=r"(?i:\sfor\sme\b)",
            ),
            rf"(?P<value>(?i:^(?!{_ACT}\b|(?:can|could|would|will|help|yes|no|some|one|two|three|more|another|thanks?)\b)(?:[\w'’-]+\s){{1,6}}(?:only|everywhere|throughout|each\stime|always|every\stime)?,?\splease(?=[.!]?$)))",
            LazyPattern(
                r"(?P<value>(?i:(?:[^.!?\n]{0,60}\b)?cuando\sme\s(?:des|hables|escribas|mandes|digas|expliques|contestes|respondas|pongas|hagas|pases|propongas|recomiendes|sugieras)\b)[^\n]{3,140})",
                needs=r"(?i:cuando\sme\s)",
            ),
            r"(?P<value>(?i:\b(?:te\spido\sque|procura|evita|usa\s(?:siempre|solo|sólo)|ponl[oa]s?\s(?:siempre|en|con)|prefiero\sque\sme)\b)[^\n]{3,140})",
            r"(?i:\b(?:rule|norma|regla)\b[^:.!?\n]{0,50}:\s)(?P<value>[^\n]{8,140})",
            r"(?P<value>(?i:\b(?:ll[aá]mame|tr[aá]tame|h[aá]blame|cont[eé]stame|resp[oó]ndeme|escr[ií]beme|d[ií]melas?|d[ií]melos?"
            r"|p[oó]nmelas?|p[oó]nmelos?|dame\slas)\s(?:siempre|de|en|con|sin|solo|sólo|las|los|como)\b"
            r"|\bresponde\s(?:siempre|en|con|sin)\b|\bquiero\sque\sme\s\w+|\bsi\sme\sllamas\b|\bde\s(?:tú|usted)\spor\sfavor)[^\n]{0,140})",
        ),
        "<who>.instructions",
        0.8,
        several=True,
        in_questions=True,
    ),
    Rule(
        "attribute",
        "my X is Y, the X is now Y: an attribute with a precise value",
        "self",
        patterns(
            rf"\b(?i:my|our|the)\s(?P<attribute>(?!(?i:favou?rite)\b)[a-z][\w-]+(?:\s[a-z][\w-]+)?)\s(?:is|was|are|will\sbe|comes?\sto|costs|moved\sto|leaves\son"
            rf"|starts\s(?:on|at)|=)\s(?:now\s|only\s|about\s|around\s|still\s|set\sto\s|to\sbe\s|actually\s|called\s|named\s|on\s|in\s|at\s|the\s)*"
            rf"(?P<value>(?!\w+(?:ish|ese|[ci]an)\b){VALUE})",
            rf"\b(?i:mi|el|la|nuestr[oa])\s(?P<attribute>[a-záéíóúñ]+(?:\sde\s[a-záéíóúñ]+)?)\s(?:es|era|será|son|sale|empieza|pasa\sa(?:l)?|cuesta)\s"
            rf"(?:ahora\s|de\s|el\s|la\s|los\s|unos\s|en\s)*(?P<value>{VALUE})",
        ),
        "<attribute>",
        0.8,
    ),
    Rule(
        "deadline",
        "deadline, due, has to be … by: the date that something is bound to",
        "self",
        patterns(
            r"\b(?i:deadline|due|(?:has|have)\sto\sbe\s[\w\s]{2,20}\sby|have\suntil|fecha\slímite|plazo)\b"
            rf"[^.!?\n]{{0,40}}?\s(?P<value>{DATE})",
        ),
        "deadline",
        0.9,
        in_questions=True,
    ),
    Rule(
        "called",
        "a thing called or named X",
        "relation",
        patterns(
            rf"(?<![\w-])(?P<attribute>(?!(?:be|is|was|are|been|being|not|get|got|also|it|he|she|they|you)\s)[a-z][\w-]{{1,40}})\s(?:(?:is|was|are)\s)?(?:to\sbe\s|now\s|actually\s)?(?:called|named|titled|entitled)\s"
            rf"(?P<value>{QUOTED}|{PROPER}|(?!(?:in|on|at|by|for|to|the|an?|it|that|this|me|him|her|off|out|back|you)\b)[a-z][\w@./-]+)",
            rf"\b(?P<attribute>[a-záéíóúñ]+)(?:,?\sque)?\s(?<!\bno\s)(?:se\sllaman?|llamad[oa]s?|titulad[oa]s?)\s(?P<value>{QUOTED}|{PROPER})",
            rf"\b(?i:my|our)\s(?P<attribute>[a-z]+),\s(?P<value>{PROPER})(?=,)",
        ),
        "<attribute>",
        0.8,
        several=True,
    ),
    Rule(
        "correction",
        "X, not Y; not X but Y; make that X; I meant X; it's X now",
        "correction",
        patterns(
            rf"(?P<value>{SPECIFIC}|[\w-]+(?:\s[\w-]+)?),?\s(?:and\snot|not|y\sno|no|in\sthe\send\snot)\s(?:the\s|on\s|at\s|el\s|la\s|a\s)*{SPECIFIC}",
            r"\b[Nn]ot?\s[^.,;!?\n]{2,40},?\s(?:but|sino)\s(?P<value>[^.,;!?\n]{2,60})",
            rf"\b(?:[Nn]ot|[Nn]o\s(?:es|era|eran|son|fue|fueron))\s(?:the\s|el\s|la\s)?{SPECIFIC},?\s[^.!?\n]{{0,60}}?"
            rf"\b(?:son|es|era|fueron|eran|it['’]s|it\sis|they['’]re)\s(?P<value>{SPECIFIC})",
            r"^(?:(?:It|They)\s(?:was|were|is|are)|It['’]s|[Ee]s|[Ee]ra|[Ff]ue|[Ss]on)\s(?:an?\s|the\s|el\s|la\s|una?\s)?"
            r"(?P<value>[\w-]+)\b",
            r"\b(?i:make\sthat|I\smeant(?:\sto\ssay)?|I\sshould\shave\ssaid|scratch\sthat,?|correction:|quería\sdecir|mejor\sdicho,?|digo,)\s(?P<value>[^.,;!?\n]{2,60})",
            rf"\b(?i:it['’]s|that['’]s|is|are|it\sis|now)\s(?:now\s|back\sto\s)(?P<value>{SPECIFIC}|(?!that\b|the\b|it\b|I\b|we\b|you\b|time\b)[a-z]+(?:\s[a-z]+)?)",
            rf"\b(?i:turn(?:s|ed)\sout(?:\s(?:to\sbe|it\swas|it['’]s|that))?|resulta\sque|chang(?:ed|ing)\s(?:it\s)?(?:\w+\s)?to|switched\sto|moved\sto|back\sto|"
            rf"went\s(?:up|down)\sto|(?:push|put|brought|moved)\w*\s(?:back|forward|off)\s(?:to|until)|ha\scambiado\sa|ahora\s(?:es|son|va|están?)|instead\sof\s\S+\s(?:it['’]s|is)|"
            rf"pas(?:a|ó|an)\sa(?:l)?|en\svez\sde\s\w+(?:\s\w+)?\s(?:son|sean|es))\s(?P<value>{SPECIFIC}|[^.,;!?\n]{{3,50}})",
        ),
        None,
        0.8,
    ),
    Rule(
        RETRACTION,
        "no longer X, I gave up X, X is off: what has stopped being so",
        "correction",
        RETRACTED,
        None,
        0.8,
    ),
    Rule(
        "reversal",
        "I'm not … any more, we don't … these days, … after all: a denial of what was so",
        "correction",
        patterns(
            rf"(?P<value>(?i:{_SOMEBODY}(?:['’]?m|\sam|['’]?re|\sare|['’]?s|\sis)\s(?:not|no\slonger)|{_SOMEBODY}\s(?:don['’]?t|do\snot|doesn['’]?t|does\snot|won['’]?t|can['’]?t|cannot)"
            r"|\b(?:it|that)(?:['’]?s|\sis)\snot)\b[^.;!?\n]{3,80}?\b(?i:any\s?more|any\slonger|these\sdays|after\sall|now))\b",
        ),
        None,
        0.8,
    ),
    Rule(
        "decision",
        "we agreed on …, I decided to …, we'll go with …, hemos quedado en …",
        "statement",
        patterns(
            r"\b(?i:(?:we|I)(?:['’]ve|\shave)?\s(?:agreed|decided|settled|chose|picked|ended\sup)\s(?:on|to|that|with)?|(?:we|I)['’]ll\sgo\swith"
            r"|let['’]s\sgo\swith)\s(?P<value>[^.;!?\n]{3,80})",
            r"\b(?i:(?:hemos\s)?(?:quedado|quedamos|decidimos|acordamos|decidí)\s(?:en|que)?|hemos\s(?:decidido|acordado))\s(?P<value>[^.;!?\n]{3,80})",
        ),
        None,
        0.9,
    ),
    Rule(
        EVENT,
        "I, we or my … + past verb + what: what somebody did or what happened",
        "statement",
        patterns(
            r"\b(?:I|[Ww]e|[Mm]y\s(?:\w+\s)?\w+)(?:['’]ve|\shave|\shas)?\s(?:just\s|recently\s|also\s|finally\s|already\s|both\s|once\s|even\s)*"
            r"(?P<value>(?!(?:loved|liked|wanted|needed|hoped|tried|guessed|mentioned|asked|wished|enjoyed|noticed|realized|realised|missed|agreed|appreciated"
            r"|used|seemed|looked|need|indeed|based|supposed|interested|excited|scared|worried|tired|decided|talked|thought)\b)"
            r"(?:[a-z]+ed|went|bought|won|lost|quit|made|got|took|gave|built|met|found|wrote|read|ran|sold|paid|began|broke|fell|came|taught|"
            r"grew|held|set\sup|hit|sent|drove|flew|chose|spent|left|saw|ate|caught|hurt|led|swam|rode|threw|kept)"
            r"\s(?!(?:it|this|that|them|some\sof|he|she|they|we|I|you|because|so|very|really)\b)[^.;!?\n]{6,90})",
            r"\b(?P<value>(?:[Hh]e|[Hh]emos|[Hh]a|[Hh]an)\s(?:\w+ado|\w+ido|hecho|puesto|visto|dicho|escrito|abierto|roto|vuelto)\s[^.;!?\n]{6,90})",
            r"\b(?P<value>(?:[Mm]e\s|[Nn]os\s)?(?!est[aá]\w*|somos\b|vamos\b|tenemos\b|hacemos\b|podemos\b|sabemos\b|queremos\b|aquí\b|allí\b|así\b|ahí\b|qué\b|porqué\b|café\b|casi\b|mí\b|sí\b)[A-Za-záéíóúñ]{3,}(?:é|í|amos|imos)\s[^.;!?\n]{8,90})",
        ),
        None,
        0.85,
    ),
    Rule(
        "habit",
        "I volunteer …, we go … every …, I've been …ing: what somebody does regularly",
        "statement",
        patterns(
            r"\b(?:I|[Ww]e)\s(?:\w+ly\s|often\s|always\s|also\s|still\s|sometimes\s)*(?P<value>(?:volunteer|play|run|go|paint|cook|read|write|teach|coach|train|collect|grow|keep"
            r"|own|help|meet|practi[sc]e|make|sell|speak|drive|swim|bake|sing|dance|hike|ride|take|watch|listen)\s(?!to\b|you\b|that\b|it\b|no\b|been\b|never\b|on\b|for\sit\b|any\b|with\b|so\b|ahead\b|a\s(?:lot|feeling|question|bit)\b)[^.;!?\n]{3,80})",
            r"\b(?:I['’]ve|I\shave|[Ww]e['’]ve|[Ww]e\shave)\sbeen\s(?P<value>[a-z]+ing\s(?!about\b|it\b|that\b|so\b)[^.;!?\n]{4,80})",
            r"\b(?:I|[Ww]e)\sused\sto\s(?P<value>(?!be\b|it\b|think\b)[^.;!?\n]{5,80})",
        ),
        None,
        0.82,
    ),
    Rule(
        "plan",
        "I'm going to …, I want to …, we're planning …, voy a …",
        "statement",
        patterns(
            r"\b(?:I['’]m|I\sam|[Ww]e['’]re|[Ww]e\sare)\s(?:going\sto|planning\s(?:to|on|a)?|hoping\sto|thinking\s(?:of|about)|aiming\sto|looking\sto)\s(?P<value>[^.;!?\n]{4,80})",
            r"\b(?:I|[Ww]e)(?:['’]d)?\s(?:really\s)?(?:want\sto|hope\sto|plan\sto|would\slike\sto|dream\sof|intend\sto)\s(?!(?:know|tell|hear|see|thank|say|ask|make\ssure)\b)(?P<value>[^.;!?\n]{4,80})",
            r"\b(?i:mi|my)\s(?i:goal|dream|plan|sueño|objetivo)\s(?:is|es)\s(?:to\s)?(?P<value>[^.;!?\n]{4,80})",
            r"\b(?i:voy\sa|vamos\sa|pienso|tengo\spensado|quiero|espero|me\sgustaría)\s(?P<value>[a-záéíóúñ]+"
            r"(?:[aei]r|[aei]r(?:me|nos|lo|la))\b[^.;!?\n]{3,80})",
        ),
        None,
        0.82,
    ),
)

_SAYS_LITTLE = (
    r"(?!(?:['’](?:d|ll)|\swould|\swill|\scould|\smight|\sshould|\smay)\b)(?:['’]\w+)?\s(?:\w+ly\s|just\s|also\s|still\s|even\s|\d+\s?%\s)*+"
    r"(?!(?:think|thought|guess|know|knew|mean|meant|wonder\w*|hope|suppose|bet|swear|believe|understand|agree|see|saw|hear|heard|say|said|told"
    r"|asked|tried|forgot|wish|appreciate|thank|apologi\w+|trust|doubt|expect|notice\w*|remember|feel|felt|need|going|gonna|done|sure|sorry|glad|happy"
    r"|afraid|excited|curious|so|very|really|too|not|lost|stuck|confused|worried|tired|exhausted|about|almost|was|were|did|didn['’]?t|couldn['’]?t"
    r"|can['’]?t\s(?:believe|wait|tell|say)|don['’]?t\s(?:know|think|care|mind|understand|see|mean))\b)"
)
"""Negative lookahead: verbs after which no fact follows (think, feel, would …)."""

CHANGE = "change"
"""The rule that holds only for a sentence that says that something has changed or was wrong."""

REST: tuple[Rule, ...] = (
    Rule(
        "note",
        "label: what belongs to it, in a line of its own",
        "statement",
        patterns(
            r"^(?:[-*•]\s*)?(?!(?i:note|ps|update|question|ok|so|well|look)\b)[^\W_][\w'’/ -]{0,28}"
            r"(?<!\bsaid)(?<!\bsays):\s(?P<value>[^\n:]{4,100})"
        ),
        None,
        0.85,
    ),
    Rule(
        "given up",
        "I cancelled …, we let … go, … fell through: a plan or a thing that is given up",
        "correction",
        patterns(rf"(?P<value>(?i:{DROPPED})[^.;!?\n]{{0,60}})"),
        None,
        0.8,
    ),
    Rule(
        CHANGE,
        "now, moved, sorry …, with a number that no other rule reads",
        "correction",
        patterns(rf"(?<![\w.,:/-])(?P<value>\d[\w.,:/-]*\w|\d|{NUMBER_WORD}\b)"),
        None,
        0.8,
    ),
    Rule(
        "statement",
        "I, we, my … or our … + verb + what: any other statement about the speaker",
        "statement",
        patterns(
            rf"(?:^|[,;:–—]\s|\b(?:and|but|so|because|since)\s)(?P<value>(?:I|[Ww]e){_SAYS_LITTLE}[^\s.;!?][^.;!?\n]{{7,90}})",
            r"(?:^|[,;:–—]\s|\b(?:and|but|so|because|since)\s)(?P<value>(?:[Mm]y|[Oo]ur)\s(?:[\w'’-]+\s){1,4}?"
            r"(?:is|are|has|have|does|doesn['’]?t|won['’]?t|can|can['’]?t|\w{2,}s)\s[^.;!?\n]{4,90})",
            r"\b(?P<value>(?:[Tt]engo|[Tt]enemos|[Ee]stoy|[Ss]oy|[Ss]omos|[Vv]iajo|[Uu]so|[Uu]samos|[Tt]omo|[Ll]levo|[Ll]levamos|[Nn]o\s(?:como|bebo|puedo|tomo)"
            r"|(?:[Mm]i|[Nn]uestr[oa])\s\w+\s(?:es|está|tiene|va|se))\s[^.;!?\n]{6,90})",
        ),
        None,
        0.82,
    ),
)
"""Rules that are tried last, on sentences in which no other rule found anything."""
