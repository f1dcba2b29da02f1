"""What every model is measured with: messages, and items that each of them needs.

A message is related to its own item and to no other one. Changing a text changes what models are measured to be:
`PROBE_VERSION` must be raised, and what `standard.py` says of the local model measured again.
"""

PROBE_VERSION = 1

PROBE: tuple[tuple[str, str], ...] = (
    ("Will I need an umbrella tomorrow?", "get forecast: The weather of the coming days for a city, with rain."),
    ("How much is 250 dollars in yen?", "convert currency: Converts an amount of money by today's exchange rate."),
    ("Write a unit test for this function.", "testing: Every function has a test whose name says what must hold."),
    ("Book us a table for four on Friday.", "reserve table: Makes a reservation at a restaurant for some guests."),
    ("Why was my card declined?", "declined payments: Reasons why a bank refuses a card payment, and what to do then."),
    ("Rename the column in the users table.", "migrations: Changes of the database schema are made by scripts."),
    ("Translate this letter into Polish.", "translate text: Gives a text in another language."),
    ("What did we agree on in Monday's call?", "meeting notes: Summaries and decisions of the team's meetings."),
    ("The page takes ten seconds to load.", "performance: How to find out why a website is slow, and how to cache."),
    ("My parcel has not arrived yet.", "shipping: How orders are delivered, and how to follow a package."),
    ("Play something calm in the kitchen.", "play music: Plays songs on a speaker of the house."),
    ("Which vaccines do I need for Kenya?", "travel health: Medical advice and immunisation for countries."),
    ("Draw the sales of this year as bars.", "make chart: Turns a table of numbers into a diagram."),
    ("Remind me to call my sister at six.", "add reminder: Notifies the user of a task at a given time."),
    ("Is this sentence grammatical?", "style guide: Rules for spelling, grammar and tone of published texts."),
    ("Find me a cheap flight to Oslo.", "search flights: Lists plane connections between airports, with their prices."),
    ("What can I cook with lentils?", "find recipes: Dishes that can be made from given ingredients."),
    ("Send the invoice to the client.", "send mail: Delivers a message with attachments to an address."),
    ("The login fails with error 401.", "authentication: How tokens and passwords are checked by the server."),
    ("How tall is that mountain?", "encyclopedia: Facts about places, people, animals and history."),
    ("Merge my branch when the build is green.", "pull requests: How code is reviewed and brought into the main line."),
    ("I want to give back these shoes.", "returns: How a customer sends an article back and gets a refund."),
    ("Solve x squared minus 5x plus 6.", "calculator: Evaluates formulas and solves equations."),
    ("How do I keep my roses from dying?", "gardening: Care of plants, watering, pruning and pests."),
)
"""Pairs of a message and the item that it needs, as items are embedded: the name in plain words, then what it says."""
