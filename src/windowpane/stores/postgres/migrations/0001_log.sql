-- Sessions and their logs. Every primary key begins with the session, so that each table can be partitioned by it.
-- Names are kept with NUL written as \0 and \ as \\, because text cannot hold NUL.

CREATE TABLE windowpane.session (
    id text COLLATE "C" PRIMARY KEY,
    owner text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    last_seq bigint NOT NULL,
    erased_seq bigint NOT NULL,
    created_at timestamptz NOT NULL,
    touched_at timestamptz NOT NULL
);
CREATE INDEX session_touched ON windowpane.session (touched_at, id);
CREATE INDEX session_of_owner ON windowpane.session (owner, touched_at, id);

CREATE TABLE windowpane.event (
    session text COLLATE "C",
    seq bigint,
    at timestamptz NOT NULL,
    body text, -- JSON; null when it was erased
    PRIMARY KEY (session, seq)
);

CREATE TABLE windowpane.append_key (
    session text COLLATE "C",
    key text COLLATE "C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (session, key)
);

CREATE TABLE windowpane.blob (
    session text COLLATE "C",
    hash text COLLATE "C",
    body bytea NOT NULL,
    PRIMARY KEY (session, hash)
);
ALTER TABLE windowpane.blob ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE windowpane.snapshot (
    session text COLLATE "C" PRIMARY KEY,
    seq bigint NOT NULL,
    body bytea NOT NULL
);
ALTER TABLE windowpane.snapshot ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE windowpane.lease (
    session text COLLATE "C" PRIMARY KEY,
    holder text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL
);

-- The last batch of each writer and what was answered: a batch that is sent again is not stored again.
CREATE TABLE windowpane.writer (
    id uuid PRIMARY KEY,
    number bigint NOT NULL,
    at timestamptz NOT NULL,
    outcomes text[] NOT NULL,
    first_seqs bigint[] NOT NULL,
    last_seqs bigint[] NOT NULL,
    ats timestamptz[] NOT NULL
);

-- Store a batch of appends, ordered by session, in one transaction; each succeeds or fails by itself.
-- Sessions are locked in the order in which they are given, which is the same for all writers, so no two wait for each
-- other. Outcomes: stored, repeated (the key was seen), missing (no such session), conflict (last_seqs tells where the
-- log stands).
CREATE FUNCTION windowpane.append(
    of_writer uuid, of_number bigint,
    sessions text[], expected bigint[], keys text[], owners text[], agents text[], sizes integer[],
    moved_first timestamptz[], moved_last timestamptz[], moved_touched timestamptz[],
    bodies text[], body_of integer[], body_part integer[], body_at timestamptz[],
    blob_of integer[], blob_hashes text[], blob_bodies bytea[],
    OUT outcomes text[], OUT first_seqs bigint[], OUT last_seqs bigint[], OUT ats timestamptz[]
) LANGUAGE plpgsql AS $$
DECLARE
    done windowpane.writer;
    mine windowpane.session;
    earlier windowpane.append_key;
    now_at timestamptz;
BEGIN
    SELECT * INTO done FROM windowpane.writer WHERE id = of_writer FOR UPDATE;
    IF done.number = of_number THEN
        outcomes := done.outcomes;
        first_seqs := done.first_seqs;
        last_seqs := done.last_seqs;
        ats := done.ats;
        RETURN;
    END IF;
    IF done.number > of_number THEN
        -- An old request that arrived late: its writer has sent it again or given it up.
        RAISE EXCEPTION 'batch % came too late', of_number USING ERRCODE = 'serialization_failure';
    END IF;
    FOR i IN 1 .. cardinality(sessions) LOOP
        first_seqs[i] := NULL;
        last_seqs[i] := NULL;
        ats[i] := NULL;
        IF i = 1 OR sessions[i] <> sessions[i - 1] THEN
            SELECT * INTO mine FROM windowpane.session WHERE id = sessions[i] FOR NO KEY UPDATE;
        END IF;
        -- The server's clock decides, and it never goes back within a session.
        now_at := greatest(clock_timestamp(), mine.touched_at);
        IF mine.id IS NULL AND owners[i] IS NOT NULL THEN
            INSERT INTO windowpane.session VALUES (
                sessions[i], owners[i], agents[i], 0, 0,
                coalesce(moved_first[i], now_at), coalesce(moved_touched[i], now_at)
            ) ON CONFLICT DO NOTHING;
            SELECT * INTO mine FROM windowpane.session WHERE id = sessions[i] FOR NO KEY UPDATE;
        END IF;
        IF mine.id IS NULL THEN
            outcomes[i] := 'missing';
            CONTINUE;
        END IF;
        IF keys[i] IS NOT NULL THEN
            SELECT * INTO earlier FROM windowpane.append_key WHERE session = mine.id AND key = keys[i];
            IF FOUND THEN
                outcomes[i] := 'repeated';
                first_seqs[i] := earlier.first_seq;
                last_seqs[i] := earlier.last_seq;
                ats[i] := earlier.at;
                CONTINUE;
            END IF;
        END IF;
        IF expected[i] <> mine.last_seq THEN
            outcomes[i] := 'conflict';
            last_seqs[i] := mine.last_seq;
            CONTINUE;
        END IF;
        outcomes[i] := 'stored';
        first_seqs[i] := mine.last_seq + 1;
        last_seqs[i] := mine.last_seq + sizes[i];
        ats[i] := coalesce(moved_last[i], now_at);
        mine.last_seq := last_seqs[i];
        mine.touched_at := greatest(mine.touched_at, coalesce(moved_touched[i], now_at));
        IF keys[i] IS NOT NULL THEN
            INSERT INTO windowpane.append_key VALUES (mine.id, keys[i], first_seqs[i], last_seqs[i], ats[i]);
        END IF;
    END LOOP;
    UPDATE windowpane.session AS kept
        SET last_seq = stands.last_seq, touched_at = greatest(kept.touched_at, stands.touched_at)
        FROM (
            SELECT sessions[i] AS id, max(last_seqs[i]) AS last_seq, max(coalesce(moved_touched[i], ats[i])) AS touched_at
            FROM generate_series(1, cardinality(sessions)) AS i WHERE outcomes[i] = 'stored' GROUP BY sessions[i]
        ) AS stands
        WHERE kept.id = stands.id;
    INSERT INTO windowpane.event
        SELECT sessions[of], first_seqs[of] + part, coalesce(moved_at, ats[of]), body
        FROM unnest(bodies, body_of, body_part, body_at) AS given (body, of, part, moved_at)
        WHERE outcomes[of] = 'stored';
    IF cardinality(blob_of) > 0 THEN
        INSERT INTO windowpane.blob
            SELECT sessions[of], hash, body
            FROM unnest(blob_of, blob_hashes, blob_bodies) AS given (of, hash, body)
            WHERE outcomes[of] = 'stored'
            ON CONFLICT DO NOTHING;
    END IF;
    INSERT INTO windowpane.writer AS known
        VALUES (of_writer, of_number, clock_timestamp(), outcomes, first_seqs, last_seqs, ats)
        ON CONFLICT (id) DO UPDATE SET
            number = excluded.number, at = excluded.at, outcomes = excluded.outcomes,
            first_seqs = excluded.first_seqs, last_seqs = excluded.last_seqs, ats = excluded.ats
        WHERE known.number < excluded.number;
    IF NOT FOUND THEN
        -- The writer's first batch came twice at once, and the other one was stored.
        RAISE EXCEPTION 'batch % came twice', of_number USING ERRCODE = 'serialization_failure';
    END IF;
END $$;

-- Remove a session so that nothing of it is left. With last_seq and touched_at only if it still stands there and nobody
-- but the holder holds its lease. Returns null when there is no such session.
CREATE FUNCTION windowpane.forget(
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
    DELETE FROM windowpane.session WHERE id = session_id;
    RETURN true;
END $$;

-- Empty events, forget blobs and the snapshot, and remember until where, so that no older snapshot comes back.
-- Returns false when there is no such session.
CREATE FUNCTION windowpane.erase(session_id text, seqs bigint[], hashes text[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE windowpane.session SET erased_seq = last_seq WHERE id = session_id;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE windowpane.event SET body = NULL WHERE session = session_id AND seq = ANY (seqs) AND body IS NOT NULL;
    DELETE FROM windowpane.blob WHERE session = session_id AND hash = ANY (hashes);
    DELETE FROM windowpane.snapshot WHERE session = session_id;
    RETURN true;
END $$;

-- Take or renew the lease by the server's clock. Returns null when there is no such session.
CREATE FUNCTION windowpane.acquire(session_id text, by_holder text, ttl_s double precision) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM windowpane.session WHERE id = session_id FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO windowpane.lease AS held
        VALUES (session_id, by_holder, clock_timestamp() + make_interval(secs => ttl_s))
        ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, until = excluded.until
        WHERE held.holder = excluded.holder OR held.until <= clock_timestamp();
    RETURN FOUND;
END $$;

-- Wake those who listen. It need not survive a power cut, so it does not wait for the disk.
CREATE FUNCTION windowpane.wake(message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM pg_notify('windowpane', message);
END $$;
