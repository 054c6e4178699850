package conformance

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openMemory(t testing.TB) driver.Driver {
	d, err := idemmemory.New()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func BenchmarkMemory(b *testing.B) { RunBenchmarks(b, Harness{Open: openMemory}) }

func TestMemory(t *testing.T) {
	t.Parallel()
	t.Run("in a bubble", func(t *testing.T) {
		t.Parallel()
		Run(t, Harness{Open: openMemory, Bubble: true, Name: "Memory", Report: "../docs/conformance.md"})
	})
	t.Run("in real time", func(t *testing.T) {
		t.Parallel()
		Run(t, Harness{Open: openMemory, Name: "Memory"})
	})
}
