"""Words that tokens make canonical: numbers, months, currencies, units; and words that carry no meaning."""

from __future__ import annotations

from typing import Final

from memory_backends.text import MONTHS, SCALES, SPELLED

SMALL: Final[dict[str, int]] = SPELLED | {"dozen": 12, "docena": 12}
SCALE: Final = SCALES
ORDINALS: Final[dict[str, int]] = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth"
        " fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split(),
        start=1,
    )
} | {
    word: value
    for value, word in enumerate(
        "primero segundo tercero cuarto quinto sexto septimo octavo noveno decimo".split(), start=1
    )
}
NOT_ALONE: Final = frozenset({"once", "second", "segundo", "cuarto", "quinto", "uno", "one"})
"""Words that are often no number ("the red one"). Alone, they count before a noun or as a whole answer."""

MONTH_NAMES: Final[dict[str, int]] = dict(MONTHS) | {
    name: number
    for names in (
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "ene feb mar abr may jun jul ago sep oct nov dic",
    )
    for number, name in enumerate(names.split(), start=1)
} | {"sept": 9, "setiembre": 9}  # fmt: skip

CURRENCIES: Final[dict[str, str]] = {
    "£": "gbp", "gbp": "gbp", "pound": "gbp", "pounds": "gbp", "quid": "gbp", "libras": "gbp",
    "$": "usd", "usd": "usd", "dollar": "usd", "dollars": "usd", "bucks": "usd", "dolares": "usd",
    "€": "eur", "eur": "eur", "euro": "eur", "euros": "eur",
    "¥": "jpy", "yen": "jpy", "kr": "kr", "nok": "kr", "kroner": "kr", "krone": "kr",
}  # fmt: skip
UNITS: Final[dict[str, str]] = {
    spelling: unit
    for unit, spellings in {
        "km": "km kilometre kilometres kilometer kilometers kilometro kilometros",
        "m": "m metre metres meter meters metro metros",
        "cm": "cm centimetre centimetres centimeter centimeters centimetro centimetros",
        "mm": "mm millimetre millimetres millimeter millimeters milimetro milimetros",
        "mi": "mi mile miles milla millas",
        "ft": "ft foot feet pie pies",
        "in": "inch inches pulgada pulgadas",
        "kg": "kg kgs kilo kilos kilogram kilograms kilogramo kilogramos",
        "g": "g gr gram grams gramme grammes gramo gramos",
        "lb": "lb lbs",
        "oz": "oz ounce ounces onza onzas",
        "l": "l litre litres liter liters litro litros",
        "ml": "ml millilitre millilitres milliliter milliliters mililitro mililitros",
        "h": "h hr hrs hour hours hora horas",
        "min": "min mins minute minutes minuto minutos",
        "s": "s sec secs seconds segundos",
        "ms": "ms millisecond milliseconds milisegundo milisegundos",
        "kb": "kb kib kilobyte kilobytes",
        "mb": "mb mib megabyte megabytes",
        "gb": "gb gib gigabyte gigabytes",
        "tb": "tb tib terabyte terabytes",
        "%": "% percent per-cent pct",
        "c": "°c celsius",
        "f": "°f fahrenheit",
        "w": "w watt watts",
        "kw": "kw kilowatt kilowatts",
        "kwh": "kwh",
        "v": "v volt volts",
        "hz": "hz hertz",
    }.items()
    for spelling in spellings.split()
}

IRREGULAR_PASTS: Final[dict[str, str]] = dict(
    pair.split("/")
    for pair in (
        "ate/eat became/become began/begin bought/buy brought/bring built/build came/come caught/catch chose/choose"
        " did/do drank/drink drew/draw drove/drive fell/fall flew/fly found/find gave/give got/get grew/grow"
        " held/hold kept/keep knew/know led/lead left/leave lost/lose made/make meant/mean met/meet paid/pay"
        " ran/run rode/ride said/say sang/sing sat/sit saw/see sent/send slept/sleep sold/sell spent/spend"
        " spoke/speak stood/stand swam/swim taught/teach threw/throw told/tell took/take went/go woke/wake"
        " won/win wore/wear wrote/write"
    ).split()
)
"""Past forms of English verbs that a stemmer does not know."""

STOP_WORDS: Final = frozenset(
    "a an the of to in on at by for from with and is are was were be been it its this that these those his her"
    " their my your our he she they i you we s el la los las un una unos unas de del al en por para con y e que"
    " es son fue"
    " era su sus mi tu lo le se as around about approximately roughly very just named called one ones".split()
)
