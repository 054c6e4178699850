package idemsql_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

// S17: Verify finds a pooler that loses prepared statements, and nothing else stops it.
func TestVerifyFindsAPooler(t *testing.T) {
	t.Parallel()
	dsn := testenv.Backend(t, testenv.PgBouncer)
	for _, tc := range []struct {
		driver, params string
		opts           []idemsql.Option
		fit            bool
	}{
		{driver: "postgres", fit: false},
		{driver: "pgx", fit: false},
		{driver: "postgres", params: "&binary_parameters=yes", fit: false},
		{driver: "postgres", params: "&binary_parameters=yes", opts: unprepared, fit: true},
		{driver: "pgx", params: "&default_query_exec_mode=exec", opts: unprepared, fit: true},
	} {
		table := "pooled_" + strings.ToLower(newID()[:8])
		db, err := sqlx.Open(tc.driver, dsn+tc.params)
		must(t, err)
		store, err := idemsql.New(db, append([]idemsql.Option{idemsql.WithTable(table)}, tc.opts...)...)
		must(t, err)
		err = store.Migrate(t.Context())
		if tc.fit {
			must(t, err)
		}
		if err == nil {
			_, err = store.Verify(context.Background(), driver.VerifyParams{})
			if tc.fit && err != nil || !tc.fit && (!errors.Is(err, driver.ErrUnfit) || !strings.Contains(err.Error(), "WithoutPreparedStatements")) {
				t.Errorf("%s%s: Verify says %v", tc.driver, tc.params, err)
			}
		}
		t.Logf("%s%s, %d options: %v", tc.driver, tc.params, len(tc.opts), err)
		_, _ = db.Exec("DROP TABLE " + table)
		_, _ = db.Exec("DROP TABLE " + table + "_version")
		must(t, db.Close())
	}
}
