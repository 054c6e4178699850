package boltdriver_test

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/idem-go/idem/conformance"
	"github.com/idem-go/idem/conformance/histories"
	"github.com/idem-go/idem/driver"
	boltdriver "github.com/idem-go/idem/examples/custom-driver"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Harness{Open: open})
}

func TestHistories(t *testing.T) {
	t.Parallel()
	histories.Check(t, conformance.Harness{Open: open}, histories.Options{})
}

func open(t testing.TB) driver.Driver {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "idem.db"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := boltdriver.New(db)
	if err != nil {
		t.Fatal(err)
	}
	return store
}
