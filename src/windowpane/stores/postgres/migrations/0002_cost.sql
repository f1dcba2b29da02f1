-- What each owner's model calls cost a day, in billionths of a dollar. Deleting a session changes nothing here.
CREATE TABLE windowpane.cost (
    owner text NOT NULL,
    day date NOT NULL,
    nano_dollars bigint NOT NULL,
    unpriced_calls bigint NOT NULL,
    PRIMARY KEY (owner, day)
);
