-- The index of sessions: fingerprints of the words of turns and messages, with PostgreSQL's own full-text search.

ALTER TABLE windowpane.session ADD COLUMN indexed_seq bigint NOT NULL DEFAULT 0;
ALTER TABLE windowpane.session ADD COLUMN seen_seq bigint NOT NULL DEFAULT 0;

CREATE TABLE windowpane.document (
    session text COLLATE "C" REFERENCES windowpane.session ON DELETE CASCADE,
    seq bigint,
    place bigint NOT NULL, -- by time
    turn bigint NOT NULL,
    at timestamptz NOT NULL,
    tokens bigint NOT NULL,
    terms tsvector NOT NULL,
    PRIMARY KEY (session, seq)
);
CREATE INDEX document_terms ON windowpane.document USING gin (terms);
CREATE INDEX document_tokens ON windowpane.document (tokens);
CREATE INDEX document_place ON windowpane.document (place);

-- What is erased is not found any more. What is left is indexed again.
CREATE FUNCTION windowpane.forget_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM windowpane.document WHERE session = new.id;
    new.indexed_seq := 0;
    new.seen_seq := 0;
    RETURN new;
END $$;
CREATE TRIGGER session_erased BEFORE UPDATE OF erased_seq ON windowpane.session
    FOR EACH ROW EXECUTE FUNCTION windowpane.forget_documents();

-- Keep documents, each in place of the one that began where it begins, unless something was erased since.
CREATE FUNCTION windowpane.index_documents(
    session_id text, not_erased_since bigint, through bigint, seen bigint,
    seqs bigint[], places bigint[], turns bigint[], ats timestamptz[], lengths bigint[], term_lists text[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE windowpane.session SET indexed_seq = through, seen_seq = seen
        WHERE id = session_id AND erased_seq = not_erased_since;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM windowpane.document WHERE session = session_id AND seq = ANY (seqs);
    INSERT INTO windowpane.document (session, seq, place, turn, at, tokens, terms)
        SELECT session_id, seq, place, turn, at, tokens, array_to_tsvector(string_to_array(list, ' '))
        FROM unnest(seqs, places, turns, ats, lengths, term_lists) AS given (seq, place, turn, at, tokens, list);
    RETURN true;
END $$;
