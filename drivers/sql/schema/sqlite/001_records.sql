CREATE TABLE {table} (
    scope       BLOB    NOT NULL,
    id          BLOB    NOT NULL,
    format      INTEGER NOT NULL,
    state       INTEGER NOT NULL, -- driver.State
    guarantee   INTEGER NOT NULL, -- driver.Guarantee
    on_lapse    INTEGER NOT NULL, -- driver.OnLapse
    token       BLOB    NOT NULL, -- all zero: settled by hand
    fence       INTEGER NOT NULL,
    generation  INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    took_over   INTEGER NOT NULL, -- 1: the claim took the record from one that had not released it
    fingerprint BLOB,
    claimed_at  INTEGER NOT NULL, -- microseconds since 1970, as all times here
    lease_end   INTEGER,          -- claimed only
    ended_at    INTEGER,          -- any other state: when it came to be
    retention   INTEGER,          -- microseconds from ended_at, or from lease_end if that makes it uncertain; NULL: for ever
    tombstone   INTEGER,          -- microseconds from the retention's end; NULL: for ever
    purge_at    INTEGER,          -- from then on the row may be deleted; NULL: never
    outcome     BLOB,
    PRIMARY KEY (scope, id)
) STRICT;

CREATE INDEX {table}_purge ON {table} (purge_at) WHERE purge_at IS NOT NULL;
