"""Each rule finds its form of sentence, and leaves sentences that only look alike."""

from __future__ import annotations

from memory_backends.base import Exchange, Message
from memory_backends.hybrid.candidates import Candidate, candidates_of
from memory_backends.hybrid.rules.matching import ADVICE, RULES
from tests.tables import failing

FOUND: dict[str, dict[str, str]] = {
    "name": {
        "My name is Teresa Wold.": "Teresa Wold",
        "Hello, I'm Petra Lang.": "Petra Lang",
        "Call me Sunny.": "Sunny",
        "Hi, Ulla here.": "Ulla",
        "Me llamo Rosa Vidal.": "Rosa Vidal",
        "Soy Iker Etxea, encantado.": "Iker Etxea",
    },
    "employer": {
        "I work at Kestrel Foods.": "Kestrel Foods",
        "I've been working for Brightwater since May.": "Brightwater",
        "I teach chemistry at Hollins School.": "Hollins School",
        "I'm a buyer for Larkspur.": "Larkspur",
        "Trabajo en Cartonajes Ruiz.": "Cartonajes Ruiz",
        "Soy soldador en Astilleros Moa.": "Astilleros Moa",
    },
    "role": {
        "I'm a midwife.": "midwife",
        "I'm still an electrician.": "electrician",
        "I work as a pastry chef in town.": "pastry chef",
        "I'm recently divorced.": "divorced",
        "I'm vegan, so no honey.": "vegan",
        "Soy bibliotecaria.": "bibliotecaria",
    },
    "home": {
        "I live in Trondheim.": "Trondheim",
        "We moved to Fort William in spring.": "Fort William",
        "I'm based in Leuven now.": "Leuven",
        "Our house is in Whitby.": "Whitby",
        "Vivo en Teruel.": "Teruel",
        "Nos mudamos a Cuenca.": "Cuenca",
    },
    "origin": {
        "I'm originally from Malta.": "Malta",
        "I was born in Tampere.": "Tampere",
        "I grew up in West Cork.": "West Cork",
        "I come from Ghana.": "Ghana",
        "Nací en Mendoza.": "Mendoza",
        "Me crié en Lugo.": "Lugo",
    },
    "study": {
        "I study marine biology at night.": "marine biology at night",
        "I'm studying law.": "law",
        "I majored in French.": "in French",
        "I just graduated from a nursing school.": "from a nursing school",
        "Estudio derecho por las tardes.": "derecho por las tardes",
        "Me gradué en química.": "en química",
    },
    "allergy": {
        "She is allergic to penicillin.": "penicillin",
        "My son is allergic to eggs and milk.": "eggs and milk",
        "He has a peanut allergy.": "peanut",
        "We both have pollen allergies.": "pollen",
        "Soy alérgica al látex.": "látex",
        "Tiene alergia a los gatos.": "gatos",
    },
    "relation": {
        "My sister Wanda is visiting.": "Wanda",
        "Otto, my landlord, came by.": "Otto",
        "We have a dog called Pixel.": "Pixel",
        "My twins are Ida and Max.": "Ida and Max",
        "Mi cuñado Benito cocina.": "Benito",
        "Tenemos una gata que se llama Luna.": "Luna",
    },
    "favourite": {
        "My favourite season is autumn.": "autumn",
        "My favorite band is still Low.": "Low",
        "My favourite dish has been ramen.": "ramen",
        "Casablanca is my favourite film.": "Casablanca",
        "Mi plato preferido es la fabada.": "fabada",
        "Mi libro favorito es Pedro Páramo.": "Pedro Páramo",
    },
    "preference": {
        "I prefer trains to planes.": "trains to planes",
        "I'd much prefer a window seat.": "a window seat",
        "I'd rather walk than drive.": "walk than drive",
        "I usually prefer mornings.": "mornings",
        "Prefiero el té.": "el té",
        "Preferiría ir en barco.": "ir en barco",
    },
    "like": {
        "I like strong coffee.": "strong coffee",
        "I really love open water.": "open water",
        "I enjoy long walks.": "long walks",
        "I'm into pottery.": "pottery",
        "I'm a big fan of chess.": "chess",
        "Me encanta el jazz.": "el jazz",
    },
    "dislike": {
        "I hate early meetings.": "early meetings",
        "I can't stand loud music.": "loud music",
        "I don't like olives.": "olives",
        "I don't eat pork.": "pork",
        "No soporto el calor.": "el calor",
        "No me gustan las colas.": "las colas",
    },
    "taste of somebody": {
        "Berta adores rye bread.": "Berta adores rye bread",
        "My son hates leeks.": "My son hates leeks",
        "Otto won't eat liver.": "Otto won't eat liver",
        "My aunt can't stand jazz.": "My aunt can't stand jazz",
        "A Lola le gustan los gatos.": "A Lola le gustan los gatos",
        "My husband prefers night trains.": "My husband prefers night trains",
    },
    "condition": {
        "I have coeliac disease.": "coeliac disease",
        "My mother has arthritis.": "arthritis",
        "He was diagnosed with asthma.": "asthma",
        "Berta has type 1 diabetes.": "type 1 diabetes",
        "Tengo asma desde niño.": "asma",
        "She suffers from migraines.": "migraines",
    },
    "standing instruction": {
        "From now on give me metric units.": "From now on give me metric units",
        "Whenever I ask for a recipe, give two servings.": "Whenever I ask for a recipe, give two servings",
        "Always answer in French.": "Always answer in French",
        "Please never use my surname.": "Please never use my surname",
        "Every time I send a draft, list the typos.": "Every time I send a draft, list the typos",
        "A partir de ahora escribe en gallego.": "A partir de ahora escribe en gallego",
    },
    "prohibition": {
        "Don't use emojis.": "Don't use emojis",
        "And please do not round the totals.": "please do not round the totals",
        "Stop apologising.": "Stop apologising",
        "Please avoid abbreviations.": "Please avoid abbreviations",
        "No long lists, please.": "No long lists, please",
        "No me trates de usted.": "No me trates de usted",
    },
    "manner": {
        "Answer me in one sentence.": "Answer me in one sentence",
        "Keep it short from here.": "Keep it short from here",
        "I want you to write in the past tense.": "I want you to write in the past tense",
        "House rule: dates come before names.": "dates come before names",
        "Háblame de tú.": "Háblame de tú",
        "Contéstame sin rodeos.": "Contéstame sin rodeos",
    },
    "attribute": {
        "The rent is £740.": "£740",
        "My appointment is on 4 June.": "4 June",
        "The meeting starts at 10:15.": "10:15",
        "Our supplier is Norwood Paper.": "Norwood Paper",
        "La cita es el 3 de mayo.": "3 de mayo",
        "El alquiler es de 650 euros.": "650 euros",
    },
    "deadline": {
        "The deadline for the grant is 8 March.": "8 March",
        "The essay is due on Tuesday.": "Tuesday",
        "It has to be printed by 14 July.": "14 July",
        "You have until Friday.": "Friday",
        "La fecha límite es el 9 de abril.": "el 9 de abril",
        "El plazo acaba el lunes.": "el lunes",
    },
    "called": {
        "There is a café called Tinto.": "Tinto",
        "She wrote a novel titled “Salt”.": "Salt",
        "A boat named Marigold sank.": "Marigold",
        "The tool is called driftwatch.": "driftwatch",
        "Hay un bar que se llama Faro.": "Faro",
        "Leí un cuento titulado «Niebla».": "Niebla",
    },
    "correction": {
        "It was £75, not £57.": "£75",
        "Make that nine.": "nine",
        "I meant the green folder.": "the green folder",
        "It turned out to be a leak.": "a leak",
        "The class has changed to Thursday.": "Thursday",
        "No son 30, son 13.": "13",
    },
    "retraction": {
        "I no longer swim.": "swim",
        "I quit Northgate Dental last year.": "Northgate Dental",
        "The Hull trip is off.": "Hull trip",
        "We don't meet at Costa any more.": "Costa",
        "We have left Corvid Press.": "Corvid Press",
        "Ya no trabajo en Sevilla.": "Sevilla",
    },
    "reversal": {
        "I don't play chess any more.": "I don't play chess any more",
        "We're not going to Rome after all.": "We're not going to Rome after all",
        "My cousin is not vegan any more.": "My cousin is not vegan any more",
        "She doesn't drive these days.": "She doesn't drive these days",
        "I am not afraid of wasps now.": "I am not afraid of wasps now",
        "They don't meet in the hall any longer.": "They don't meet in the hall any longer",
    },
    "decision": {
        "We agreed on a small wedding.": "a small wedding",
        "I decided to sell the van.": "sell the van",
        "We've settled on oak.": "oak",
        "I'll go with the cheaper quote.": "the cheaper quote",
        "Hemos quedado en vernos allí.": "vernos allí",
        "Hemos decidido esperar un mes.": "esperar un mes",
    },
    "event": {
        "I joined a rowing club.": "joined a rowing club",
        "We bought a second freezer.": "bought a second freezer",
        "My car broke down yesterday.": "broke down yesterday",
        "I've just adopted an old greyhound.": "adopted an old greyhound",
        "He comprado una bici usada.": "He comprado una bici usada",
        "Vendimos la casa del pueblo.": "Vendimos la casa del pueblo",
    },
    "habit": {
        "I volunteer at the library.": "volunteer at the library",
        "We often hike in the hills.": "hike in the hills",
        "I've been learning the cello.": "learning the cello",
        "I used to fence at school.": "fence at school",
        "I play the oboe.": "play the oboe",
        "I still keep two beehives.": "keep two beehives",
    },
    "plan": {
        "I'm going to repaint the hall.": "repaint the hall",
        "We're planning a trip north.": "trip north",
        "I want to learn to weld.": "learn to weld",
        "I hope to retire early.": "retire early",
        "My dream is to open a bakery.": "open a bakery",
        "Quiero comprar un piano.": "comprar un piano",
    },
    "error message": {
        "It printed KeyError: user": "KeyError: user",
        "Then came error: cannot open shared object": "error: cannot open shared object",
        "The log says ECONNRESET while reading.": "ECONNRESET while reading",
        "The worker raised a TimeoutException again.": "TimeoutException",
        "It ended as OOMKilled twice.": "OOMKilled",
        "fatal: not a git repository": "fatal: not a git repository",
    },
    "setting": {
        "We use POOL_SIZE=20 now.": "20",
        "The file has LOG_LEVEL: debug in it.": "debug",
        "Set cache.ttl = 90s for me.": "90s",
        "It was max_conn=15 before.": "15",
        "Pon WORKERS=4 en el fichero.": "4",
        "Then LANG=C everywhere.": "C",
    },
    "resource": {
        "It sits on branch fix/login-form.": "fix/login-form",
        "The table is user_events.": "user_events",
        "Use the bucket `media-raw`.": "media-raw",
        "The queue jobs.high is full.": "jobs.high",
        "It listens on port 7070.": "7070",
        "Está en el puerto 9090.": "9090",
    },
    "version": {
        "We run redis:7.2.4 there.": "redis:7.2.4",
        "We are on Django 4.2 still.": "Django 4.2",
        "It broke with 2.31.0 yesterday.": "2.31.0",
        "The base is node@20.1.0 today.": "node@20.1.0",
        "We upgraded to Postgres 16.2 then.": "Postgres 16.2",
        "Usamos la 3.9.1 todavía aquí.": "3.9.1",
    },
    "identifier": {
        "Look at order_total in the view.": "order_total",
        "The function parseHeader fails.": "parseHeader",
        "It lives in /srv/app/config.": "/srv/app/config",
        "Type `make lint` first.": "make lint",
        "The page is https://status.example.org/today now.": "https://status.example.org/today",
        "Mira src-main/lib/core.py primero.": "src-main/lib/core.py",
    },
    "quantity": {
        "There were sixteen guests.": "sixteen guests",
        "The sack weighs 25 kg.": "25 kg",
        "It cost £310 with delivery.": "£310",
        "Sales fell by 12 % there.": "12 %",
        "The walk took forty minutes.": "forty minutes",
        "Hay doscientas sillas en la sala.": "doscientas sillas",
    },
    "date": {
        "People came on 9 November.": "9 November",
        "They open at 8:30 here.": "8:30",
        "She comes back next Tuesday.": "next Tuesday",
        "The bus leaves at 7pm sharp.": "7pm",
        "Llegan el 12 de enero.": "el 12 de enero",
        "Cierran los lunes y miércoles.": "los lunes y miércoles",
    },
    "place": {
        "They sell it at 12 Mill Lane.": "12 Mill Lane",
        "They met at 7 Station Road.": "7 Station Road",
        "People queue at 240 King Street.": "240 King Street",
        "Look for 3b Orchard Close.": "3b Orchard Close",
        "Está en la calle Mayor.": "calle Mayor",
        "Quedan en la plaza de España.": "plaza de España",
    },
    "name mentioned": {
        "The vet suggested Doctor Haas.": "Doctor Haas",
        "The train stops in Crewe.": "Crewe",
        "She reads Clarice Lispector.": "Clarice Lispector",
        "The choir sang with Ewa Nowak.": "Ewa Nowak",
        "Lo hizo un taller de Ramón.": "Ramón",
        "La carta viene de Ourense.": "Ourense",
    },
    "note": {
        "Hall: hook by the door": "hook by the door",
        "- Boiler house: key under the mat": "key under the mat",
        "Shift pattern: nights then lates": "nights then lates",
        "Contact for both: the finance desk": "the finance desk",
        "queen: marked blue, laying well": "marked blue, laying well",
        "Llaves: las tiene la portera": "las tiene la portera",
    },
    "given up": {
        "Backed out of the lease.": "Backed out of the lease",
        "The deal fell through.": "fell through",
        "Told them no on the course.": "Told them no on the course",
        "They let the matter rest.": "let the matter rest",
        "Decided against the loft.": "Decided against the loft",
        "De la denuncia me olvido.": "me olvido",
    },
    "change": {
        "People give 121 now.": "121",
        "She takes 815 now.": "815",
        "They found 31 in fact.": "31",
        "Err, it is forty.": "forty",
        "That has gone down to nine.": "nine",
        "Perdona, son cincuenta.": "cincuenta",
    },
    "statement": {
        "I get home at half past.": "I get home at half past",
        "We rent the garage next door.": "We rent the garage next door",
        "my boiler makes a knocking sound": "my boiler makes a knocking sound",
        "It's late, and our fridge doesn't close.": "our fridge doesn't close",
        "I can't lift heavy boxes.": "I can't lift heavy boxes",
        "Uso gafas para leer.": "Uso gafas para leer",
    },
}
"""Sentences that each rule reads, with the value."""

PASSED_OVER: dict[str, tuple[str, ...]] = {
    "name": ("Never call me Bob.", "I'm Spanish.", "Call me tomorrow.", "No me llamo así."),
    "employer": ("I work at home.", "I work for money.", "It works with Firefox.", "Trabajo en casa."),
    "role": ("I'm a bit tired.", "I'm a huge fan of tea.", "I'm the same.", "I'm hungry."),
    "home": ("I live in fear.", "It moved to Paris.", "We live in hope.", "Vivo en paz."),
    "origin": ("I'm from a small town.", "It comes from Italy.", "I was born in a barn.", "He grew up in Ghana."),
    "study": ("I studied hard.", "I graduated last week.", "The study was long.", "She studied law."),
    "allergy": ("I have an allergy.", "He isn't allergic to anything.", "She has a severe allergy.", "An alert."),
    "relation": (
        "My brother is Spanish.",
        "My sister called.",
        "My wife, Ana and I went.",
        "Her dog is called Pixel.",
    ),
    "favourite": ("It's a favourite.", "My favourite is that one?", "His favourite food is rice.", "My fave."),
    "preference": ("She prefers tea.", "I'd rather be dead.", "It is preferable.", "Do you prefer tea?"),
    "like": ("I like it.", "She likes tea.", "I love how you did that.", "It looks like rain."),
    "dislike": ("I hate it.", "He hates rain.", "I hate that.", "No odia nada."),
    "taste of somebody": ("It likes to rain.", "Who hates leeks?", "I love jazz.", "Berta is nice."),
    "condition": ("I have a car.", "The disease spreads.", "She has a dog.", "No tengo prisa."),
    "standing instruction": ("Never mind.", "Never again.", "I always forget.", "If you need help, ask."),
    "prohibition": ("Don't worry.", "No problem.", "No es broma.", "I don't use it."),
    "manner": ("Call me later today.", "She answers me slowly.", "I want you.", "Keep it."),
    "attribute": ("The rent is too high.", "My brother is Spanish.", "What is the rent?", "In the book is “X”."),
    "deadline": ("The deadline is close.", "It is due soon.", "We have a deadline.", "They meet on Friday."),
    "called": ("She called on Monday.", "He called me Ana.", "It is called the end.", "No se llama Luis."),
    "correction": ("I'm not sure.", "It was a nice day.", "Not bad!", "The cat is on the mat."),
    "retraction": (
        "I'm not sure.",
        "It's not Monday yet.",
        "I left the house.",
        "No problem.",
        "He stopped eating.",
    ),
    "reversal": ("I don't know.", "It is now raining.", "I'm not sure.", "He never came."),
    "decision": ("They agreed on nothing.", "I agree.", "It was decided.", "Decide soon."),
    "event": ("I loved it.", "I painted it because it was calming.", "It happened.", "She bought a car."),
    "habit": ("I go on.", "I have to leave now.", "I have no idea at all.", "They play the drums."),
    "plan": ("I want to know why.", "She wants to paint.", "The plan failed.", "I want to tell you something."),
    "error message": ("It was an error.", "No errors here.", "An exception to the rule.", "Everyone makes errors."),
    "setting": ("self.next = 3", "x = y", "a is b", "where a.id = 4"),
    "resource": ("The table is round.", "The branch fell.", "Put it in the bucket.", "A port in a storm."),
    "version": ("It was 3.5 hours.", "See Table 2.3 for it.", "It opens at 8.20 then.", "Rent 3.2 was agreed."),
    "identifier": ("See and/or below.", "A well-known fact.", "Mr MacDonald left.", "It is true."),
    "quantity": ("I 100% agree with that.", "It said 404 again.", "Two of them came.", "A lot of people."),
    "date": ("She may march.", "It is the first of many.", "Chapter 12 was long.", "On some day."),
    "place": ("It is 12 miles away.", "The road is long.", "A street of shops.", "Mi calle es larga."),
    "name mentioned": ("Oh Yes, it is.", "A Thing of beauty.", "It was the BBC.", "Nothing here."),
    "note": ("Note: this is fine", "Ana says: no", "She said: wait here", "Ready:"),
    "given up": ("Never mind.", "Never give up!", "He has let me rest.", "They fell asleep."),
    "change": ("It is 121.", "It has changed.", "She takes 815.", "Son cincuenta."),
    "statement": (
        "I think that's about right.",
        "I was wondering about that.",
        "I'd say that it depends.",
        "We could try something else.",
        "Do I need a visa?",
    ),
}
"""Sentences that a rule has to leave alone, whatever others make of them."""

ADVISED: dict[str, dict[str, str]] = {
    "recommendation": {
        "I would take the 9:40 train.": "9:40",
        "I recommend Villa Rosa for that.": "Villa Rosa",
        "Try Kestrel Foods first.": "Kestrel Foods",
        "You should ask for £200 back.": "£200",
        "I suggest Thursday for the call.": "Thursday",
        "Te recomiendo Casa Lola.": "Casa Lola",
    },
    "computation": {
        "That makes 48 boxes.": "48 boxes",
        "The total is £91.20.": "£91.20",
        "12 times 4 = 48 boxes.": "48 boxes",
        "It comes to £630 a year.": "£630",
        "That is £35 in all.": "£35",
        "Son 84 euros.": "84 euros",
    },
}
"""Sentences of an assistant that are kept, with the value."""

NO_ADVICE: dict[str, tuple[str, ...]] = {
    "recommendation": ("I would be careful.", "Try again.", "You should rest.", "How nice of Ana."),
    "computation": ("That is good.", "It makes sense.", "Total chaos.", "What is the sum?"),
}


def said(text: str, label: str = "User", role: str = "user") -> tuple[Candidate, ...]:
    message = Message(turn_id="7", turn_number=7, session=1, role=role, label=label, text=text)
    return candidates_of(Exchange(messages=(message,)))


def of_rule(rule: str, candidates: tuple[Candidate, ...]) -> list[str]:
    return [candidate.value for candidate in candidates if candidate.rule == rule]


def pairs(table: dict[str, dict[str, str]]) -> list[tuple[str, str, str]]:
    return [(rule, text, value) for rule, sentences in table.items() for text, value in sentences.items()]


def each(table: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(rule, text) for rule, sentences in table.items() for text in sentences]


def test_a_rule_reads_its_form():
    def check(rule, sentence, value):
        assert value in of_rule(rule, said(sentence))

    assert failing(pairs(FOUND), check) == []


def test_a_rule_leaves_what_only_looks_alike():
    def check(rule, sentence):
        assert not of_rule(rule, said(sentence))

    assert failing(each(PASSED_OVER), check) == []


def test_an_assistants_figures_and_recommendations_are_kept():
    def check(rule, sentence, value):
        assert value in of_rule(rule, said(sentence, "AI", "assistant"))

    assert failing(pairs(ADVISED), check) == []


def test_other_words_of_an_assistant_are_not_kept():
    def check(rule, sentence):
        assert said(sentence, "AI", "assistant") == ()

    assert failing(each(NO_ADVICE), check) == []


def test_every_rule_has_a_name_of_its_own_and_examples():
    assert [rule.name for rule in RULES] == list(FOUND) == list(PASSED_OVER)
    assert [rule.name for rule in ADVICE] == list(ADVISED) == list(NO_ADVICE)
    assert all(len(sentences) >= 6 for sentences in (*FOUND.values(), *ADVISED.values()))
    assert all(len(sentences) >= 4 for sentences in (*PASSED_OVER.values(), *NO_ADVICE.values()))
