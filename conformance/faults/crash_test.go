package faults_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/conformance/faults"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

const childEnv = "IDEM_FAULTS_TEST_CHILD"

func TestMain(m *testing.M) {
	if file := os.Getenv(childEnv); file != "" {
		os.Exit(child(file))
	}
	os.Exit(m.Run())
}

// child runs one operation and writes down that it did.
func child(file string) int {
	c := faults.CrasherFromEnv()
	store, err := idemmemory.New()
	if err != nil {
		return 2
	}
	op, err := idem.NewOperation("payments", faults.WithPoints(store, c), idem.AtLeastOnce)
	if err != nil {
		return 2
	}
	err = idem.Do(context.Background(), "pay-42", func(context.Context) error {
		defer c.Point("effect")
		return os.WriteFile(file, []byte("x"), 0o600)
	}, idem.On(op))
	if err != nil {
		return 3
	}
	return 0
}

func TestChildDiesAtThePointThatItIsTold(t *testing.T) {
	t.Parallel()
	all := []string{"before Claim", "after Claim", "effect", "before Complete", "after Complete"}
	for n := range len(all) + 2 {
		file := filepath.Join(t.TempDir(), strconv.Itoa(n))
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+file)
		points, killed, err := faults.Crash(t.Context(), cmd, n)
		want := all
		if n > 0 {
			want = all[:min(n, len(all))]
		}
		if err != nil || killed != (n > 0 && n <= len(all)) || !slices.Equal(points, want) {
			t.Errorf("point %d: %q, killed %v, %v; want %q", n, points, killed, err, want)
		}
		_, err = os.Stat(file)
		if done := err == nil; done != slices.Contains(points, "effect") {
			t.Errorf("point %d: the effect is there: %v", n, done)
		}
	}
}

func TestFailedChildIsAnError(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+filepath.Join(t.TempDir(), "no", "such", "folder"))
	if _, killed, err := faults.Crash(t.Context(), cmd, 0); err == nil || killed {
		t.Error(killed, err)
	}
}

func TestProcessWithoutACrasherHasNoPoints(t *testing.T) {
	t.Parallel()
	store, err := idemmemory.New()
	if err != nil {
		t.Fatal(err)
	}
	faults.CrasherFromEnv().Point("ignored")
	if d := faults.WithPoints(store, nil); d != driver.Driver(store) {
		t.Error("a driver without a crasher was wrapped")
	}
}
