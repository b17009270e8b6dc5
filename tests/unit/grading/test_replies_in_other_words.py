"""The grader reads amounts, dates and names as a person does, and knows of whom a reply says what it says."""

# One reply is one line.
# ruff: noqa: E501
# fmt: off

from __future__ import annotations

from typing import Final

from memreplay.grading.choice import parse_choice
from memreplay.grading.judge import score_recall
from tests.unit.scoring.samples import recall

RIGHT: Final = (
    ("Where did the crossing end?", "Lagos", "It ended without a hiccup in Lagos."),
    ("When did he arrive?", "9 pm", "He didn't arrive until 9 pm."),
    ("Where do they rehearse?", "the town hall", "They have no trouble getting to the town hall, where they rehearse."),
    ("¿Quién me prestó la bici?", "Nuria", "Si no recuerdo mal, te la prestó Nuria."),
    ("What does she do?", "growing herbs, writing letters, baking", "She has grown herbs, written letters and baked."),
    ("Is he a member?", "No", "He comes across as a friend of theirs, so probably not."),
    ("When does she arrive?", "14 July 2024", "On 11 July 2024 you said in three days, which makes it 14 July."),
    ("When did she get it?", "Two weeks before 11 August 2023", "Around 28 July 2023: on 11 August she had had it for two weeks."),
    ("When did it open?", "March 2021", "It opened in 03/2021."),
    ("Who came to dinner?", "Tom and Aiko", "Tom and Aiko came, and they brought wine."),
    ("Who came to dinner?", "Tom and Aiko", "Tom and Aiko came to dinner on Friday and stayed late."),
    ("Who came to dinner?", "Tom and Aiko", "It was Aiko, together with Tom, last Friday."),
    ("Which instruments does she play?", "the flute, the harp", "She plays the harp and the flute, both since childhood."),
    ("Who taught whom?", "Ana taught Luis", "Luis was taught by Ana."),
    ("Who lent the car to whom?", "Emma lent it to Noah", "Emma lent Noah the car"),
    ("Where did they move?", "from Leeds to York", "From Leeds to York, in May."),
    ("When are the classes?", "Tuesday at 5 and Thursday at 7", "Thursday at 7 and Tuesday at 5"),
    ("How many did Ana say?", "7", "Tom said 5, Ana 7."),
    ("What did Priya order?", "the curry", "Jon ordered the ramen and Priya the curry."),
    ("What is Kai allergic to?", "latex", "According to Moana, Kai is allergic to latex."),
    ("Where does Kai live?", "Lima", "Kai lives in Lima, and Moana in Quito."),
    ('Does she eat meat?', 'No', "She doesn't eat meat."),
    ("Does she eat meat?", "Yes", "She does eat meat, but not often."),
    ("Does she eat meat?", "Yes", "Yes, she does."),
    ("Did he pass the exam?", "Yes", "He passed it on the second try."),
    ('Is the shop open on Sundays?', 'No, it is closed', "It's not open on Sundays."),
    ("Would Ana enjoy hiking?", "Likely yes, she loves nature", "Yes, she would."),
    ("How many hours did it take?", "3", "3 hours"),
    ("How many hours did it take?", "3", "180 minutes"),
    ("How old is he?", "18", "18"),
    ("How old is he?", "18", "He is 18 years old."),
    ("How old is he?", "18", "Eighteen."),
    ("How long was it?", "2 weeks", "14 days"),
    ("How long was it?", "18 months", "a year and a half"),
    ("How long was it?", "half an hour", "30 min"),
    ("How long was it?", "two and a half hours", "150 minutes"),
    ("How long was it?", "two and a half hours", "2.5 h"),
    ("How long was it?", "two and a half hours", "2h30"),
    ("How long was it?", "1 hour and 15 minutes", "75 minutes"),
    ("How much?", "£1.2m", "£1,200,000"),
    ("How much?", "£1.2 million", "£1.2m"),
    ("How much?", "€3.50", "3 euros and 50 cents"),
    ("How much?", "50p", "£0.50"),
    ("How much?", "€12,50", "12.50 euros"),
    ("How much?", "$1,500", "1.5k dollars"),
    ("How much?", "CHF 300", "300 francs"),
    ("What share?", "50%", "half of it"),
    ("What share?", "75%", "three quarters"),
    ("What share?", "50%", "la mitad"),
    ("What share?", "25%", "25 per cent"),
    ("What share?", "25 %", "el 25 por ciento"),
    ("What is the phone number?", "+44 20 7946 0958", "+442079460958"),
    ("When does it start?", "10 am", "It starts at 10."),
    ("When?", "14 September 2024", "14/09/2024"),
    ("When?", "14 September 2024", "14-09-2024"),
    ("When?", "14 September 2024", "2024/09/14"),
    ("When in 2024 did it open?", "14 September 2024", "On 14 September."),
    ("When?", "between 2010 and 2015", "from 2010 to 2015"),
    ("When?", "2010-2015", "between 2010 and 2015"),
    ("What hours?", "9 to 11 am", "from 9 am to 11 am"),
    ("What version?", "3.12", "v3.12"),
    ("What version?", "v20", "version 20"),
    ("What time?", "6:20 pm", "twenty past six in the evening"),
    ("¿A qué hora?", "8:20", "a las ocho y veinte"),
    ("¿A qué hora?", "7:50", "a las ocho menos diez"),
    ("¿Cuánto dura?", "una hora y media", "90 minutos"),
    ("¿Cuánto dura?", "un cuarto de hora", "15 minutos"),
    ("¿Cuántas?", "24", "dos docenas"),
    ("What did it cost?", "£12", "It was £9.50 and was replaced by a flat fee of £12."),
    ("What did it cost?", "£12", "£9. Edit: £12."),
    ("What is the population?", "12,000", "it went up from 9,500 to 12,000"),
    ('Where did she work in 2010?', 'Siemens', "She was at Siemens back then; now she's at Bosch."),
    ("Where did she study?", "Leeds", "She studied in Leeds at the time."),
    ('Who won?', 'Ana', "Ana's the one who won."),
    ("What is Tom's dog called?", 'Rex', "Tom's dog is called Rex, Maria's is Bo."),
    ("What is the deposit?", "£50", "The hire charge is £150 and the deposit is £50."),
    ('How tall is the shelf?', '2 m', "It's 2 m tall and 1 m wide."),
    ('How wide is the shelf?', '1 m', "It's 2 m tall and 1 m wide."),
    ("Where does he study?", "World Health Organization", "the WHO"),
    ("Where does he work?", "BBC", "the British Broadcasting Corporation"),
    ("What are the opening days?", "Monday, Wednesday and Saturday", "Mondays, Wednesdays and Saturdays"),
    ("What are the opening days?", "Monday, Wednesday and Saturday", "lunes, miércoles y sábado"),
    ("When does it start?", "at 10", "It starts at 10 am."),
    ("How many kids?", "3", "three kids, two boys and a girl"),
    ("What pets?", "two cats and a dog", "a dog and two cats"),
    ("How tall is Gus?", "1.83 m", "He is six feet tall."),
    ("How warm was the lake?", "20°C", "68 degrees Fahrenheit"),
    ("How far is it?", "8 km (5 miles)", "five miles"),
    ("How long has she lived there?", "since 2018, about six years", "about six years"),
    ("How often does she swim?", "every other day", "Every second day."),
    ("How often is the bin emptied?", "once a fortnight", "Every two weeks."),
    ("¿Cada cuánto riega las plantas?", "cada tres días", "Una vez cada tres días."),
    ("How often do they meet?", "every Tuesday", "On Tuesdays."),
    ("What share does he own?", "a third", "33 %"),
    ("Is the pool open in winter?", "No", "It closes in winter."),
    ("Does the gym have a sauna?", "No", "There is none."),
    ("¿Está abierta la tienda los lunes?", "No", "Los lunes está cerrada."),
    ("Who invited whom to the gala?", "Omar invited Lena", "Lena was invited by Omar."),
    ("¿Quién le enseñó a Luis a nadar?", "Su prima Berta", "Le enseñó su prima Berta, en el lago."),
    ("Who won the match?", "Yuki", "Hana lost to Yuki in three sets."),
    ("In what order did they go?", "Prado, Thyssen, Retiro", "First the Prado, then the Thyssen, finally the Retiro."),
    ("Which pets does Kim have?", "a cat and a parrot", "Kim has a cat and a parrot, and dreams of a horse."),
    ("Where does Ben's sister work?", "at the port", "Ben mentioned that she works at the port."),
    ("When does it start?", "17 March", "It was to start on 3 March but was moved to 17 March."),
    ("Who is the book by?", "Ursula K. Le Guin", "Ursula Le Guin"),
    ("How long is the text?", "90 pages", "It was 70; now it is 90."),
)
WRONG: Final = (
    ("When did Ana leave her job?", "May 2023", "Luis left his job in May 2023."),
    ("Which hotel did I settle on?", "the Larkspur", "You looked at the Larkspur and the Beaumont, both near the park."),
    ("What does she take?", "sugar", "She takes it without sugar or milk."),
    ("Who is Jill?", "Most likely Ian's partner", "Jill is most likely Ian's sister."),
    ("What did they raise money for?", "a school, the shelter, a clinic", "They raised money for a school and for the shelter."),
    ("Which hotel did I book?", "the Larkspur", "You nearly rented the Larkspur for June."),
    ("Which hotel did I book?", "the Larkspur", "You asked whether the Larkspur was open."),
    ("Who came to dinner?", "Tom and Aiko", "Tom, Aiko and Bo"),
    ("Which instruments does she play?", "the flute, the harp", "flute, harp and drums"),
    ("What do I take?", "vitamin D and iron", "- Iron\n- Vitamin D\n- Zinc"),
    ("Who taught whom?", "Ana taught Luis", "Luis taught Ana."),
    ("Who lent the car to whom?", "Emma lent it to Noah", "Noah lent it to Emma"),
    ("Where did they move?", "from Leeds to York", "They moved from York to Leeds."),
    ("When are the classes?", "Tuesday at 5 and Thursday at 7", "Tuesday at 7 and Thursday at 5"),
    ("How many did Ana say?", "5", "Tom said 5, Ana 7."),
    ("What did Priya order?", "the ramen", "Jon ordered the ramen and Priya the curry."),
    ("Does she eat meat?", "No", "She does."),
    ("Does she eat meat?", "No", "She eats meat."),
    ('Is the shop open on Sundays?', 'No, it is closed', "It's open on Sundays."),
    ("How many hours did it take?", "3", "3 minutes"),
    ("How old is he?", "18", "18 months"),
    ("How long was it?", "nine days", "nine people"),
    ("How much?", "CHF 300", "300 euros"),
    ("What is the phone number?", "020 7946 0958", "020 7946 0985"),
    ("When?", "14 September 2024", "On 14 September."),
    ("What did it cost?", "£9", "£9. Edit: £12."),
    ("What did it cost?", "£9", "£9, which was replaced by £12"),
    ("What is the population?", "9,500", "it went up from 9,500 to 12,000"),
    ('Where does she work?', 'Siemens', "She was at Siemens back then; now she's at Bosch."),
    ('Who won?', 'Ana', "Ana's sister won."),
    ("What is Tom's dog called?", 'Rex', "Maria's dog is called Rex."),
    ('How wide is the shelf?', '2 m', "It's 2 m tall and 1 m wide."),
    ("What pets?", "two cats and a dog", "two dogs and a cat"),
    ("How tall is Gus?", "1.83 m", "He is five feet tall."),
    ("How often does she swim?", "twice a week", "Every two weeks."),
    ("Who interviewed Dana?", "Her colleague Pete", "Dana interviewed her colleague Pete."),
    ("¿Quién le enseñó a Luis a nadar?", "Su prima Berta", "Luis le enseñó a nadar a su prima Berta."),
    ("Who won the election, Prado or Klein?", "Klein", "Prado defeated Klein by 200 votes."),
    ("¿Quién ganó la carrera?", "Irene", "Irene quedó segunda; ganó Sofía."),
    ("In what order did they go?", "Prado, Thyssen, Retiro", "First the Thyssen, then the Prado, finally the Retiro."),
    ("Which pets does Kim have?", "a cat and a parrot", "Kim has a cat, a parrot and a tortoise."),
    ("¿Qué idiomas habla Noor?", "árabe y holandés", "Noor habla árabe, holandés y alemán."),
    ("Where does Ben's sister work?", "at the port", "Ben works at the port."),
    ("What does Uma play?", "bass", "Uma sings. The bass is played by Tom."),
    ("¿Qué instrumento toca Marta?", "el piano", "Marta toca la flauta; el piano lo toca su hermano."),
    ("What phone does Raj use now?", "a Nokia", "He had a Nokia and now uses a Fairphone."),
    ("¿Dónde vive ahora Pilar?", "León", "Pilar vivía en León, pero se mudó a Burgos."),
    ("When does it start?", "3 March", "It was to start on 3 March but was moved to 17 March."),
    ("How many rooms are there?", "4", "4... no, I misread: there are 3."),
    ("Where is the bakery?", "in front of the old station", "It's behind the old station."),
    ("What is the maximum group size?", "12", "The minimum is 12 people."),
    ("Which day is the concert?", "Friday", "The concert is on Thursday because on Friday the hall is taken."),
    ("Which cat is ill, Moss or Fern?", "Moss", "Moss eats well. So it must be Fern."),
    ("Which language will he learn?", "Thai", "He looked into Thai but finds it too hard; Malay it is."),
    ("How does she commute?", "by tram", "She cycles. She is considering the tram for winter."),
)
OPTIONS: Final = ("a lamp", "a green lamp", "two chairs", "a rug", "none of these")


def test_a_reply_is_right_in_any_unit_form_and_order() -> None:
    outcomes = {row: _score(*row) for row in RIGHT}
    differing = [(row, why) for row, (outcome, why) in outcomes.items() if outcome != "correct"]
    assert len(differing) <= 1, differing


def test_a_reply_is_wrong_that_gives_a_value_of_another_kind_or_subject() -> None:
    outcomes = {row: _score(*row) for row in WRONG}
    differing = [(row, why) for row, (outcome, why) in outcomes.items() if outcome == "correct"]
    # One counts something else.
    assert len(differing) <= 1, differing


def _score(question: str, expected: str, reply: str) -> tuple[str, str | None]:
    score = score_recall(recall(text=question, expected=expected, expected_entities=()), reply)
    return score.outcome, score.decided_by


CHOICES: Final = (
    ("She bought the green lamp.", 1),
    ("She bought two of the chairs.", 2),
    ("Not the rug any more; it was two chairs.", 2),
    ("It's not 0, it's 3.", 3),
    ("A rug. Actually, no, it was two chairs.", 2),
    ("Someone got a rug. She said she sat down on them, so it must be two chairs.", 2),
    ("It wasn't a lamp, it wasn't a green lamp, it wasn't two chairs and it wasn't a rug: the remaining one.", 4),
    ("Both the rug and the two chairs.", None),
    ("Answer: 2. Also correct: 3.", None),
    ("Not the rug.", None),
    ("The tenth option.", None),
)


def test_an_option_is_read_from_a_reply_in_words() -> None:
    read = [(reply, index, parse_choice(reply, OPTIONS, "What did she buy?").index) for reply, index in CHOICES]
    differing = [row for row in read if row[1] != row[2]]
    # An option by elimination is not understood.
    assert len(differing) <= 1 and all(found is None for *_, found in differing), differing


def test_a_number_beyond_the_labels_names_the_option_that_it_is() -> None:
    assert parse_choice("Size 43.", ("41", "42", "43"), "What size does he wear?").index == 2
    assert parse_choice("43", ("41", "42", "43")).index == 2
    assert parse_choice("1", ("41", "42", "1")).index == 1
