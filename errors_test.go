package idem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/driver"
)

func TestErrorReadsAsOneLine(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*idem.Error{
		`idem: payments "pay-42": in progress elsewhere, retry in 12s`: {
			Reason: idem.ErrInProgress, Operation: "payments", Key: "pay-42", RetryAfter: 11500 * time.Millisecond,
		},
		`idem: payments "pay-42": store failed: EOF`: {
			Reason: idem.ErrStore, Operation: "payments", Key: "pay-42", Err: io.EOF,
		},
		`idem: wrong configuration: say so`: {Reason: idem.ErrConfig, Detail: "say so"},
		`idem: "a\nb\x00": invalid key`:     {Reason: idem.ErrInvalidKey, Key: "a\nb\x00"},
		`idem: "` + strings.Repeat("k", 64) + `"…: lease lost, retry in 1ms`: {
			Reason: idem.ErrLeaseLost, Key: strings.Repeat("k", 10_000), RetryAfter: time.Microsecond,
		},
	} {
		if e.Error() != want {
			t.Errorf("got  %s\nwant %s", e, want)
		}
	}
}

func TestWrongConfigurationKeepsItsCause(t *testing.T) {
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce)
	_, err := idem.Execute(t.Context(), "pay-42", func(context.Context) (chan int, error) { return make(chan int), nil }, idem.On(op))
	if wantError(t, err, idem.ErrConfig); !errors.Is(err, codec.ErrUnsupportedType) {
		t.Error(err)
	}
	_, err = idem.Wrap(op, func(int) (string, error) { return "k", nil }, func(context.Context, int) (chan int, error) { return make(chan int), nil })
	if wantError(t, err, idem.ErrConfig); !errors.Is(err, codec.ErrUnsupportedType) || strings.Count(err.Error(), "chan int") != 1 {
		t.Error(err)
	}
}

func TestFollowersAreToldOfTheStoresFailureOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, texts := newSpy(t), make(chan string, 2)
		op := operationOn(t, store, idem.AtLeastOnce)
		slow := func(context.Context, func() error) error { time.Sleep(time.Second / 2); return driver.ErrBusy }
		store.claims = []hook{slow}
		for range 2 {
			go func() {
				err := idem.Do(t.Context(), "pay-42", func(context.Context) error { return nil }, idem.On(op))
				texts <- fmt.Sprint(err)
			}()
		}
		first, other := <-texts, <-texts
		if first != other || strings.Count(other, "idem: payments") != 1 || !strings.Contains(other, "store failed") {
			t.Errorf("%s\n%s", first, other)
		}
	})
}

func TestErrorIsItsReasonAndItsCause(t *testing.T) {
	t.Parallel()
	var err error = &idem.Error{Reason: idem.ErrStore, Err: io.EOF}
	if !errors.Is(err, idem.ErrStore) || !errors.Is(err, io.EOF) || errors.Is(err, idem.ErrInProgress) {
		t.Fatal(err)
	}
}
