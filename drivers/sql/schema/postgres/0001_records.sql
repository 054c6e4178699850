CREATE TABLE {table} (
    scope       bytea    NOT NULL,
    id          bytea    NOT NULL,
    format      smallint NOT NULL,
    state       smallint NOT NULL, -- driver.State
    guarantee   smallint NOT NULL, -- driver.Guarantee
    on_lapse    smallint NOT NULL, -- driver.OnLapse
    took_over   boolean  NOT NULL, -- the claim took the record from one that had not released it
    attempt     integer  NOT NULL,
    token       bytea    NOT NULL, -- all zero: settled by hand
    fence       bigint   NOT NULL,
    generation  bigint   NOT NULL,
    claimed_at  bigint   NOT NULL, -- microseconds since 1970, as all times here
    lease_end   bigint,            -- claimed only
    ended_at    bigint,            -- any other state: when it came to be
    retention   bigint,            -- microseconds from ended_at, or from lease_end if that makes it uncertain; NULL: for ever
    tombstone   bigint,            -- microseconds from the retention's end; NULL: for ever
    purge_at    bigint,            -- from then on the row may be deleted; NULL: never
    fingerprint bytea,
    outcome     bytea,
    PRIMARY KEY (scope, id)
) WITH (fillfactor = 70); -- each row is written twice: room for the second next to the first

CREATE INDEX {table}_purge ON {table} (purge_at) WHERE purge_at IS NOT NULL;
