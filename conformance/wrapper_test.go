package conformance

import (
	"testing"

	"github.com/idem-go/idem/driver"
)

// transparent is a wrapper that changes nothing.
type transparent struct{ driver.Driver }

func (w transparent) Unwrap() driver.Driver { return w.Driver }

func TestAbilitiesShowThroughTransparentWrappers(t *testing.T) {
	t.Parallel()
	d := openMemory(t)
	want, ok := driver.As[driver.Inspector](d)
	if !ok {
		t.Fatal("the driver has no Inspector")
	}
	if got, ok := driver.As[driver.Inspector](transparent{transparent{d}}); !ok || got != want {
		t.Errorf("through wrappers the Inspector is %v, %v", got, ok)
	}
	if _, ok := driver.As[driver.Inspector](transparent{opaque{d}}); ok {
		t.Error("an ability is found through a wrapper without Unwrap")
	}
	if _, ok := driver.As[driver.Transactor](transparent{d}); ok {
		t.Error("an ability is found that the driver lacks")
	}
	if _, ok := driver.As[driver.Inspector](nil); ok {
		t.Error("an ability of no driver is found")
	}
}
