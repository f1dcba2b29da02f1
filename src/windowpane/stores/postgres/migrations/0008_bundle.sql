-- Texts that many sessions have are kept once, in bundles: one row for each session and bundle, however many texts are in it.
-- A bundle goes with the last session that has it. Appends lock a bundle for key share and deletions for update, always after
-- the sessions and in the order of names, so that no bundle goes that a session is just given, and none wait in a circle.

CREATE TABLE windowpane.bundle (name text COLLATE "C" PRIMARY KEY);

CREATE TABLE windowpane.bundle_text (
    bundle text COLLATE "C" REFERENCES windowpane.bundle ON DELETE CASCADE,
    hash text COLLATE "C",
    body bytea NOT NULL,
    PRIMARY KEY (bundle, hash)
);
ALTER TABLE windowpane.bundle_text ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE windowpane.session_bundle (
    session text COLLATE "C" REFERENCES windowpane.session ON DELETE CASCADE,
    bundle text COLLATE "C" REFERENCES windowpane.bundle,
    PRIMARY KEY (session, bundle)
);
CREATE INDEX session_bundle_of ON windowpane.session_bundle (bundle);

-- Store a batch of appends as the function of the same name in 0007 does, which workers of the version before still call, and
-- give bundles to sessions: the append at bundle_of the bundle at bundle_names. Every bundle that is named is brought along.
CREATE FUNCTION windowpane.append(
    of_writer uuid, of_number bigint,
    sessions text[], expected bigint[], keys text[], owners text[], agents text[], sizes integer[],
    moved_first timestamptz[], moved_last timestamptz[], moved_touched timestamptz[],
    bodies text[], body_of integer[], body_part integer[], body_at timestamptz[],
    blob_of integer[], blob_hashes text[], blob_bodies bytea[], fences bigint[],
    takers text[], ttls_s double precision[], givers text[], lasting boolean,
    bundle_of integer[], bundle_names text[],
    text_bundles text[], text_hashes text[], text_bodies bytea[],
    OUT outcomes text[], OUT first_seqs bigint[], OUT last_seqs bigint[], OUT ats timestamptz[], OUT taken bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
    wanted text;
BEGIN
    SELECT * INTO outcomes, first_seqs, last_seqs, ats, taken FROM windowpane.append(
        of_writer, of_number, sessions, expected, keys, owners, agents, sizes, moved_first, moved_last, moved_touched,
        bodies, body_of, body_part, body_at, blob_of, blob_hashes, blob_bodies, fences, takers, ttls_s, givers, lasting
    );
    IF cardinality(bundle_of) = 0 THEN
        RETURN;
    END IF;
    -- Those of a batch that was sent again are not locked yet, and may be gone since.
    PERFORM FROM windowpane.session WHERE id IN (SELECT sessions[of] FROM unnest(bundle_of) AS of WHERE outcomes[of] = 'stored')
        ORDER BY id FOR KEY SHARE;
    FOR wanted IN
        SELECT DISTINCT name FROM unnest(bundle_of, bundle_names) AS given (of, name)
        WHERE outcomes[of] = 'stored' ORDER BY name
    LOOP
        LOOP
            PERFORM FROM windowpane.bundle WHERE name = wanted FOR KEY SHARE;
            EXIT WHEN FOUND;
            INSERT INTO windowpane.bundle VALUES (wanted) ON CONFLICT DO NOTHING;
            IF FOUND THEN
                INSERT INTO windowpane.bundle_text
                    SELECT wanted, hash, body FROM unnest(text_bundles, text_hashes, text_bodies) AS given (bundle, hash, body)
                    WHERE bundle = wanted;
                EXIT;
            END IF;
            -- Another has just brought it, or has just dropped it: look again.
        END LOOP;
        INSERT INTO windowpane.session_bundle
            SELECT session.id, wanted FROM windowpane.session
            WHERE id IN (
                SELECT sessions[of] FROM unnest(bundle_of, bundle_names) AS given (of, name)
                WHERE name = wanted AND outcomes[of] = 'stored'
            )
            ON CONFLICT DO NOTHING;
    END LOOP;
END $$;

-- Take bundles from a session, and drop those that no session has any more. Deletions wait for each other, not for appends,
-- unless the bundle seems to be unused.
CREATE FUNCTION windowpane.drop_bundles(session_id text, names text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted text;
BEGIN
    DELETE FROM windowpane.session_bundle WHERE session = session_id AND bundle = ANY (names);
    FOR wanted IN SELECT name FROM unnest(names) AS name ORDER BY name LOOP
        PERFORM FROM windowpane.bundle WHERE name = wanted FOR NO KEY UPDATE;
        PERFORM FROM windowpane.session_bundle WHERE bundle = wanted LIMIT 1;
        CONTINUE WHEN FOUND;
        PERFORM FROM windowpane.bundle WHERE name = wanted FOR UPDATE;
        DELETE FROM windowpane.bundle
            WHERE name = wanted AND NOT EXISTS (SELECT FROM windowpane.session_bundle WHERE bundle = wanted);
    END LOOP;
END $$;

-- Remove a session so that nothing of it is left; see 0001.
CREATE OR REPLACE FUNCTION windowpane.forget(
    session_id text, still_at bigint DEFAULT NULL, still_touched timestamptz DEFAULT NULL, by_holder text DEFAULT NULL
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    mine windowpane.session;
BEGIN
    SELECT * INTO mine FROM windowpane.session WHERE id = session_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF still_at IS NOT NULL THEN
        IF (mine.last_seq, mine.touched_at) <> (still_at, still_touched) THEN
            RETURN false;
        END IF;
        PERFORM FROM windowpane.lease
            WHERE session = session_id AND until > clock_timestamp() AND holder IS DISTINCT FROM by_holder;
        IF FOUND THEN
            RETURN false;
        END IF;
    END IF;
    DELETE FROM windowpane.event WHERE session = session_id;
    DELETE FROM windowpane.append_key WHERE session = session_id;
    DELETE FROM windowpane.blob WHERE session = session_id;
    DELETE FROM windowpane.snapshot WHERE session = session_id;
    DELETE FROM windowpane.lease WHERE session = session_id;
    PERFORM windowpane.drop_bundles(
        session_id, ARRAY(SELECT bundle FROM windowpane.session_bundle WHERE session = session_id)
    );
    DELETE FROM windowpane.session WHERE id = session_id;
    RETURN true;
END $$;

-- Empty events, forget blobs, the snapshot, vectors and the words of an incomplete reply; see 0005. Of a bundle that has one of
-- the texts, the session keeps the others as its own.
CREATE OR REPLACE FUNCTION windowpane.erase(session_id text, seqs bigint[], hashes text[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    left_over text[];
BEGIN
    UPDATE windowpane.session SET erased_seq = last_seq WHERE id = session_id;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE windowpane.event SET body = NULL WHERE session = session_id AND seq = ANY (seqs) AND body IS NOT NULL;
    left_over := ARRAY(
        SELECT DISTINCT held.bundle FROM windowpane.session_bundle AS held
        JOIN windowpane.bundle_text AS inside ON inside.bundle = held.bundle AND inside.hash = ANY (hashes)
        WHERE held.session = session_id
    );
    IF cardinality(left_over) > 0 THEN
        INSERT INTO windowpane.blob
            SELECT DISTINCT ON (hash) session_id, hash, body FROM windowpane.bundle_text
            WHERE bundle = ANY (left_over) AND hash <> ALL (hashes)
            ON CONFLICT DO NOTHING;
        PERFORM windowpane.drop_bundles(session_id, left_over);
    END IF;
    DELETE FROM windowpane.blob WHERE session = session_id AND hash = ANY (hashes);
    DELETE FROM windowpane.snapshot WHERE session = session_id;
    DELETE FROM windowpane.partial WHERE session = session_id;
    DELETE FROM windowpane.vector WHERE session = session_id;
    RETURN true;
END $$;
