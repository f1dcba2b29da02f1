-- The vectors of a session's messages. They can be made again, so keeping them does not wait for the disk.

CREATE TABLE windowpane.vector (
    session text COLLATE "C" REFERENCES windowpane.session ON DELETE CASCADE,
    seq bigint,
    body bytea NOT NULL,
    PRIMARY KEY (session, seq)
);
ALTER TABLE windowpane.vector ALTER COLUMN body SET STORAGE EXTERNAL;

-- Keep vectors, unless something was erased since the log stood at as_of: their text may have been among it.
CREATE FUNCTION windowpane.put_vectors(session_id text, as_of bigint, seqs bigint[], bodies bytea[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM FROM windowpane.session WHERE id = session_id AND erased_seq < as_of FOR SHARE;
    IF FOUND THEN
        INSERT INTO windowpane.vector
            SELECT session_id, seq, body FROM unnest(seqs, bodies) AS given (seq, body)
            ON CONFLICT (session, seq) DO UPDATE SET body = excluded.body;
    END IF;
END $$;

-- Empty events, forget blobs, the snapshot, vectors and the words of an incomplete reply, and remember until where, so
-- that no older snapshot comes back. Returns false when there is no such session.
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
    DELETE FROM windowpane.vector WHERE session = session_id;
    RETURN true;
END $$;
