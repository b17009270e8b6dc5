"""Words that tokens make canonical: numbers, months, currencies, units; and words that carry no meaning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Final

from memory_backends.text import MONTHS, SCALES, SPELLED, WEEKDAYS


def _to_the_first(groups: str) -> dict[str, str]:
    """Return the other words of each group, which a slash ends, with the first."""
    return {word: group.split()[0] for group in groups.split("/") for word in group.split()[1:]}


SMALL: Final = SPELLED
SCALE: Final[dict[str, int]] = SCALES | {"dozen": 12, "docena": 12, "docenas": 12, "billion": 10**9}
SHORT_SCALES: Final = {"k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9}
"""Multipliers right behind an amount of money. "k" stands behind any number."""

_IN_ORDER: Final = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth"
    " fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
    "primero segundo tercero cuarto quinto sexto septimo octavo noveno decimo",
)
ORDINALS: Final = {word: at for words in _IN_ORDER for at, word in enumerate(words.split(), start=1)}
NOT_ALONE: Final = frozenset({"once", "second", "segundo", "cuarto", "quinto", "uno", "one"})
"""Words that are often no number ("the red one"). Alone, they count before a noun or as a whole answer."""

MONTH_NAMES: Final[dict[str, int]] = dict(MONTHS) | {
    name: number
    for names in (
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "ene feb mar abr may jun jul ago sep oct nov dic",
        "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
        "januar februar marz april mai juni juli august september oktober november dezember",
    )
    for number, name in enumerate(names.split(), start=1)
} | {"sept": 9, "setiembre": 9}  # fmt: skip

NO_MONTH_ALONE: Final = frozenset({"ago", "mar", "mars", "mai"})
"""Words of their own in one of the languages: they name a month beside a day or a year only."""

DAY_NAMES: Final[dict[str, int]] = dict(WEEKDAYS) | {
    "mon": 0, "tue": 1, "tues": 1, "weds": 2, "thu": 3, "thur": 3, "thurs": 3, "fri": 4
} | {f"{day}s": number for day, number in WEEKDAYS.items() if day.endswith(("day", "o"))}  # fmt: skip

CURRENCIES: Final = _to_the_first(
    "gbp £ gbp quid/pound pound pounds libras/usd $ usd dollar dollars bucks dolares us$/eur € eur euro euros"
    "/jpy ¥ jpy yen/kr kr nok kroner krone sek kronor/aud au$ aud/cad ca$ cad/inr ₹ inr rupee rupees rupias"
    "/cny cny rmb yuan/chf chf franc francs francos/peso peso pesos/pln zloty/rub rouble roubles rubles/brl "
    "brl reais/krw krw/lira lira"
)
UNITS: Final = _to_the_first(
    "km km kilometre kilometres kilometer kilometers kilometro kilometros/m m metre metres meter meters metro "
    "metros/cm cm centimetre centimetres centimeter centimeters centimetro centimetros/mm mm millimetre "
    "millimetres millimeter millimeters milimetro milimetros/mi mi mile miles milla millas/ft ft foot feet pie "
    "pies/in inch inches pulgada pulgadas/kg kg kgs kilo kilos kilogram kilograms kilogramo kilogramos/g g gr "
    "gram grams gramme grammes gramo gramos/pound lb lbs/yd yd yards yarda yardas/gal gal gallon gallons galon "
    "galones/oz oz ounce ounces onza onzas/mg mg milligram milligrams miligramo miligramos/l l litre litres "
    "liter liters litro litros/ml ml millilitre millilitres milliliter milliliters mililitro mililitros/h h hr "
    "hrs hour hours hora horas/min min mins minute minutes minuto minutos/s s sec secs seconds segundos/day "
    "day days dia dias/week week weeks semana semanas wk wks/fortnight fortnight fortnights quincena quincenas"
    "/month month months mes meses/year year years yr yrs ano anos/decade decade decades decada decadas/p p "
    "pence penny/cent cent cents centimo centimos"
    "/mb mb mib megabyte megabytes/gb gb gib gigabyte gigabytes/% % percent per-cent pct/c °c celsius"
    "/f °f fahrenheit/x times veces"
)
"""Spelling → unit."""
_MEASURES: Final[Sequence[dict[str, float]]] = (
    {"s": 1, "min": 60, "h": 3600, "day": 86400, "week": 604800, "fortnight": 1209600},
    {"month": 1, "year": 12, "decade": 120},
    {"mm": 0.001, "cm": 0.01, "in": 0.0254, "ft": 0.3048, "yd": 0.9144, "m": 1, "km": 1000, "mi": 1609.344},
    {"mg": 0.001, "g": 1, "oz": 28.3495, "pound": 453.592, "kg": 1000},
    {"ml": 0.001, "l": 1, "gal": 3.78541},
    {"gbp": 1, "pound": 1, "p": 0.01},
    *({money: 1.0, "cent": 0.01} for money in ("eur", "usd", "aud", "cad")),
    *({scale: 1.0, "°": 1.0} for scale in "cf"),
)
IMPERIAL: Final = frozenset("in ft yd mi oz pound gal gbp p".split())
FACTORS: Final = {(one, two): of[two] / of[one] for of in _MEASURES for one, two in permutations(of, 2)}
"""Two units or currencies of one measure → how much of the first the second is."""

CONVERSES: Final = (
    "lend/borrow loan/borrow sell/buy sell/purchase teach/learn give/receive give/get send/receive send/get"
    " beat/lose defeat/lose precede/follow lead/follow older/younger taller/shorter bigger/smaller"
    " heavier/lighter faster/slower earlier/later own/belong employ/work leave/inherit"
)
"""Verbs and comparatives that say the same with the roles the other way round."""
OPPOSITES: Final = (
    "open/close open/shut win/lose start/end start/finish behind/front above/below inside/outside left/right"
    " north/south east/west top/bottom most/least pass/fail like/dislike like/hate love/hate remember/forget"
    " minimum/maximum min/max earliest/latest new/old agree/refuse accept/refuse accept/reject buy/sell"
    " abrir/cerrar abierto/cerrado ganar/perder empezar/acabar detras/delante encima/debajo dentro/fuera"
    " izquierda/derecha"
)
"""Words of which one denies the other."""

IRREGULAR_FORMS: Final = _to_the_first(
    "eat ate eaten/become became/begin began begun/buy bought/bring brought/build built/come came/catch caught"
    "/choose chose chosen/beat beat/bend bent/break broke broken/do did done/drink drank drunk/draw drew drawn"
    "/drive drove driven/feed fed/fall fell fallen/feel felt/fight fought/fly flew flown/forget forgot "
    "forgotten/find found/give gave given/get got/grow grew grown/hear heard/hide hid/hold held/keep kept/know "
    "knew known/lead led/leave left/lend lent/lose lost/make made/mean meant/meet met/pay paid/run ran/ride "
    "rode ridden/say said/sing sang sung/sit sat/see saw seen/send sent/sleep slept/sell sold/spend spent"
    "/speak spoke spoken/steal stole stolen/stand stood/swim swam swum/teach taught/throw threw thrown/tell "
    "told/take took taken/go went gone/wake woke/win won/wear wore worn/write wrote written"
)
"""Irregular past or participle of an English verb, which a stemmer does not know → the verb."""

SAME_WORDS: Final = IRREGULAR_FORMS | _to_the_first(
    "bicycle bike/refrigerator fridge/gymnasium gym/mathematics maths math/telephone phone/photograph"
    " photo/examination exam/laboratory lab/veterinarian vet/university uni/vitamin vit/department dept/street"
    " st/apartment flat apt/avenue ave/road rd/television tv telly/aeroplane airplane plane/advertisement advert"
    " ad/influenza flu/grandmother grandma granny nana/grandfather grandpa grandad/mother mum mom mummy/father dad"
    " daddy/javascript js/typescript ts/company firm/temperature temp/doctor dr/professor prof/approximately"
    " approx/lorry truck/petrol gasoline/holiday vacation/film movie/autumn fall/trousers pants/nappy diaper/torch"
    " flashlight/pavement sidewalk/rubbish garbage trash/sofa couch/mobile cellphone/shop store/aubergine"
    " eggplant/courgette zucchini/lift elevator/child kid/children kids/ill sick/purchase buy/repair fix/begin"
    " start/car automobile/lawyer solicitor attorney/large big/house home/colleague coworker/application"
    " app/repository repo/specification spec/calle c/week weekly/day daily/month monthly/year yearly annual/mes"
    " mensual mensuales/work job/configuration config/administrator admin/reservation booking/win winner"
)
"""Word → the longer, or British, word for the same, or the verb of an irregular form."""

STOP_WORDS: Final = frozenset(
    "a an the of to in on at by for from with and is are was were be been it its this that these those them his"
    " her their my your our he she they i im you we s el la los las un una unos unas de del al en por para con y"
    " e que es son fue era su sus mi tu lo le se as because porque around about approximately roughly almost"
    " nearly casi very just named called one ones per".split()
)

FORMS_A_QUESTION: Final = frozenset(
    "what which who whom whose when where why how many much often long do does did have has had am can could will"
    " would should me my mine us que cual cuales quien quienes cuando donde como cuanto cuanta cuantos cuantas ha"
    " han he hay now ahora currently there per".split()
)
"""Words that form any question, and say nothing of what it is about."""
