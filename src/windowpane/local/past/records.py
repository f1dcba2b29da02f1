"""What a store alone tells about past turns."""

from windowpane.sessions.calls.past import PastCalls
from windowpane.sessions.past_requests import PastRequests
from windowpane.stores.sessions import Sessions


class StoreRecords:
    """Past requests and calls, read from a store that is open."""

    def __init__(self, states: Sessions) -> None:
        self.store = states.store
        self.past = PastRequests(states)
        self.calls = PastCalls(states, self.past)
