-- A lease has a number, its fence, which grows with each worker that takes it. An append that carries an older one is
-- refused: a worker that slept longer than its lease cannot write into the turn of the worker after it.

ALTER TABLE windowpane.session ADD COLUMN fence bigint NOT NULL DEFAULT 0;

-- Store a batch of appends; see the function of the same name in 0001, which workers of the version before still call.
-- One more outcome: fenced (another took the lease since).
CREATE FUNCTION windowpane.append(
    of_writer uuid, of_number bigint,
    sessions text[], expected bigint[], keys text[], owners text[], agents text[], sizes integer[],
    moved_first timestamptz[], moved_last timestamptz[], moved_touched timestamptz[],
    bodies text[], body_of integer[], body_part integer[], body_at timestamptz[],
    blob_of integer[], blob_hashes text[], blob_bodies bytea[], fences bigint[],
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
        IF fences[i] < mine.fence THEN
            outcomes[i] := 'fenced';
            CONTINUE;
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

-- Take or renew the lease by the server's clock, and return its fence. Returns 0 when another holds it, and null when
-- there is no such session. The session is locked as an append locks it, so that none is on its way when the fence
-- grows.
CREATE FUNCTION windowpane.take_lease(session_id text, by_holder text, ttl_s double precision) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    mine windowpane.session;
    held windowpane.lease;
    now_at timestamptz;
BEGIN
    SELECT * INTO mine FROM windowpane.session WHERE id = session_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT * INTO held FROM windowpane.lease WHERE session = session_id;
    now_at := clock_timestamp();
    IF held.holder = by_holder THEN
        UPDATE windowpane.lease SET until = now_at + make_interval(secs => ttl_s) WHERE session = session_id;
        RETURN mine.fence;
    END IF;
    IF held.until > now_at THEN
        RETURN 0;
    END IF;
    mine.fence := greatest(mine.fence + 1, (extract(epoch FROM now_at) * 1000000)::bigint);
    UPDATE windowpane.session SET fence = mine.fence WHERE id = session_id;
    INSERT INTO windowpane.lease AS kept VALUES (session_id, by_holder, now_at + make_interval(secs => ttl_s))
        ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, until = excluded.until;
    RETURN mine.fence;
END $$;

-- For workers of the version before.
CREATE OR REPLACE FUNCTION windowpane.acquire(session_id text, by_holder text, ttl_s double precision) RETURNS boolean
LANGUAGE sql AS $$ SELECT windowpane.take_lease(session_id, by_holder, ttl_s) > 0 $$;
