package idem_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
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

func TestErrorIsItsReasonAndItsCause(t *testing.T) {
	t.Parallel()
	var err error = &idem.Error{Reason: idem.ErrStore, Err: io.EOF}
	if !errors.Is(err, idem.ErrStore) || !errors.Is(err, io.EOF) || errors.Is(err, idem.ErrInProgress) {
		t.Fatal(err)
	}
}
