"""Errors of the store."""

from windowpane.errors.base import WindowpaneError


class StoreError(WindowpaneError):
    """The store cannot do what was asked."""

    code = "store_error"


class StoreCorruptError(StoreError):
    """The database is damaged. It is left as it is."""

    code = "store_corrupt"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where} is damaged ({why}); nothing was changed. Restore a copy, or name another file.")
        self.where = where


class StoreTooNewError(StoreError):
    """The database was written by a newer version. It is left as it is."""

    code = "store_too_new"

    def __init__(self, where: str, found: int, known: int) -> None:
        super().__init__(
            f"{where} has schema {found} and this version knows {known}; nothing was changed. Update Windowpane."
        )
        self.where = where
        self.found = found
        self.known = known


class EncryptionKeyError(StoreError):
    """The key that was given, or its absence, does not fit the store. The store is left as it is."""

    code = "encryption_key"


class StoreEncryptedError(EncryptionKeyError):
    """The sessions are encrypted, and no key was given. They are left as they are."""

    code = "store_encrypted"

    def __init__(self) -> None:
        super().__init__(
            "the sessions of this store are encrypted and no key is set; nothing was changed. "
            "Set WINDOWPANE_ENCRYPTION_KEY or WINDOWPANE_ENCRYPTION_KEY_FILE."
        )


class StoreNotEncryptedError(EncryptionKeyError):
    """A key was given for sessions that are not encrypted. They are left as they are."""

    code = "store_not_encrypted"

    def __init__(self) -> None:
        super().__init__(
            "an encryption key is set and the sessions of this store are not encrypted; nothing was changed. "
            "Copy them to a new store with `windowpane store copy FROM TO`, or remove the key."
        )


class WrongEncryptionKeyError(EncryptionKeyError):
    """The sessions are encrypted with a key that was not given. They are left as they are."""

    code = "wrong_encryption_key"

    def __init__(self, wanted: str | None, given: tuple[str, ...]) -> None:
        which = "another key" if wanted is None else f"the key with the id {wanted!r}"
        super().__init__(
            f"the sessions of this store are encrypted with {which}, and given is: {', '.join(given)}; nothing was "
            "changed. Add that key to WINDOWPANE_ENCRYPTION_KEY or to the key file, after the key that writes."
        )
        self.wanted = wanted
        self.given = given


class StoreRolledBackError(StoreError):
    """The store lost events that it had acknowledged, or the session was created again under its old id."""

    code = "store_rolled_back"

    def __init__(self, session_id: str, seen_seq: int, actual_seq: int) -> None:
        super().__init__(
            f"the log of session {session_id!r} is not the one that was seen up to {seen_seq}; it stands at "
            f"{actual_seq} now. The store lost its latest events, as when a replica takes over or a copy is restored, "
            "or the session was deleted and created again. Check the session before you continue: nothing was added."
        )
        self.session_id = session_id
        self.seen_seq = seen_seq
        self.actual_seq = actual_seq


class StoreUnavailableError(StoreError):
    """The store cannot be reached or written."""

    code = "store_unavailable"


NO_ANSWER = (
    "See that the server runs and can be reached. If something was being written, it may or may not be stored: try "
    "again with the same idempotency key."
)
"""What to do about a server that does not answer: what is read and what is written wait for the same connection."""


class StoreReplacedError(StoreUnavailableError):
    """The database file was removed or replaced while it is in use."""

    code = "store_replaced"

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} was removed or replaced while it is in use; what is written now would be lost. "
            "Put the file back, or restart to use the file that is there now."
        )
        self.where = where
