"""Scripted worlds with known dependencies: texts on many subjects, and answers that draw on some of them.

Each item comes with three stretches of answer that somebody wrote with the item in view: one quotes it, one says the
same in other words, one gives a fact of it. Each subject comes with things that a model knows anyway and that none of
its items say. A scene puts some items into a request, and into its answer stretches of a few of them, together with
such knowledge and with filler.

The rules of `insight/use.py` were tuned on `TUNED_ON`. `LOOKED_AT` was written at the same time and measured when that
was done, which showed that plain words were taken for a name; `UNSEEN` was written after that was put right, and
measured once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from windowpane.context.items import ItemRef, reference_ref


@dataclass(frozen=True)
class Told:
    """An item, and what an answer says that draws on it."""

    name: str
    text: str
    quote: str
    paraphrase: str
    fact: str


@dataclass(frozen=True)
class Subject:
    """Some items about one thing, what people ask about it, and what everybody knows of it."""

    question: str
    items: tuple[Told, ...]
    knowledge: tuple[str, ...]


@dataclass(frozen=True)
class Scene:
    """A request and its answer, and which of the items the answer draws on."""

    message: str
    texts: dict[ItemRef, str]
    around: tuple[str, ...]
    answer: str
    used: frozenset[ItemRef]


FILLER = (
    "Happy to help with that.",
    "Good question! Here is what I found.",
    "Let me know if you need anything else.",
    "I hope this makes it clear.",
    "In short, it depends on what you want to achieve.",
    "Please tell me if something does not work as expected.",
    "Here is a short summary of the most important points.",
    "Of course, you should check this with your team before you change anything.",
    "There are a few things to keep in mind.",
    "You can start right away; nothing else is needed.",
    "If that is not what you meant, tell me a little more about your situation.",
    "That is all there is to it.",
)

CORE = (
    "You are a helpful assistant. Answer the user's question with the information that you are given. "
    "If you do not know the answer, say so."
)

TUNED_ON: tuple[Subject, ...] = (
    Subject(
        "A customer wants their money back. What do I tell them?",
        (
            Told(
                "refund-policy",
                "Customers may return goods within 30 days of delivery. Refunds go back to the original payment method "
                "and reach the bank account after five working days. Gift cards, opened software and personalised "
                "goods are excluded. Orders above 400 euros need the approval of a shift supervisor before the money "
                "is released.",
                "Our rule is that refunds go back to the original payment method, so they cannot choose another card.",
                "They have a month after the parcel was delivered to send goods back. Engraved or otherwise "
                "personalised goods and unsealed software are excluded from that.",
                "Since this order is above 400 euros, a shift supervisor has to approve it first.",
            ),
            Told(
                "shipping-times",
                "Standard parcels leave the warehouse in Rotterdam on the day of the order when it is placed before "
                "14:30. Deliveries to islands and to Switzerland take four days longer because of customs. Express "
                "parcels are handed to the courier in the evening and cannot be redirected once scanned.",
                "Note that express parcels are handed to the courier in the evening, after which nothing can change.",
                "For Swiss addresses and for islands you have to add four days, since customs hold the parcel up.",
                "The cut-off in the Rotterdam warehouse is 14:30.",
            ),
            Told(
                "complaint-letters",
                "Answer complaints within two working days. Apologise once, name what went wrong without blaming a "
                "colleague, and offer one concrete remedy. Vouchers of ten percent are the default remedy; larger "
                "ones come from the hospitality budget HB-77 and are booked by the team lead.",
                "Remember to name what went wrong without blaming a colleague, and keep the rest short.",
                "A single apology and a single concrete remedy are enough; by default that remedy is a voucher worth "
                "ten percent.",
                "Anything larger is booked by the team lead on HB-77.",
            ),
        ),
        (
            "In many countries consumers have a legal right to withdraw from a purchase made online within two weeks.",
            "People who are treated kindly after a mistake often become the most loyal customers of a shop.",
        ),
    ),
    Subject(
        "How do I get a good loaf of bread?",
        (
            Told(
                "sourdough-method",
                "Feed the starter with rye flour twelve hours before mixing. Work with 78 percent hydration and two "
                "percent salt. Stretch and fold the dough every forty minutes, four times. Proof overnight in the "
                "fridge in a floured banneton, then bake in a preheated cast-iron pot, lid on for the first half.",
                "Then stretch and fold the dough every forty minutes until it holds its shape.",
                "Refresh your starter half a day ahead using rye flour, and let the shaped loaf proof overnight in "
                "the fridge in its banneton.",
                "Aim for 78 percent hydration.",
            ),
            Told(
                "pizza-dough",
                "Use tipo 00 flour with at least twelve grams of protein. Knead until the windowpane test succeeds, "
                "divide into balls of 260 grams and let them rest in a closed tray for six hours. Heat the steel for "
                "a full hour at the highest setting; the pizza is ready after ninety seconds to three minutes.",
                "It helps to heat the steel for a full hour at the highest setting before the first one goes in.",
                "Choose a strong tipo 00 flour and knead until a thin windowpane can be pulled without tearing.",
                "Each ball should weigh 260 grams.",
            ),
            Told(
                "croissant-lamination",
                "Keep butter and dough at the same temperature, about 13 degrees. Give the dough three single folds "
                "with a rest of thirty minutes between them. When butter shatters into flakes it is too cold; when it "
                "smears it is too warm. Egg wash goes on the faces only, never on the cut edges.",
                "Watch the butter: when it smears it is too warm, so put everything back into the fridge.",
                "Lamination works only while butter and dough share one temperature, and the dough needs a rest "
                "between its three single folds.",
                "Both should be at about 13 degrees when you begin lamination.",
            ),
        ),
        (
            "Bread goes stale mainly because the starch crystallises again, not because it dries out.",
            "Wild yeast and lactic acid bacteria live together and give the crumb its sour taste.",
        ),
    ),
    Subject(
        "Our database became slow this morning. What should I look at?",
        (
            Told(
                "postgres-vacuum",
                "Autovacuum on the orders table runs with a scale factor of 0.02 because the default lets bloat grow "
                "beyond eleven gigabytes. If dead tuples exceed four million, run VACUUM (ANALYZE) by hand outside "
                "office hours. Never run VACUUM FULL on the primary: it takes an exclusive lock.",
                "Whatever you do, never run VACUUM FULL on the primary while people are working.",
                "Check how many dead tuples the orders table has; bloat there used to grow past eleven gigabytes "
                "before autovacuum was made more eager.",
                "For that table autovacuum_vacuum_scale_factor should be 0.02.",
            ),
            Told(
                "replica-lag",
                "The reporting replica may lag by up to ninety seconds during the nightly export. Alerts fire at five "
                "minutes. When the lag does not shrink, pause the export job export-ledger, look for a long "
                "transaction that blocks replay, and only then raise max_standby_streaming_delay.",
                "First look for a long transaction that blocks replay on the standby.",
                "A lag of a minute and a half on the reporting replica is expected while the nightly export runs.",
                "You can pause export-ledger in the meantime.",
            ),
            Told(
                "connection-pool",
                "The application talks to the database through PgBouncer in transaction mode with sixty server "
                "connections. Prepared statements must be off in clients. Symptoms of an exhausted pool are requests "
                "that wait for exactly thirty seconds and then fail; the pool is resized in the Helm chart, not by "
                "hand.",
                "The pool is resized in the Helm chart, so open a pull request for it.",
                "Requests that hang for exactly half a minute before failing point to an exhausted PgBouncer pool.",
                "There are sixty server connections in transaction mode.",
            ),
        ),
        (
            "Slow queries are often caused by a missing index on a column that appears in the WHERE clause.",
            "EXPLAIN shows the plan that the database has chosen, with the estimated number of rows.",
        ),
    ),
    Subject(
        "My first marathon is in spring. How should I prepare?",
        (
            Told(
                "training-plan",
                "The club's plan has three runs a week for sixteen weeks. The long run grows by two kilometres every "
                "week up to 32 and every fourth week is a recovery week. Intervals are run on Wednesdays at the "
                "Elmwood track. Taper for the last eighteen days and keep one short tempo run.",
                "Every fourth week is a recovery week, and you should take it seriously.",
                "Your weekly long run gets two kilometres longer each time until you reach 32, and you taper during "
                "the last eighteen days.",
                "Meet us for intervals on Wednesdays at the Elmwood track.",
            ),
            Told(
                "race-nutrition",
                "Take sixty grams of carbohydrate per hour from the thirtieth minute on, half as gel and half as "
                "isotonic drink. Practise it on at least five long runs. Two days before the race eat white rice and "
                "pasta, avoid raw vegetables, and drink a glass with electrolytes in the evening.",
                "Practise it on at least five long runs so that your stomach gets used to it.",
                "From half an hour into the race onwards you want sixty grams of carbohydrate each hour, split "
                "between gel and isotonic drink.",
                "Skip raw vegetables on the last two days and drink something with electrolytes.",
            ),
            Told(
                "injury-rules",
                "Pain above four on a scale of ten means stop. Shin splints need two weeks of cycling instead of "
                "running. See physiotherapist Dr. Varga, who holds an hour for club members on Mondays. Change shoes "
                "after 700 kilometres and never race in new ones.",
                "Shin splints need two weeks of cycling instead of running, even if they feel better.",
                "As soon as the pain climbs above four out of ten you stop, and shoes get replaced after 700 "
                "kilometres.",
                "Dr. Varga keeps an hour free for members on Mondays.",
            ),
        ),
        (
            "Most runners start too fast because they feel fresh and are carried along by the crowd.",
            "Muscles store glycogen, which lasts for roughly ninety minutes of hard effort.",
        ),
    ),
    Subject(
        "How do we handle access to the laboratory?",
        (
            Told(
                "badge-access",
                "Badges for the laboratory are issued by the porter's lodge after the safety briefing SB-3 has been "
                "passed. They expire after twelve months. Visitors wear an orange badge and are accompanied at all "
                "times. A lost badge is reported to extension 4411 within an hour.",
                "Visitors wear an orange badge and are accompanied at all times, without exception.",
                "The porter's lodge hands out badges once the safety briefing has been passed, and they expire after "
                "a year.",
                "If it is lost, call extension 4411.",
            ),
            Told(
                "chemical-storage",
                "Oxidisers are kept in the grey cabinet, solvents in the yellow ventilated one, never together. "
                "Containers get a label with content, date and initials. Perchloric acid may be used only in fume "
                "hood seven, which is rinsed down afterwards. Stock is counted on the first Tuesday of a month.",
                "Please make sure that containers get a label with content, date and initials.",
                "Solvents belong into the yellow ventilated cabinet and oxidisers into the grey one.",
                "Perchloric acid is allowed in fume hood seven only.",
            ),
            Told(
                "waste-disposal",
                "Halogenated waste goes into red canisters and is collected on Thursdays. Sharps go into puncture-"
                "proof boxes. Biological waste is autoclaved at 121 degrees for twenty minutes before it leaves the "
                "corridor. The disposal form is numbered WD-12 and kept for ten years.",
                "Biological waste is autoclaved at 121 degrees for twenty minutes, then it may go out.",
                "Put halogenated residues into the red canisters, which somebody collects on Thursdays.",
                "Fill in form WD-12 each time.",
            ),
        ),
        (
            "Gloves should be changed as soon as they are contaminated, because many solvents pass through them.",
            "Eating and drinking have no place where chemicals are handled.",
        ),
    ),
    Subject(
        "Can you help me plan the budget of our festival?",
        (
            Told(
                "stage-costs",
                "Renting the main stage costs 8,750 euros a day including riggers. The sound engineer is booked "
                "through Halden Audio, who want a deposit of forty percent eight weeks ahead. Generators are needed "
                "on the meadow; count on two litres of diesel for each kilowatt and evening.",
                "You should count on two litres of diesel for each kilowatt and evening.",
                "Halden Audio provide the sound engineer and want a deposit of forty percent two months before.",
                "The main stage is 8,750 euros a day.",
            ),
            Told(
                "ticket-pricing",
                "Early birds pay 39 euros until the end of March, then 52. Children below twelve enter free with an "
                "adult. Volunteers receive a wristband worth two shifts. At least six hundred tickets must be sold "
                "before the break-even point, which the treasurer updates every Sunday.",
                "Volunteers receive a wristband worth two shifts, so they do not count as sold tickets.",
                "Break-even is reached at about six hundred sold tickets, a figure that the treasurer updates on "
                "Sundays.",
                "Early birds pay 39 euros.",
            ),
            Told(
                "food-stalls",
                "Stallholders pay a flat fee of 180 euros and ten percent of their turnover. Vegan dishes must be on "
                "offer at every third stall. Deep fryers need a class F extinguisher. The brewery Kestrel supplies "
                "beer exclusively, so stallholders may not sell their own.",
                "Keep in mind that deep fryers need a class F extinguisher next to them.",
                "Stallholders owe a flat fee and a tenth of their turnover, and at every third stall there must be "
                "something vegan.",
                "Beer comes exclusively from Kestrel.",
            ),
        ),
        (
            "Rain insurance is expensive, but many open-air events would not survive a single wet weekend without it.",
            "Sponsors usually want their logo on posters and a mention from the presenter.",
        ),
    ),
)

LOOKED_AT: tuple[Subject, ...] = (
    Subject(
        "What do I have to do to release a new version?",
        (
            Told(
                "release-checklist",
                "Freeze the branch on Tuesday noon. Bump the version in manifest.toml, regenerate the changelog with "
                "towncrier and ask two maintainers for a sign-off. Tags are signed with the key on the yubikey in "
                "the office. Announce on the forum only after the mirrors have caught up.",
                "Announce on the forum only after the mirrors have caught up, otherwise people see errors.",
                "The branch is frozen at noon on Tuesday, and two maintainers have to give their sign-off.",
                "The version number lives in manifest.toml.",
            ),
            Told(
                "hotfix-process",
                "A hotfix starts from the last tag, never from main. It contains the fix and its test, nothing else. "
                "The on-call engineer may merge with one approval between 20:00 and 08:00. Backport it to both "
                "supported series and write a postmortem within five days.",
                "It contains the fix and its test, nothing else, so leave the refactoring for later.",
                "Branch off from the most recent tag; at night the on-call engineer can merge with a single approval.",
                "Afterwards it is backported to both supported series and a postmortem follows.",
            ),
            Told(
                "feature-flags",
                "Every flag has an owner and an expiry date of at most ninety days. Flags are evaluated on the server "
                "by the service Semaphore and cached for fifteen seconds. Roll out to one percent, then ten, then "
                "half, watching the dashboard called Canary. Dead flags are removed by the nightly job flag-reaper.",
                "Roll out to one percent, then ten, then half, and watch the error rate.",
                "A flag needs an owner and an expiry date no more than ninety days away.",
                "The job flag-reaper clears dead ones at night.",
            ),
        ),
        (
            "Semantic versioning says that breaking changes need a new major version.",
            "Small releases are easier to roll back than large ones.",
        ),
    ),
    Subject(
        "Which plants would do well on my balcony?",
        (
            Told(
                "shade-plants",
                "On north-facing balconies ferns, hostas and fuchsias thrive. Water them when the upper two "
                "centimetres of soil feel dry. Slugs love hostas: put copper tape around the pots. Feed with half the "
                "usual dose of liquid fertiliser from April to August.",
                "Water them when the upper two centimetres of soil feel dry, rather than every day.",
                "Since your balcony faces north, go for hostas, ferns or fuchsias, with copper tape against slugs.",
                "Half the usual dose of liquid fertiliser is plenty.",
            ),
            Told(
                "balcony-vegetables",
                "Cherry tomatoes of the variety Balkonzauber need pots of at least twenty litres and six hours of "
                "sun. Pinch out side shoots weekly. Radishes can be sown from March in boxes and are ready after 28 "
                "days. Basil stays indoors until the nights remain above ten degrees.",
                "You should pinch out side shoots weekly so that the fruit gets the sugar.",
                "Sow radishes in boxes from March on, and keep basil inside until nights stay above ten degrees.",
                "Try the variety Balkonzauber.",
            ),
            Told(
                "winter-care",
                "Oleander and olive trees survive minus five degrees for a night but not a week. Wrap pots in jute "
                "and bubble foil and stand them on polystyrene. Overwinter pelargoniums in the stairwell at eight "
                "degrees and cut them back to three buds in February.",
                "Wrap pots in jute and bubble foil and stand them against the wall.",
                "Pelargoniums spend the winter in the stairwell and are cut back to three buds in February.",
                "Your oleander survives minus five for one night, but not a week of it.",
            ),
        ),
        (
            "Terracotta dries out faster than plastic because it is porous.",
            "Bees prefer single flowers, since they cannot reach the nectar of double ones.",
        ),
    ),
    Subject(
        "I am travelling for work next week. What are the rules?",
        (
            Told(
                "travel-booking",
                "Trips are booked in the portal Wayfare at least ten days ahead. Trains are preferred below six "
                "hours. First class is allowed from grade E5 upwards. Hotels may cost 145 euros a night, in London "
                "and Zurich 210. Receipts are photographed on the spot and uploaded before the month ends.",
                "Receipts are photographed on the spot and uploaded before the month ends.",
                "If the journey takes less than six hours you should go by train, and first class starts at grade E5.",
                "For Zurich the limit is 210 euros a night.",
            ),
            Told(
                "per-diem",
                "The daily allowance is 32 euros for a full day and 16 for the day of arrival and of departure. "
                "Breakfast that is included in the room reduces it by a fifth. Abroad the ministry's table applies, "
                "which finance publishes in January. Alcohol is never reimbursed.",
                "Breakfast that is included in the room reduces it by a fifth, so ask the hotel.",
                "On the days of arrival and departure you get half of the daily allowance, and alcohol is not "
                "reimbursed at all.",
                "For a full day it is 32 euros.",
            ),
            Told(
                "laptop-abroad",
                "Outside the union take a loan laptop from the helpdesk counter in building K. Disk encryption stays "
                "on, and the VPN profile Heron must be active on every network. At a border, hand the device over "
                "switched off if asked and report it to security afterwards.",
                "At a border, hand the device over switched off if asked, and do not argue.",
                "Borrow a loan laptop at the helpdesk counter when you leave the union.",
                "Keep the VPN profile Heron active.",
            ),
        ),
        (
            "Jet lag is worse when flying east because the day gets shorter.",
            "Noise-cancelling headphones make long flights much less tiring.",
        ),
    ),
    Subject(
        "How is the heating of the building controlled?",
        (
            Told(
                "heat-pump",
                "The heat pump is a Nibelung 40 and runs with a flow temperature of 38 degrees. Defrosting starts by "
                "itself below four degrees and lasts seven minutes; do not switch it off then. Error E-117 means that "
                "the brine pressure is low: call the caretaker, who refills glycol.",
                "Defrosting starts by itself below four degrees and lasts seven minutes, which is normal.",
                "Low brine pressure is what that message means; the caretaker has to refill glycol.",
                "The display shows E-117 in that case.",
            ),
            Told(
                "ventilation",
                "Windows in the south wing stay shut because the ventilation recovers heat with an efficiency of "
                "eighty percent. Filters of class F7 are replaced each October. In meeting rooms the fans follow the "
                "carbon dioxide sensor and speed up above 900 ppm.",
                "In meeting rooms the fans follow the carbon dioxide sensor, so the noise has a reason.",
                "Filters get replaced every October, and the windows of the south wing are meant to stay shut.",
                "Above 900 ppm they speed up.",
            ),
            Told(
                "hot-water",
                "Hot water is kept at 60 degrees in the cellar tank against legionella and flushed for five minutes on "
                "Mondays in unused flats. The circulation pump pauses between 23:00 and 05:00. Descaling is due when "
                "the flow at the kitchen tap drops below six litres a minute.",
                "The circulation pump pauses between 23:00 and 05:00, which explains the cold start.",
                "Because of legionella the cellar tank stays hot, and unused flats are flushed on Mondays.",
                "Descaling is due below six litres a minute at the tap.",
            ),
        ),
        (
            "A heat pump moves warmth from outside to inside instead of producing it by burning something.",
            "Underfloor heating reacts slowly, so it pays to leave the thermostat alone.",
        ),
    ),
    Subject(
        "I would like to write a guide for new players of our game.",
        (
            Told(
                "combat-rules",
                "A round lasts six heartbeats. Attackers roll two eight-sided dice and add Ferocity; defenders add "
                "Poise. A tie favours the one with the longer weapon. Critical wounds bleed for three rounds unless "
                "bound with a poultice. Retreating from melee provokes one free strike.",
                "Critical wounds bleed for three rounds unless bound, so carry something for that.",
                "In a fight the attacker rolls two eight-sided dice and adds Ferocity while the defender adds Poise.",
                "Retreating from melee provokes one free strike.",
            ),
            Told(
                "crafting",
                "Poultices are brewed from marshwort and tallow at any hearth. A smith of rank three can temper a "
                "blade once, which raises its keenness until the next full moon. Failed recipes return half of the "
                "ingredients. Runes are carved only at the obelisk of Ythmar.",
                "Failed recipes return half of the ingredients, so experiments are cheap.",
                "You brew poultices from tallow and marshwort at a hearth.",
                "Runes can be carved at the obelisk of Ythmar only.",
            ),
            Told(
                "guild-ranks",
                "Newcomers begin as Lanterns and become Wardens after five completed bounties. Wardens may vote in the "
                "moot. The guild takes a tithe of one coin in twelve. Whoever breaks the truce in the harbour loses "
                "their rank for a season.",
                "Whoever breaks the truce in the harbour loses their rank, so behave there.",
                "New members are called Lanterns, and five completed bounties make them Wardens who vote in the moot.",
                "The tithe is one coin in twelve.",
            ),
        ),
        (
            "Players remember a tutorial better when they can try each step themselves.",
            "A short video often replaces several pages of explanation.",
        ),
    ),
    Subject(
        "What should I know before I adopt a dog?",
        (
            Told(
                "adoption-steps",
                "The shelter needs two visits and a home check before adoption. The fee is 280 euros and covers "
                "neutering, a microchip and the first vaccination. Dogs from abroad stay in quarantine for ten days. "
                "Within four weeks a dog can be returned without giving reasons.",
                "The shelter needs two visits and a home check before adoption, so plan some time.",
                "What you pay covers neutering, the microchip and a first vaccination.",
                "The fee is 280 euros.",
            ),
            Told(
                "puppy-feeding",
                "Puppies get four meals a day until the twelfth week, then three. Change food gradually over seven "
                "days, mixing old and new. Grapes, raisins, onions and xylitol are poisonous. Large breeds need a "
                "calcium share below 1.2 percent so that bones grow slowly.",
                "Change food gradually over seven days, mixing old and new.",
                "Until week twelve a puppy eats four times daily, and raisins, grapes or xylitol are poisonous for it.",
                "For large breeds calcium should stay below 1.2 percent.",
            ),
            Told(
                "leash-training",
                "Begin in the corridor without distraction. Stop as soon as the leash tightens and walk on when it "
                "slackens. Reward at knee height on your left side. Three sessions of five minutes are better than a "
                "long one. Retractable leashes are not suitable; use a harness and a line of two metres.",
                "Stop as soon as the leash tightens and walk on when it slackens.",
                "Short sessions in the corridor work best at first, with rewards at knee height on the left.",
                "Use a harness and a line of two metres; retractable leashes are not suitable.",
            ),
        ),
        (
            "Dogs read human gestures remarkably well, even better than chimpanzees do.",
            "A daily routine gives an anxious animal a sense of safety.",
        ),
    ),
)


UNSEEN: tuple[Subject, ...] = (
    Subject(
        "How does our library lend things out?",
        (
            Told(
                "loan-periods",
                "Books are lent for four weeks, films and games for one. Loans are extended twice unless somebody has "
                "reserved the title. Reference works marked with a red dot stay in the reading room. The fine is 25 "
                "cents a day and is waived for children under ten.",
                "Reference works marked with a red dot stay in the reading room, even for staff.",
                "You may extend a loan twice as long as nobody reserved the title, and children do not pay a fine.",
                "The fine is 25 cents a day.",
            ),
            Told(
                "seed-library",
                "Gardeners borrow seeds in spring and bring back at least twice as many in autumn. Envelopes carry "
                "the botanical name, the year and the plot. Hybrids are not accepted because they do not breed true. "
                "The drawer is sorted by Mrs. Okonkwo on Fridays.",
                "Hybrids are not accepted because they do not breed true.",
                "Whoever borrows seeds returns twice the amount in autumn, in envelopes with botanical name and year.",
                "Ask Mrs. Okonkwo on Fridays.",
            ),
            Told(
                "maker-room",
                "The maker room has a laser cutter, two 3D printers and a vinyl plotter. The cutter may be used after "
                "the introduction on the first Saturday. Polycarbonate and PVC release toxic fumes and are "
                "forbidden. Filament costs seven cents a gram and is paid at the desk.",
                "Note that polycarbonate and PVC release toxic fumes and are forbidden.",
                "Before you touch the laser cutter you attend the introduction on the first Saturday.",
                "Filament is seven cents a gram.",
            ),
        ),
        (
            "Public libraries have become meeting places where people work, learn and keep warm.",
            "Reading aloud to small children makes their vocabulary grow.",
        ),
    ),
    Subject(
        "A guest asked about the sauna and the pool. What may I promise?",
        (
            Told(
                "sauna-hours",
                "The Finnish sauna is heated to 88 degrees from 15:00 to 22:00. Infusions happen on the hour and are "
                "announced with a gong. Wednesday is for women only. Guests bring a towel large enough to lie on; "
                "swimwear stays outside for reasons of hygiene.",
                "Infusions happen on the hour and are announced with a gong.",
                "On Wednesdays only women are admitted, and everybody needs a towel that is large enough to lie on.",
                "It is heated to 88 degrees.",
            ),
            Told(
                "pool-safety",
                "Children below eight swim only with an adult in the water. The lifeguard is on duty at weekends; on "
                "other days the emergency button beside the shower calls reception. Chlorine is measured thrice a day "
                "and the pool closes above 1.5 milligrams.",
                "The emergency button beside the shower calls reception, should anything happen.",
                "A lifeguard is there at weekends only, and small children need an adult in the water with them.",
                "We close it above 1.5 milligrams of chlorine.",
            ),
            Told(
                "massage-bookings",
                "Massages are booked until noon of the day before at the reception or in the app Lagoon. Hot-stone "
                "treatments are not given to pregnant guests. Cancellations within six hours are charged in full. "
                "Therapist Ilse speaks Dutch and Portuguese.",
                "Sadly, cancellations within six hours are charged in full.",
                "Hot-stone treatments are out of the question for pregnant guests, and booking ends at noon of the "
                "previous day.",
                "Ilse speaks Portuguese.",
            ),
        ),
        (
            "Sweating does not remove poisons from the body, but it relaxes and improves sleep.",
            "Cold water after the heat makes the blood vessels contract.",
        ),
    ),
    Subject(
        "What is the procedure when a shipment arrives at the port?",
        (
            Told(
                "customs-forms",
                "Each container needs a bill of lading, a packing list and form T-1042 in triplicate. The agent "
                "Brightwater files them electronically two days before berthing. Wood packaging without a heat "
                "treatment stamp is sent back at the shipper's expense.",
                "Wood packaging without a heat treatment stamp is sent back, so check the pallets.",
                "Brightwater, our agent, files bill of lading and packing list two days before the ship berths.",
                "You need T-1042 in triplicate.",
            ),
            Told(
                "crane-operations",
                "Gantry cranes stop when gusts exceed 72 kilometres an hour. Reefers are unloaded first and plugged in "
                "within forty-five minutes. The foreman radios on channel twelve. Nobody walks below a suspended "
                "load, not even in the yellow lane.",
                "Nobody walks below a suspended load, not even in the yellow lane.",
                "Reefers come off the ship first and get plugged in within three quarters of an hour.",
                "Gantry cranes stop at gusts above 72 kilometres an hour.",
            ),
            Told(
                "storage-fees",
                "The first five days in the yard are free. Afterwards the tariff is 18 euros per container and day, "
                "for dangerous goods double. Disputes go to the arbitration board in Antwerp within thirty days. "
                "Weekends count, public holidays do not.",
                "Weekends count, public holidays do not, when the days are added up.",
                "Nothing is charged for the first five days in the yard; dangerous goods cost double after that.",
                "Disputes go to the arbitration board in Antwerp.",
            ),
        ),
        (
            "Containers have standard sizes so that ships, trains and lorries can carry the same ones.",
            "Most of the world's trade by weight travels over the sea.",
        ),
    ),
    Subject(
        "I am new in the choir. How do things work here?",
        (
            Told(
                "rehearsals",
                "Rehearsals are on Thursday evenings at half past seven in the chapel of St. Brannoc. Altos and basses "
                "begin with their own half hour in the vestry. Whoever misses three in a row sings the next concert "
                "only after an audition with the conductor.",
                "Altos and basses begin with their own half hour in the vestry.",
                "Miss three rehearsals in a row and the conductor wants an audition before the next concert.",
                "We meet in the chapel of St. Brannoc.",
            ),
            Told(
                "scores",
                "Scores are lent by the archivist and marked in soft pencil only. Copying them breaks our licence with "
                "the publisher Carus. A lost score costs 24 euros. Digital parts are in the folder Semiquaver and "
                "disappear after the last performance.",
                "Scores are lent by the archivist and marked in soft pencil only.",
                "Please do not copy anything: that would break the licence we have with the publisher.",
                "Digital parts are in the folder Semiquaver.",
            ),
            Told(
                "concert-dress",
                "Women wear long black and a burgundy scarf, men a black shirt without a tie. Perfume is not worn "
                "because two sopranos have asthma. Folders are held in the left hand when walking on. Jewellery that "
                "glitters stays at home.",
                "Perfume is not worn because two sopranos have asthma.",
                "It is long black with a burgundy scarf for women, and for men a black shirt but no tie.",
                "Hold your folder in the left hand when walking on.",
            ),
        ),
        (
            "Singing together makes hearts beat in the same rhythm, as studies have shown.",
            "Warming up protects the voice and helps with high notes.",
        ),
    ),
    Subject(
        "Our satellite images look odd. What can I do about it?",
        (
            Told(
                "cloud-masking",
                "Mask clouds with the SCL band, classes eight to ten, and dilate the mask by 120 metres because thin "
                "edges remain. Scenes with more than sixty percent clouds are discarded. Shadows are found by "
                "projecting the mask along the solar azimuth.",
                "Shadows are found by projecting the mask along the solar azimuth.",
                "Dilate the cloud mask a little, since thin edges remain, and discard scenes that are mostly cloudy.",
                "Use classes eight to ten of the SCL band.",
            ),
            Told(
                "radiometry",
                "Reflectance is the digital number divided by ten thousand, minus the offset of 0.1 since baseline "
                "04.00. Forgetting the offset gives a greenish haze. Compare with the calibration site at Railroad "
                "Playa, where the blue band should read 0.21.",
                "Forgetting the offset gives a greenish haze, and that is what you see.",
                "Divide the digital number by ten thousand and subtract the offset to get reflectance.",
                "At Railroad Playa the blue band should read 0.21.",
            ),
            Told(
                "tiling",
                "Tiles are 10,980 pixels wide and overlap by 490. Blend them with a feather of fifty pixels and write "
                "cloud-optimised GeoTIFF with overviews. Projection is the local UTM zone; never reproject before "
                "the indices are computed.",
                "The rule is to never reproject before the indices are computed.",
                "Overlapping tiles are blended with a feather and written as GeoTIFF that has overviews.",
                "A tile is 10,980 pixels wide.",
            ),
        ),
        (
            "Vegetation reflects near infrared strongly, which is why healthy fields look bright in it.",
            "Satellites in a sun-synchronous orbit pass over a place at the same local time each day.",
        ),
    ),
)


def scenes(subjects: Sequence[Subject], seed: int, count: int) -> Iterator[Scene]:
    """Yield scenes: from none to three used items, beside others of the same subject and of other ones."""
    random = Random(seed)
    for _ in range(count):
        subject, *aside = random.sample(subjects, 3)
        others = [item for other in aside for item in other.items]
        included = [*subject.items, *random.sample(others, random.randint(1, 5))]
        used = random.sample(list(subject.items), random.choice((0, 1, 1, 2, 2, 3)))
        said = [random.choice((item.quote, item.paraphrase, item.fact)) for item in used]
        # What everybody knows about the things that the other items are about is the hardest to tell apart.
        known = [line for other in (subject, *aside) for line in other.knowledge]
        said += random.sample(known, random.randint(0, 5))
        said += random.sample(FILLER, random.randint(1, 5))
        random.shuffle(said)
        yield Scene(
            message=subject.question,
            texts={reference_ref(item.name): item.text for item in included},
            around=(CORE, subject.question),
            answer=" ".join(said),
            used=frozenset(reference_ref(item.name) for item in used),
        )
