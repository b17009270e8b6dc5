"""Stored texts that keep, shift, drop or make relative the time of a turn, labelled by hand before they were read.

Rules were made on some of them, so that the agreement says nothing of other texts.
"""

from __future__ import annotations

from datetime import date
from typing import Literal, NamedTuple

Label = Literal["held", "other", "left_out"]
"""``held``: it says the time. ``other``: it says another. ``left_out``: it says none, or not precisely enough."""


class Said(NamedTuple):
    """What a turn says on a day, a question about it, its answer, and the texts stored of it with labels."""

    day: date
    text: str
    question: str
    expected: str
    stored: dict[str, Label]


SITUATIONS = (
    Said(
        date(2024, 3, 12),
        "Yesterday I finally sold the caravan.",
        "When did Rosa sell the caravan?",
        "11 March 2024",
        {
            "Rosa sold the caravan on 11 March 2024.": "held",
            "Rosa sold her caravan (2024-03-11).": "held",
            "Rosa sold her caravan yesterday.": "left_out",
            "On 12 March 2024 Rosa said that she sold the caravan the day before.": "held",
            "Rosa sold her caravan in March 2025.": "other",
            "Rosa sold her caravan in spring 2024.": "left_out",
        },
    ),
    Said(
        date(2024, 3, 12),
        "I start at the bakery in three weeks.",
        "When does Rosa start at the bakery?",
        "2 April 2024",
        {
            "Rosa starts at the bakery three weeks after 12 March 2024.": "held",
        },
    ),
    Said(
        date(2024, 3, 12),
        "I start at the bakery in three weeks.",
        "When does Rosa start at the bakery?",
        "early April 2024",
        {
            "Rosa starts work at the bakery in April 2024.": "left_out",
        },
    ),
    Said(
        date(2024, 3, 12),
        "We got married two summers ago.",
        "When did Rosa get married?",
        "summer of 2022",
        {
            "Rosa got married in the summer of 2022.": "held",
        },
    ),
    Said(
        date(2024, 3, 12),
        "My brother moved to Kiel last autumn.",
        "When did Rosa's brother move to Kiel?",
        "autumn 2023",
        {
            "Rosa's brother moved to Kiel in October 2023.": "held",
            "Rosa's brother moved to Kiel in May 2023.": "other",
        },
    ),
    Said(
        date(2024, 3, 12),
        "I have been learning Finnish for five months now.",
        "When did Rosa start learning Finnish?",
        "October 2023",
        {
            "Rosa has been learning Finnish for five months (noted on 12 March 2024).": "held",
        },
    ),
    Said(
        date(2024, 3, 12),
        "The recital is on the Friday after next.",
        "When is the recital?",
        "22 March 2024",
        {
            "The recital is on Friday 22 March 2024.": "held",
        },
    ),
    Said(
        date(2024, 3, 12),
        "I last saw Ines on New Year's Eve.",
        "When did Rosa last see Ines?",
        "31 December 2023",
        {
            "Rosa last saw Ines on New Year's Eve 2023.": "held",
        },
    ),
    Said(
        date(2024, 3, 12),
        "Over Christmas we drove to Graz.",
        "When did they drive to Graz?",
        "December 2023",
        {
            "They drove to Graz over Christmas.": "left_out",
        },
    ),
    Said(
        date(2024, 3, 12),
        "My lease ends at the end of the month.",
        "When does Rosa's lease end?",
        "end of March 2024",
        {
            "Rosa's lease ends on 31 March 2024.": "held",
        },
    ),
    Said(
        date(2024, 5, 20),
        "Anteayer firmé la hipoteca.",
        "¿Cuándo firmó Elena la hipoteca?",
        "18 de mayo de 2024",
        {
            "Elena firmó la hipoteca el 18 de mayo de 2024.": "held",
            "Elena firmó la hipoteca el 20 de mayo de 2024.": "other",
            "Elena firmó la hipoteca hace dos días.": "left_out",
            "20/05/2024: Elena firmó la hipoteca hace dos días.": "held",
        },
    ),
    Said(
        date(2024, 5, 20),
        "La semana que viene me operan de la rodilla.",
        "¿Cuándo operan a Elena de la rodilla?",
        "la semana del 27 de mayo de 2024",
        {
            "A Elena la operan de la rodilla la semana del 27 de mayo de 2024.": "held",
        },
    ),
    Said(
        date(2024, 5, 20),
        "Dejé de fumar el verano pasado.",
        "¿Cuándo dejó de fumar Elena?",
        "verano de 2023",
        {
            "Elena dejó de fumar en agosto de 2023.": "held",
            "Elena dejó de fumar.": "left_out",
        },
    ),
    Said(
        date(2024, 5, 20),
        "Llevo tres meses yendo a natación.",
        "¿Desde cuándo va Elena a natación?",
        "febrero de 2024",
        {
            "Elena va a natación desde febrero de 2024.": "held",
            "El 20 de mayo de 2024 Elena llevaba tres meses yendo a natación.": "held",
        },
    ),
    Said(
        date(2024, 5, 20),
        "El martes que viene llega mi madre.",
        "¿Cuándo llega la madre de Elena?",
        "28 de mayo de 2024",
        {
            "La madre de Elena llega el martes 28 de mayo de 2024.": "held",
        },
    ),
    Said(
        date(2024, 2, 9),
        "Hier j'ai vendu mon vélo.",
        "Quand Luc a-t-il vendu son vélo ?",
        "8 février 2024",
        {
            "Luc a vendu son vélo le 8 février 2024.": "held",
            "Luc a vendu son vélo le 18 février 2024.": "other",
            "Luc a vendu son vélo hier.": "left_out",
            "9 février 2024 : Luc a vendu son vélo hier.": "held",
        },
    ),
    Said(
        date(2024, 2, 9),
        "Le mois prochain je change d'appartement.",
        "Quand Luc change-t-il d'appartement ?",
        "mars 2024",
        {
            "Luc change d'appartement en mars 2024.": "held",
            "Luc change d'appartement le mois prochain (dit le 9 février 2024).": "held",
        },
    ),
    Said(
        date(2024, 2, 9),
        "J'ai arrêté la trompette il y a deux ans.",
        "Quand Luc a-t-il arrêté la trompette ?",
        "2022",
        {
            "Luc a arrêté la trompette en 2021.": "other",
        },
    ),
    Said(
        date(2024, 8, 14),
        "Gestern habe ich den Garten verkauft.",
        "Wann hat Jana den Garten verkauft?",
        "13. August 2024",
        {
            "Jana hat den Garten am 13. August 2024 verkauft.": "held",
            "Jana hat den Garten am 14.08.2024 verkauft.": "other",
            "Jana hat den Garten gestern verkauft.": "left_out",
            "14. August 2024: Jana hat gestern den Garten verkauft.": "held",
        },
    ),
    Said(
        date(2024, 8, 14),
        "Letzten März bin ich nach Bonn gezogen.",
        "Wann ist Jana nach Bonn gezogen?",
        "März 2024",
        {
            "Jana ist im März 2024 nach Bonn gezogen.": "held",
            "Jana ist im Mai 2024 nach Bonn gezogen.": "other",
        },
    ),
    Said(
        date(2024, 8, 14),
        "In zwei Wochen beginnt mein Kurs.",
        "Wann beginnt Janas Kurs?",
        "28. August 2024",
        {
            "Janas Kurs beginnt in zwei Wochen.": "left_out",
        },
    ),
)
