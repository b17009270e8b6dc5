"""Rules for statements about oneself, one's people and preferences."""

from __future__ import annotations

import re

from memory_backends.hybrid.rules.pattern import CAP, PERSON, PROPER, QUOTED, Rule, patterns

_I_AM = r"\b(?:I['’]m|[Ii]\sam|i['’]m|I['’]ve\sbeen)"
_ADVERB = (
    r"(?:(?:still|now|just|only|currently|originally|recently|also|really|finally|actually|ahora|ya|todavía)\s)*"
)
_ROLE = (
    r"(?!(?:same|one|only|first|part|mix|kind|sort|member|bit|little|lot|fan|huge|big|total|great|such|mess|wreck|bad|good|very|pretty|few|couple|week|day|while"
    r"|hundred|half|poco|bien|mal|idiot|fool|moron|genius|disaster|failure|nightmare|monster|saint|liar|coward|clown|joke|mess|idiota|tont[oa]|desastre|genio)\b)"
)
_KIN = (
    r"wife|husband|partner|(?:boy|girl)?friend|fianc[ée]e?|mother|mom|mum|father|dad|son|daughter|brother|sister"
    r"|(?:step|grand|god)?(?:mother|father|ma|pa|son|daughter|child|children|parents?)|gran|nan|aunt(?:ie)?|uncle|cousin"
    r"|niece|nephew|twin|kid|child|children|baby|(?:mother|father|brother|sister|son|daughter)-in-law"
    r"|boss|manager|supervisor|advis[eo]r|mentor|land(?:lord|lady)|co-?founder|therapist|doctor|dentist|tutor|teacher"
    r"|coach|trainer|contractor|colleague|co-?worker|workmate|(?:flat|room|house|team|band|class)mate|neighbou?r"
    r"|client|student|assistant|dog|cat|pupp?y|kitten|horse|pony|parrot|rabbit|hamster|tortoise|guinea\spig|bird|pet"
)
_PARIENTE = (
    r"mujer|espos[oa]|marido|parej[a]|novi[oa]|madre|mamá|padre|papá|hij[oa]|herman[oa]|abuel[oa]|t[ií][oa]|prim[oa]"
    r"|sobrin[oa]|niet[oa]|suegr[oa]|cuñad[oa]|nuera|yerno|amig[oa]|compañer[oa]|vecin[oa]|jef[ea]|soci[oa]"
    r"|cofundadora?|tutora?|caser[oa]|directora?|perr[oa]|gat[oa]|caballo|loro|conejo|melliz[oa]|gemel[oa]|ahijad[oa]"
)
PEOPLE = rf"(?:{_KIN}|{_PARIENTE}|friends?|mates?|kids?|rivals?|competitors?|others?)"
"""Words for somebody beside the speaker."""

REPORTS = (
    r"(?:says?|said|thinks?|thought|told|tells|reckons?|wants?|decided|has|confirmed|wrote|rang|called|asked|put|pushed|moved|insists?|agreed|dice|dijo"
    r"|cree|quiere|ha|me)\b"
)
"""Verbs of saying and doing about another's matter: "my boss says 30 days"."""

ONE_AT_A_TIME = frozenset(
    word
    for line in (
        "wife husband partner boyfriend girlfriend fiance fiancee boss manager supervisor advisor adviser",
        "mentor landlord landlady",
        "therapist doctor dentist tutor coach trainer assistant contractor mujer esposa marido pareja novio",
        "novia jefe jefa tutor tutora",
        "casero casera entrenador entrenadora director directora",
    )
    for word in line.split()
)
"""Relations of which somebody has one at a time."""

RELATIONS = frozenset(word for word in re.split(r"\|", f"{_KIN}|{_PARIENTE}") if word.isalpha()) | ONE_AT_A_TIME
"""Words that are the last part of a relation's slot, as far as they are written out."""

_RELATION = rf"(?P<relation>{_KIN}|{_PARIENTE})(?:s|es)?"
_WHICH = (
    r"(?:(?:late|older|younger|elder|eldest|oldest|youngest|little|big|baby|best|new|old|own|ex|good|dear|close|mayor"
    r"|menor|pequeñ[oa]|mejor|difunt[oa]|buen[oa]?)[\s-])*"
)
_MY = r"\b(?:[Mm]y|[Oo]ur|[Mm]is?|[Nn]uestr[oa]s?)"
_NAMES = rf"{PERSON}(?:\s\(\d+\))?(?:(?:,\s|,?\s(?:and|y|e)\s){CAP}(?:\s\(\d+\))?){{0,5}}"
_NAMED = (
    r"(?:\s(?:mayor|menor|pequeñ[oa]))?(?:,?\s(?:who\sis\s|who['’]s\s|is\s|are\s|que\s)?(?:called|named|se\sllaman?)"
    r"|['’]s\sname\sis|\s\(|,|:|\s(?:is|are|es|son)(?!\s\w+(?:ish|ese|[ci]an)\b))?"
)
_NOT_A_LIST = rf"(?!,\s{PERSON}\s(?:and|&)\s(?:I|me|my)\b)"
"""Lookahead that excludes the next of several people: ``my partner, Ana and I`` names three of them."""

_THING = r"(?P<value>(?:(?!\s[–-]\s)[^.,;!?\n]){3,80})"
_NO_POINTING = (
    r"(?!(?:it|that|this|those|these|all|you|him|her|them|his|their|how|when|what|to\ssee|seeing|the\sway|the\sidea"
    r"|your|is|was|eso|esto|que\sme)\b)(?![^.,;!?\n–-]*\b(?:him|her|them|it)\b)"
)

RULES: tuple[Rule, ...] = (
    Rule(
        "name",
        "my name is X, I'm called X, call me X, X here",
        "self",
        patterns(
            rf"\b(?i:my\s(?:(?:own|full|real|first|last)\s)*name(?:['’]s|\sis|,)|(?<!\w\s)name['’]s|I['’]m\scalled"
            rf"|(?<!never\s)(?<!not\s)(?<!n['’]t\s)call\sme|(?<!no\s)me\sllamo|mi\snombre(?:\scompleto)?\ses"
            rf"|(?<!no\s)(?<!nunca\s)ll[aá]m[ae]me)\s(?P<value>{PERSON})",
            rf"(?:{_I_AM}|\b[Ss]oy)\s(?P<value>{CAP}\s{CAP}(?:\s{CAP})?)",
            rf"(?:{_I_AM}|\b[Ss]oy)\s(?P<value>{CAP})(?=,?\s(?:by\sthe\sway|from\b|and\sI\b|an?\s|here\b|por\scierto|de\s"
            rf"|y\s)|,)",
            rf"^(?i:(?:hi|hello|hey|hola)[,!]?\s)?(?P<value>{CAP}(?:\s{CAP})?)\s(?:here(?=[,.!]|\s(?:again|from))|por\saquí)",
        ),
        "<who>.name",
        0.9,
        in_questions=True,
    ),
    Rule(
        "employer",
        "I work (as a …) at or for X; I'm a … at X",
        "self",
        patterns(
            rf"\b(?i:I(?:['’]m|\sam|['’]ve\sbeen)?\s{_ADVERB}(?:work|working|worked|employed|teach|teaching))"
            rf"(?:\s(?:as\s)?[a-z][\w\s-]{{2,40}}?)?\s(?:at|for|with)\s(?:the\s|a\s\w+\scalled\s)?(?P<value>{PROPER})",
            rf"{_I_AM}\s(?:an?|the|acting|head|chief)\s[a-z][\w\s-]{{2,40}}?\s(?:at|for|with)\s(?:the\s)?"
            rf"(?P<value>{PROPER})",
            rf"\b(?i:trabajo|estoy\strabajando|doy\sclases?|soy\s(?:una?\s)?[a-záéíóúñ]{{4,}})(?:\s(?:como|de)\s[^.,;]{{3,40}}?)?"
            rf"\s(?:en|para)\s(?:el\s|la\s|los\s)?(?P<value>{PROPER})",
        ),
        "<who>.employer",
        0.9,
        in_questions=True,
    ),
    Rule(
        "role",
        "I'm a …, I work as a …, I'm vegetarian or married: what somebody is",
        "self",
        patterns(
            rf"(?:{_I_AM}|\bI\swork\sas|\bwe['’]re|\bwe\sare)\s{_ADVERB}(?:an?|the)\s{_ROLE}(?P<value>[a-z][\w-]+(?:\s(?!(?:at|in|for|who"
            rf"|and|so|with|but|from|on|now|since|that|by|to|of|as|because)\b)[a-z][\w-]+){{0,3}})",
            rf"{_I_AM}\s{_ADVERB}(?P<value>(?:\w+ly\s)?(?:married|single|divorced|engaged|widowed|separated|retired"
            rf"|pregnant|unemployed|self-employed|freelance|vegetarian|vegan|pescatarian|diabetic|coeliac|celiac"
            rf"|gluten[-\s]free|lactose[-\s]intolerant|asthmatic|left-handed))\b",
            r"\b(?:[Ss]oy|[Ss]omos|[Tt]rabajo\s(?:de|como))\s(?:una?\s)?(?P<value>[a-záéíóúñ]{2,}(?:er[oa]|or|ora|ist[ao]|ante|ente|ad[oa]|ic[oa]|óg[oa]|iac[oa]|ian[oa]|ari[oa]|iud[oa])s?"
            r"(?:\s(?:de\s)?[a-záéíóúñ]{4,}){0,2})\b",
        ),
        "<who>.is",
        0.85,
        several=True,
        in_questions=True,
    ),
    Rule(
        "home",
        "I live in X, we moved to X, our flat in X",
        "self",
        patterns(
            rf"\b(?:I|[Ww]e)(?:['’]m|\sam|['’]re|\sare|['’]ve|\shave)?\s{_ADVERB}"
            rf"(?:live|living|based|lived|moved|moving|relocated|settled)\s(?:(?:here|back)\s)?(?:in|to)\s(?:\w+"
            rf"\s){{0,2}}?(?P<value>{PROPER})",
            rf"\b(?:[Mm]y|[Oo]ur)\s(?:flat|house|home|apartment|place)\s(?:is\s)?in\s(?P<value>{PROPER})",
            rf"\b(?i:vivo|vivimos|resido|me\s(?:he\s)?mud(?:é|ado|o)|nos\smudamos|estoy\sviviendo|(?:mi|nuestr[oa])\s(?:casa|piso)"
            rf"\sestá)\s(?:ahora\s)?(?:en|a)\s(?P<value>{PROPER})",
        ),
        "<who>.city",
        0.85,
        in_questions=True,
    ),
    Rule(
        "origin",
        "I'm from X, I was born or grew up in X",
        "self",
        patterns(
            rf"\b(?:(?i:I(?:['’]m|\sam)\s(?:originally\s)?from|I\scome\sfrom|I\swas\sborn\sin|I\sgrew\sup\sin"
            rf"|I\smoved\s(?:here\s)?from|my\shome\s(?:country|town),?(?:\sis)?))\s(?:the\s)?(?P<value>{PROPER})",
            rf"\b(?i:(?:soy|vengo|procedo)\sde|nací\sen|me\scrié\sen)\s(?:la\s|el\s)?(?P<value>{PROPER})",
        ),
        "<who>.origin",
        0.9,
        in_questions=True,
    ),
    Rule(
        "study",
        "I study … at X, I graduated in …",
        "self",
        patterns(
            r"\bI(?:['’]m|\sam|['’]ve)?\s(?:just\s|recently\s)?(?:study|studying|studied|majored|graduated|majoring)\s"
            r"(?!it\b|that\b|hard\b|last\b|yesterday\b|this\b|in\s\d)(?P<value>[^.;!?\n]{3,70})",
            r"\b(?i:estudio|estudié|he\sestudiado|estoy\sestudiando|me\sgradué)\s(?P<value>[^.;!?\n]{3,70})",
        ),
        "<who>.studies",
        0.85,
        several=True,
    ),
    Rule(
        "allergy",
        "allergic to …, a … allergy",
        "self",
        patterns(
            r"\b(?i:allergic\sto)\s(?:the\s)?(?P<value>(?!any)(?:[a-z]+ing\s)?[\w-]+(?:\s(?:and|or)\s[\w-]+)?)",
            r"\b(?P<value>(?!an?\b|the\b|any\b|severe\b|food\b|my\b|this\b|her\b|his\b|have\b|bad\b|your\b)[a-z][\w-]+)\sallerg(?:y|ies)\b",
            r"\b(?i:(?:alérgic[oa]s?|alergia|intolerante)\s(?:a\slas?|al|a\slos|a))\s(?P<value>[a-záéíóúñ]+"
            r"(?:\s[ye]\s(?:a\slas?\s|al\s|a\slos\s)?[a-záéíóúñ]+)?)",
        ),
        "allergy",
        0.9,
        several=True,
        in_questions=True,
    ),
    Rule(
        "relation",
        "my sister Ana; Ana, my sister; we have a dog called Ana",
        "relation",
        patterns(
            rf"{_MY}\s{_WHICH}{_RELATION}\b{_NOT_A_LIST}{_NAMED}\s?(?P<value>{_NAMES})",
            rf"\b(?P<value>{PERSON}),\s(?:who\sis\s|es\s)?(?:my|our|mi|nuestr[oa])\s{_WHICH}{_RELATION}\b",
            rf"\b(?:(?:I|[Ww]e)\s(?:have|own|adopted|got)|(?:I|[Ww]e)['’]ve\sgot|(?i:tengo|tenemos|adopté))\s(?:an?|one|two|three|una?|dos)\s"
            rf"(?:[\w-]+\s){{0,2}}?{_RELATION}(?:,|:|\s(?:called|named)|\sque\sse\sllaman?|\sllamad[oa]s?)\s(?P<value>{_NAMES})",
            rf"\b(?:[Tt]he|[Ll][oa]s|^)\s?(?P<relation>[Kk]ids|[Cc]hildren|[Tt]wins|[Dd]ogs|[Cc]ats|gemel[oa]s|niñ[oa]s)\s(?:are|son)"
            rf"\s(?:called\s|named\s)?(?P<value>{_NAMES})",
            rf"\bI(?:['’]m|\sam)\s(?P<relation>marrying|dating)\s(?P<value>{PERSON})",
        ),
        "<who>.<relation>",
        0.9,
        several=True,
        in_questions=True,
    ),
    Rule(
        "favourite",
        "my favourite X is Y, Y is my favourite X",
        "preference",
        patterns(
            rf"\b(?i:my)\s(?i:favou?rite)\s(?P<thing>\w+(?:\s\w+)?)\s(?:is|was|has\sbeen|are)\s(?:now\s|always\s|still\s"
            rf"|probably\s)?(?P<value>{QUOTED}|[^.,;!?\n]{{2,60}})",
            rf"\b(?P<value>{PROPER})\s(?:is|are|was)\s(?i:my|our)\s(?:\w+\s)?(?i:favou?rite)\s(?P<thing>\w+)",
            rf"\b(?i:mi)\s(?P<thing>\w+)\s(?:favorit[oa]|preferid[oa])\s(?:es|era|son)\s(?:ahora\s|siempre\s)?"
            rf"(?:el\s|la\s)?(?P<value>{QUOTED}|[^.,;!?\n]{{2,60}})",
        ),
        "favourite_<thing>",
        0.95,
    ),
    Rule(
        "preference",
        "I prefer …, I'd rather …",
        "preference",
        patterns(
            r"\bI(?:['’]d)?\s(?:\w+ly\s)?(?:much\s)?(?:prefer|rather(?!\sbe\b))\s(?P<value>[^.;!?\n]{3,80})",
            r"\b(?i:prefiero|preferiría)\s(?P<value>[^.;!?\n]{3,80})",
        ),
        "<who>.prefers",
        0.85,
        several=True,
    ),
    Rule(
        "like",
        "I like, love or enjoy …, I'm into …, I'm a fan of …",
        "preference",
        patterns(
            rf"\bI\s(?:\w+ly\s|just\s|also\s|always\s|still\s)*(?:like|love|adore|enjoy(?:ed)?)\s{_NO_POINTING}{_THING}",
            rf"\bI(?:['’]?d|\swould)\slike\s(?!to\b|you\b|a\slist\b|some\b){_NO_POINTING}{_THING}",
            rf"\bI(?:['’]m|\sam)\s(?:\w+ly\s|a\s(?:\w+\s)?)?(?:into|fond\sof|keen\son|fan\sof|passionate\sabout|crazy\sabout)"
            rf"\s{_NO_POINTING}{_THING}",
            rf"(?<!\b[Nn]o\s)\b(?i:me\s(?:encantan?|chiflan?|apasionan?|gustan?(?:\smucho)?))\s{_NO_POINTING}{_THING}",
        ),
        "<who>.likes",
        0.8,
        several=True,
    ),
    Rule(
        "dislike",
        "I hate …, I can't stand …, I don't like …",
        "preference",
        patterns(
            rf"\bI\s(?:really\s|absolutely\s)?(?:hate|dislike|can(?:['’]?t|not)\s(?:stand|bear|abide)|detest|loathe"
            rf"|don['’]t\s(?:really\s)?(?:like|eat|drink))\s{_NO_POINTING}{_THING}",
            rf"\bI(?:['’]?m|\sam)\s(?:\w+ly\s)?(?:afraid|scared|terrified|frightened)\sof\s{_NO_POINTING}{_THING}",
            rf"\b(?i:odio|detesto|no\ssoporto|no\saguanto|no\sme\sgustan?(?:\snada)?)\s{_NO_POINTING}{_THING}",
        ),
        "<who>.dislikes",
        0.85,
        several=True,
    ),
    Rule(
        "taste of somebody",
        "Ana loves …, my son can't stand …: what somebody else likes or does not",
        "preference",
        patterns(
            rf"(?P<value>(?:(?!(?:It|This|That|Who|What|Nobody|Everyone|Everybody|He|She|They)\b){CAP}|\b[Mm]y\s(?:\w+\s)?(?:{_KIN}))\s(?:\w+ly\s|just\s|also\s)?(?:loves|adores|likes|enjoys|prefers|hates|loathes|detests|dislikes"
            rf"|can['’]?t\s(?:stand|bear|abide)|won['’]?t\s(?:eat|touch|drink)|doesn['’]?t\s(?:like|eat|drink))\s{_NO_POINTING}[^.,;!?\n]{{3,80}})",
            rf"(?P<value>\b[Aa]\s(?:{CAP}|mi\s(?:\w+\s)?(?:{_PARIENTE}))\s(?:no\s)?le\s(?:gustan?|encantan?|chiflan?)\s[^.,;!?\n]{{3,80}})",
        ),
        None,
        0.8,
    ),
    Rule(
        "condition",
        "I have …, he was diagnosed with …: an illness",
        "self",
        patterns(
            rf"\b(?:I|[Hh]e|[Ss]he|{CAP}|[Mm]y\s(?:\w+\s)?(?:{_KIN}))(?:['’]s|['’]ve)?\s(?:have|has|had|suffers?\sfrom|(?:was|been|got)\sdiagnosed\swith)\s(?:an?\s)?"
            r"(?P<value>(?:[\w-]+\s){0,3}?(?:disease|syndrome|disorder|diabetes|asthma|epilepsy|migraines?|cancer|an[a]?emia|dyslexia|ADHD|autism|arthritis|eczema|hypertension|insomnia|tinnitus|\w+itis))\b",
            r"\b(?i:tengo|tiene|padezco|padece|le\shan\sdiagnosticado|me\shan\sdiagnosticado)\s(?:una?\s)?(?P<value>diabetes|asma|epilepsia|migrañas?|cáncer|anemia|artritis|eczema|hipertensión|insomnio|enfermedad\sde\s[^.,;!?\n]{3,30})",
        ),
        None,
        0.85,
        in_questions=True,
    ),
)
