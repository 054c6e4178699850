package idemsql_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// crashed is the exit status of a process that ended where it was meant to.
const crashed = 3

// crashProcess ends in the middle of an inbox, after its effect.
func crashProcess(path string) int {
	db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN(path))
	s, err := idemsql.New(db)
	if err != nil {
		return 1
	}
	b := &bundle{Store: s, db: db, path: path}
	_, _ = b.transact(context.Background(), claimOf("x"), func(ctx context.Context) error {
		if effect("x")(ctx) == nil {
			os.Exit(crashed)
		}
		return nil
	})
	return 1
}

func TestAProcessThatDiesInItsInboxLeavesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+s.path)
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != crashed {
		t.Fatalf("the process ended with %d", code)
	}
	s.unchanged("a dead process", "x")
	_, err := s.transact(t.Context(), claimOf("x"), effect("x"))
	must(t, err)
	s.mustClaim(claimOf("x"), driver.DecisionCompleted)
}
