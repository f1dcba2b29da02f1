"""What `bench/memory.py` plants in conversations: changes of mind, facts and standing preferences.

Each list has a half to develop with (`DEVELOPED_ON`) and one that was written before the rules and is only reported
(`UNSEEN`). A conversation is these sentences with ordinary talk between them.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """Something that the user said, and later said differently."""

    first: str
    later: str
    question: str
    old: str
    new: str


@dataclass(frozen=True)
class Pair:
    """Two statements that are both still true."""

    first: str
    later: str
    question: str


CHANGES_DEVELOPED_ON = (
    Change(
        "We will hold the offsite in Lisbon this year.",
        "I changed my mind about the offsite: let's hold it in Porto.",
        "Where is our offsite?",
        "Lisbon",
        "Porto",
    ),
    Change(
        "The budget for the kitchen is 12,000 euros.",
        "The budget for the kitchen is 15,500 euros now.",
        "What is my budget for the kitchen?",
        "12,000",
        "15,500",
    ),
    Change(
        "Let's use MySQL as the database for the shop.",
        "Actually, we decided to switch the shop's database to PostgreSQL.",
        "Which database does the shop use?",
        "MySQL",
        "PostgreSQL",
    ),
    Change(
        "My flight to Oslo leaves on 3 March.",
        "My flight to Oslo was rebooked, it leaves on 9 March.",
        "When does my flight to Oslo leave?",
        "3 March",
        "9 March",
    ),
    Change(
        "I want to name the puppy Bruno.",
        "We no longer want to name the puppy Bruno. It will be Oskar.",
        "What will the puppy be called?",
        "Bruno",
        "Oskar",
    ),
    Change(
        "Please write the report in German.",
        "Please write the report in English instead.",
        "In which language should the report be?",
        "German",
        "English",
    ),
    Change(
        "The meeting with the architect is on Tuesday.",
        "The architect moved our meeting to Friday.",
        "When do I meet the architect?",
        "Tuesday",
        "Friday",
    ),
    Change(
        "I am learning the cello.",
        "I gave up the cello and am learning the trumpet now.",
        "Which instrument am I learning?",
        "learning the cello",
        "trumpet",
    ),
    Change(
        "The server's port is 8080.",
        "Correction: the server's port is 9443.",
        "Which port does the server have?",
        "8080",
        "9443",
    ),
    Change(
        "Our living room will be painted green.",
        "On second thought, paint the living room white.",
        "What colour will the living room have?",
        "green",
        "white",
    ),
    Change(
        "My phone number is 0171 5550123.",
        "I have a new phone number: 0160 5559876.",
        "What is my phone number?",
        "0171 5550123",
        "0160 5559876",
    ),
    Change(
        "For dinner on Saturday I plan to cook risotto.",
        "I will cook ramen on Saturday rather than risotto.",
        "What am I going to cook for dinner on Saturday?",
        "cook risotto",
        "ramen",
    ),
)
CHANGES_UNSEEN = (
    Change(
        "The wedding is at the lake house.",
        "We moved the wedding to the botanical garden.",
        "Where is the wedding?",
        "lake house",
        "botanical garden",
    ),
    Change(
        "My doctor is Dr. Hansen.",
        "I have a new doctor, Dr. Oyelaran.",
        "Who is my doctor?",
        "Hansen",
        "Oyelaran",
    ),
    Change(
        "I run the tests with unittest.",
        "I run the tests with pytest these days.",
        "What do I run the tests with?",
        "unittest",
        "pytest",
    ),
    Change(
        "The rent for the studio is 840 pounds.",
        "They raised the rent for the studio to 910 pounds.",
        "How much is the rent for the studio?",
        "840",
        "910",
    ),
    Change(
        "I would like the newsletter to go out on Mondays.",
        "Scrap Mondays, the newsletter goes out on Thursdays.",
        "On which day does the newsletter go out?",
        "on Mondays",
        "Thursdays",
    ),
    Change(
        "Anna will give the opening talk.",
        "Anna cannot give the opening talk, so Farid will do it.",
        "Who gives the opening talk?",
        "Anna will",
        "Farid",
    ),
    Change(
        "I drink my coffee with oat milk.",
        "I stopped taking oat milk in my coffee, I drink it black.",
        "How do I drink my coffee?",
        "with oat milk",
        "black",
    ),
    Change(
        "Our app targets iOS 15 at least.",
        "Our app targets iOS 17 at least from today on.",
        "Which iOS version does our app target?",
        "iOS 15",
        "iOS 17",
    ),
    Change(
        "The password reset link expires after 24 hours.",
        "Make that 6 hours for the password reset link.",
        "When does the password reset link expire?",
        "24 hours",
        "6 hours",
    ),
    Change(
        "I booked the hotel Bellevue in Geneva.",
        "I cancelled the Bellevue and booked the hotel Cornavin in Geneva.",
        "Which hotel in Geneva did I book?",
        "booked the hotel Bellevue",
        "Cornavin",
    ),
    Change(
        "My favourite tea is Darjeeling.",
        "I like Sencha better than Darjeeling now, it is my favourite tea.",
        "What is my favourite tea?",
        "tea is Darjeeling",
        "Sencha",
    ),
    Change(
        "The thesis will be about sea ice.",
        "My supervisor and I agreed that the thesis will be about glaciers instead.",
        "What is my thesis about?",
        "sea ice",
        "glaciers",
    ),
    Change(
        "We deploy on Fridays at noon.",
        "We do not deploy on Fridays any more. Deployments happen on Wednesdays at ten.",
        "When do we deploy?",
        "at noon",
        "Wednesdays",
    ),
    Change(
        "My daughter's school is the Montessori school.",
        "My daughter changed school, she goes to St. Mary's.",
        "Which school does my daughter go to?",
        "Montessori",
        "St. Mary's",
    ),
    Change(
        "Ship the parcel to my office.",
        "Don't ship the parcel to my office, ship it to my neighbour.",
        "Where should the parcel be shipped?",
        "Ship the parcel to my office",
        "neighbour",
    ),
    Change(
        "The team has seven people.",
        "The team has nine people since Marta and Joel joined.",
        "How many people are in the team?",
        "seven people",
        "nine people",
    ),
    Change(
        "I weigh 82 kg.",
        "I weigh 79 kg.",
        "How much do I weigh?",
        "82 kg",
        "79 kg",
    ),
    Change(
        "The launch date is 14 October.",
        "The launch date slipped to 2 November.",
        "What is the launch date?",
        "14 October",
        "2 November",
    ),
    Change(
        "Use tabs in the config parser.",
        "Forget what I said about tabs, use four spaces in the config parser.",
        "Tabs or spaces in the config parser?",
        "Use tabs",
        "four spaces",
    ),
    Change(
        "My landlord's name is Petrov.",
        "The house was sold, my landlord's name is Lindqvist.",
        "What is the name of my landlord?",
        "Petrov",
        "Lindqvist",
    ),
    Change(
        "I am vegetarian, so no meat in the meal plan.",
        "I eat meat again, so the meal plan may have chicken.",
        "May the meal plan contain meat?",
        "no meat",
        "chicken",
    ),
    Change(
        "The cache keeps entries for ten minutes.",
        "We reduced how long the cache keeps entries to ninety seconds.",
        "How long does the cache keep entries?",
        "ten minutes",
        "ninety seconds",
    ),
    Change(
        "I live in Graz.",
        "I have moved, I live in Linz.",
        "Where do I live?",
        "in Graz",
        "Linz",
    ),
    Change(
        "The logo should be blue.",
        "The logo should be orange, not blue.",
        "Which colour should the logo have?",
        "should be blue",
        "orange",
    ),
)
STILL_TRUE = (
    Pair("My sister lives in Leeds.", "My brother lives in York.", "Where does my sister live?"),
    Pair("The port of the mailer is 2525.", "The port of the gateway is 8443.", "What is the port of the mailer?"),
    Pair("My dog Rex is afraid of thunder.", "Rex ate a whole sausage today.", "What is my dog afraid of?"),
    Pair("I booked a table for Friday at seven.", "The table for Friday is booked.", "For when is my table booked?"),
    Pair("The report has 40 pages.", "The report now has an index.", "How many pages does the report have?"),
    Pair("I play tennis with Olga.", "Now I am late for tennis with Olga.", "Who do I play tennis with?"),
    Pair("Our office is in Basel.", "The office in Basel gets new chairs.", "Where is our office?"),
    Pair("The exam is on 4 June.", "I am actually nervous about the exam.", "When is the exam?"),
    Pair("I take my tea without sugar.", "I bought a kilo of sugar for the cake.", "How do I take my tea?"),
    Pair("We use Terraform for the network.", "We use Ansible for the hosts.", "What do we use for the network?"),
    Pair("Marie leads the design team.", "Paul leads the sales team.", "Who leads the design team?"),
    Pair("My car is a grey Volvo.", "I washed my car instead of working.", "Which car do I have?"),
)
"""What must not be taken for a change."""


@dataclass(frozen=True)
class Stated:
    """A fact as the user states it, and the part of it that must not be lost."""

    text: str
    value: str


FACTS_DEVELOPED_ON = (
    Stated("My daughter is called Ingrid and she turned six last week.", "Ingrid"),
    Stated("I work as a nurse at the children's hospital.", "nurse"),
    Stated("We live in Aarhus, close to the harbour.", "Aarhus"),
    Stated("My car is a blue Skoda.", "Skoda"),
    Stated("The contract with the printer ends in August.", "August"),
    Stated("I have three cats.", "three cats"),
    Stated("My boss is Mr. Takahashi.", "Takahashi"),
    Stated("I pay 950 euros of rent.", "950"),
    Stated("My shoe size is 43.", "43"),
    Stated("Our server runs Debian.", "Debian"),
    Stated("The locker code is 7719.", "7719"),
    Stated("I was born in 1987.", "1987"),
    Stated("My brother Tomas studies law.", "Tomas"),
    Stated("The dentist is at Park Street 12.", "Park Street 12"),
    Stated("My train leaves at half past six.", "half past six"),
    Stated("I have been married for eleven years.", "eleven years"),
    Stated("The novel I am writing is called Salt Roads.", "Salt Roads"),
    Stated("Our product is sold in fourteen countries.", "fourteen"),
    Stated("The invoice number is 20417.", "20417"),
    Stated("My grandmother comes from Trieste.", "Trieste"),
    Stated("I drive 30 km to work every day.", "30 km"),
    Stated("The boat belongs to my uncle.", "uncle"),
    Stated("We decided to plant apple trees behind the house.", "apple trees"),
    Stated("My laptop has 16 GB of memory.", "16 GB"),
    Stated("The choir meets on Wednesdays.", "Wednesdays"),
    Stated("I broke my left wrist in spring.", "left wrist"),
    Stated("The password manager we use is Bitwarden.", "Bitwarden"),
    Stated("Our wedding is on 21 June.", "21 June"),
    Stated("My thesis is about bees.", "bees"),
    Stated("The kitchen is four metres long.", "four metres"),
    Stated("Our dog is a dachshund called Polly.", "Polly"),
    Stated("I earn 3,400 a month.", "3,400"),
    Stated("My neighbour is a plumber.", "plumber"),
    Stated("The backup runs at 02:30.", "02:30"),
    Stated("I have a meeting with Clara tomorrow.", "Clara"),
    Stated("We have 240 customers.", "240"),
    Stated("The spare key is under the flower pot.", "flower pot"),
    Stated("I sold my piano.", "piano"),
    Stated("My blood type is A negative.", "A negative"),
    Stated("The project is called Nightjar.", "Nightjar"),
    Stated("The files are in /srv/photos/2019.", "/srv/photos/2019"),
    Stated("My email is jonas@example.com.", "jonas@example.com"),
)
PREFERENCES_DEVELOPED_ON = (
    Stated("I am allergic to peanuts.", "peanuts"),
    Stated("Please always answer in short paragraphs.", "short paragraphs"),
    Stated("I don't eat fish.", "fish"),
    Stated("Use the metric system.", "metric system"),
    Stated("I prefer trains to planes.", "trains"),
    Stated("Call me Theo, not Theodor.", "Theo"),
    Stated("Never suggest anything with alcohol.", "alcohol"),
    Stated("I hate phone calls, so write emails.", "phone calls"),
)
FACTS_UNSEEN = (
    Stated("My son Emil plays the violin.", "Emil"),
    Stated("I teach chemistry at a secondary school.", "chemistry"),
    Stated("We moved to Ghent two years ago.", "Ghent"),
    Stated("My bike is a Gazelle.", "Gazelle"),
    Stated("The lease runs until March.", "March"),
    Stated("I own two flats.", "two flats"),
    Stated("The lawyer's name is Ms. Adeyemi.", "Adeyemi"),
    Stated("The loan is 18,000 francs.", "18,000"),
    Stated("My ring size is 56.", "56"),
    Stated("Our shop uses Stripe for payments.", "Stripe"),
    Stated("The alarm code is 4402.", "4402"),
    Stated("My father died in 2011.", "2011"),
    Stated("My cousin Lucia is a pilot.", "Lucia"),
    Stated("The workshop is at Mill Lane 7.", "Mill Lane 7"),
    Stated("The ferry goes at a quarter to nine.", "quarter to nine"),
    Stated("I have been vegetarian since I was twelve.", "twelve"),
    Stated("My band is called The Paper Tigers.", "Paper Tigers"),
    Stated("There are twenty-three pupils in my class.", "twenty-three"),
    Stated("My membership number is 88213.", "88213"),
    Stated("My wife grew up in Valparaíso.", "Valparaíso"),
    Stated("The garden is 400 square metres.", "400 square metres"),
    Stated("The cabin belongs to my aunt.", "aunt"),
    Stated("We agreed to repaint the fence in autumn.", "fence"),
    Stated("The camera has a 35 mm lens.", "35 mm"),
    Stated("Our book club meets on the first Sunday of the month.", "first Sunday"),
    Stated("I had an operation on my right knee.", "right knee"),
    Stated("We keep the recipes in Notion.", "Notion"),
    Stated("The deadline for the grant is 5 May.", "5 May"),
    Stated("My dissertation is about medieval trade.", "medieval trade"),
    Stated("The sofa is two metres wide.", "two metres"),
    Stated("Our parrot's name is Captain.", "Captain"),
    Stated("The course costs 620.", "620"),
    Stated("My flatmate is an electrician.", "electrician"),
    Stated("The cleaning starts at 17:15.", "17:15"),
    Stated("I am meeting Joaquim on Tuesday.", "Joaquim"),
    Stated("The mailing list has 1,150 readers.", "1,150"),
    Stated("The passports are in the top drawer.", "top drawer"),
    Stated("I quit smoking.", "smoking"),
    Stated("My star sign is Libra.", "Libra"),
    Stated("The new release is called Marigold.", "Marigold"),
    Stated("The scans are in ~/archive/scans.", "~/archive/scans"),
    Stated("You can reach my accountant at mira@example.org.", "mira@example.org"),
)
PREFERENCES_UNSEEN = (
    Stated("I can't have gluten.", "gluten"),
    Stated("Keep your answers under a hundred words.", "hundred words"),
    Stated("I'm a vegan.", "vegan"),
    Stated("Write dates as day, month, year.", "day, month, year"),
    Stated("I would rather walk than drive.", "walk"),
    Stated("My pronouns are they and them.", "they and them"),
    Stated("Don't use emojis when you talk to me.", "emojis"),
    Stated("I love anything with cinnamon.", "cinnamon"),
)
SMALL_TALK = (
    "That must have been awesome!",
    "Wow, I can imagine how proud you were.",
    "It was such a great experience, I really enjoyed every moment of it.",
    "Haha, yes, things like that always happen to me too.",
    "I think nature is so calming, don't you?",
    "Thanks, that means a lot to me.",
    "It's never easy, but we always find a way.",
    "I'm really looking forward to it, it will be fun.",
    "You always know what to say.",
    "That sounds lovely. I must try it some time.",
    "I never thought about it like that before.",
    "Time flies, doesn't it?",
    "Friends like that are the best, I prefer them to any party.",
    "It has been a busy week, but a good one.",
    "I hope so too. We will see how it goes.",
    "What a beautiful picture, it makes me want to travel.",
)
SMALL_ANSWERS = (
    "That sounds wonderful! It must mean a lot to you to share such moments.",
    "I'm glad to hear that. Taking time for yourself is so important, and you have every reason to be proud.",
    "Absolutely. Little things like these make life richer. What else is on your mind?",
    "Oh wow, how exciting! I can only imagine how that must have felt.",
    "You never know what comes next, but with your attitude it will surely work out.",
)
