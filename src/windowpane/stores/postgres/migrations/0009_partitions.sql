-- Events and texts in sixteen partitions each, by hash of their session: every partition has a B-tree of a sixteenth of the
-- size, and is vacuumed by itself. A store that has events stays as it is; `windowpane store copy` into a new database moves
-- it into partitions.
DO $$
BEGIN
    IF EXISTS (SELECT FROM windowpane.event) OR EXISTS (SELECT FROM windowpane.blob) THEN
        RETURN;
    END IF;
    DROP TABLE windowpane.event, windowpane.blob;
    CREATE TABLE windowpane.event (
        session text COLLATE "C",
        seq bigint,
        at timestamptz NOT NULL,
        body text, -- JSON; null when it was erased
        PRIMARY KEY (session, seq)
    ) PARTITION BY HASH (session);
    CREATE TABLE windowpane.blob (
        session text COLLATE "C",
        hash text COLLATE "C",
        body bytea NOT NULL,
        PRIMARY KEY (session, hash)
    ) PARTITION BY HASH (session);
    ALTER TABLE windowpane.blob ALTER COLUMN body SET STORAGE EXTERNAL;
    FOR number IN 0 .. 15 LOOP
        EXECUTE format(
            'CREATE TABLE windowpane.event_%s PARTITION OF windowpane.event FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            number, number
        );
        EXECUTE format(
            'CREATE TABLE windowpane.blob_%s PARTITION OF windowpane.blob FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            number, number
        );
    END LOOP;
END $$;
