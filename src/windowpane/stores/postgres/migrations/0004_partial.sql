-- The words of replies that are not complete: one row a session, written over while a turn runs.

CREATE TABLE windowpane.partial (
    session text COLLATE "C" PRIMARY KEY REFERENCES windowpane.session ON DELETE CASCADE,
    body bytea NOT NULL
);
ALTER TABLE windowpane.partial ALTER COLUMN body SET STORAGE EXTERNAL;

-- Empty events, forget blobs, the snapshot and the words of an incomplete reply, and remember until where, so that no
-- older snapshot comes back. Returns false when there is no such session.
CREATE OR REPLACE FUNCTION windowpane.erase(session_id text, seqs bigint[], hashes text[]) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE windowpane.session SET erased_seq = last_seq WHERE id = session_id;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE windowpane.event SET body = NULL WHERE session = session_id AND seq = ANY (seqs) AND body IS NOT NULL;
    DELETE FROM windowpane.blob WHERE session = session_id AND hash = ANY (hashes);
    DELETE FROM windowpane.snapshot WHERE session = session_id;
    DELETE FROM windowpane.partial WHERE session = session_id;
    RETURN true;
END $$;
