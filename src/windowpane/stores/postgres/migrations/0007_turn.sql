-- A turn takes its lease with its first append and gives it back with its last, so that neither is a statement of its own.

ALTER TABLE windowpane.writer ADD COLUMN taken bigint[];

-- Store a batch of appends; see the function of the same name in 0003, which workers of the version before still call.
-- takers and ttls_s ask for the lease, givers give it back; taken tells the fences. One more outcome: busy (another holds
-- the lease). A batch that is not lasting does not wait for the disk.
CREATE FUNCTION windowpane.append(
    of_writer uuid, of_number bigint,
    sessions text[], expected bigint[], keys text[], owners text[], agents text[], sizes integer[],
    moved_first timestamptz[], moved_last timestamptz[], moved_touched timestamptz[],
    bodies text[], body_of integer[], body_part integer[], body_at timestamptz[],
    blob_of integer[], blob_hashes text[], blob_bodies bytea[], fences bigint[],
    takers text[], ttls_s double precision[], givers text[], lasting boolean,
    OUT outcomes text[], OUT first_seqs bigint[], OUT last_seqs bigint[], OUT ats timestamptz[], OUT taken bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
    done windowpane.writer;
    mine windowpane.session;
    earlier windowpane.append_key;
    held windowpane.lease;
    now_at timestamptz;
BEGIN
    IF NOT lasting THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    SELECT * INTO done FROM windowpane.writer WHERE id = of_writer FOR UPDATE;
    IF done.number = of_number THEN
        outcomes := done.outcomes;
        first_seqs := done.first_seqs;
        last_seqs := done.last_seqs;
        ats := done.ats;
        taken := done.taken;
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
        taken[i] := NULL;
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
        IF takers[i] IS NOT NULL THEN
            SELECT * INTO held FROM windowpane.lease WHERE session = mine.id;
            IF held.holder IS DISTINCT FROM takers[i] THEN
                IF held.until > clock_timestamp() THEN
                    outcomes[i] := 'busy';
                    CONTINUE;
                END IF;
                mine.fence := greatest(mine.fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
            END IF;
            taken[i] := mine.fence;
            INSERT INTO windowpane.lease
                VALUES (mine.id, takers[i], clock_timestamp() + make_interval(secs => ttls_s[i]))
                ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, until = excluded.until;
        END IF;
        IF givers[i] IS NOT NULL THEN
            DELETE FROM windowpane.lease WHERE session = mine.id AND holder = givers[i];
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
        SET last_seq = stands.last_seq, touched_at = greatest(kept.touched_at, stands.touched_at),
            fence = greatest(kept.fence, stands.fence)
        FROM (
            SELECT sessions[i] AS id, max(last_seqs[i]) AS last_seq, max(coalesce(moved_touched[i], ats[i])) AS touched_at,
                max(taken[i]) AS fence
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
        VALUES (of_writer, of_number, clock_timestamp(), outcomes, first_seqs, last_seqs, ats, taken)
        ON CONFLICT (id) DO UPDATE SET
            number = excluded.number, at = excluded.at, outcomes = excluded.outcomes,
            first_seqs = excluded.first_seqs, last_seqs = excluded.last_seqs, ats = excluded.ats, taken = excluded.taken
        WHERE known.number < excluded.number;
    IF NOT FOUND THEN
        -- The writer's first batch came twice at once, and the other one was stored.
        RAISE EXCEPTION 'batch % came twice', of_number USING ERRCODE = 'serialization_failure';
    END IF;
END $$;

-- Take or renew the lease; see 0003. It need not survive a power cut, so it does not wait for the disk: a fence that is
-- given later is greater also where the last one was lost, because it is the time.
CREATE OR REPLACE FUNCTION windowpane.take_lease(session_id text, by_holder text, ttl_s double precision) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    mine windowpane.session;
    held windowpane.lease;
    now_at timestamptz;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
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

-- Renew leases that their holders have, in the order of their sessions, and return these.
CREATE FUNCTION windowpane.renew_leases(sessions text[], holders text[], ttl_s double precision) RETURNS SETOF text
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY
        WITH mine AS (
            SELECT lease.session FROM windowpane.lease
            JOIN unnest(sessions, holders) AS given (session, holder)
                ON lease.session = given.session AND lease.holder = given.holder
            ORDER BY lease.session FOR UPDATE OF lease
        )
        UPDATE windowpane.lease SET until = clock_timestamp() + make_interval(secs => ttl_s)
            FROM mine WHERE lease.session = mine.session
            RETURNING lease.session;
END $$;

-- Give the lease back, without waiting for the disk.
CREATE FUNCTION windowpane.release_lease(session_id text, by_holder text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    DELETE FROM windowpane.lease WHERE session = session_id AND holder = by_holder;
END $$;
