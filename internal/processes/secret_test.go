package processes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/redis/rueidis"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec/aead"
	"github.com/idem-go/idem/driver"
)

const secret = "card 4111-1111-1111-1111"

func sealed(t *testing.T, d driver.Driver, keys ...byte) *idem.Operation {
	t.Helper()
	ring := make([]aead.Key, 0, len(keys))
	for _, k := range keys {
		ring = append(ring, aead.Key{ID: fmt.Sprint("key ", k), Secret: bytes.Repeat([]byte{k}, aead.SecretSize)})
	}
	transform, err := aead.New(ring[0], ring[1:]...)
	must(t, err)
	op, err := idem.NewOperation("sealed", d, idem.AtLeastOnce, idem.WithTransforms(transform), idem.Replayable[*declinedError]("declined"),
		idem.WithFingerprintKey([]byte("0123456789abcdef")))
	must(t, err)
	return op
}

// dump is everything that the store keeps, as whoever holds its disk sees it.
func (p place) dump(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	if p.Driver == "redis" {
		must(t, p.redis(t.Context(), func(c rueidis.Client, keys []string) error {
			for _, key := range keys {
				data, err := c.Do(t.Context(), c.B().Dump().Key(key).Build()).ToString() // as a backup has it
				fields, hashErr := c.Do(t.Context(), c.B().Hgetall().Key(key).Build()).AsStrMap()
				text, textErr := c.Do(t.Context(), c.B().Get().Key(key).Build()).ToString()
				if err != nil || hashErr != nil && textErr != nil {
					return errors.Join(err, hashErr, textErr)
				}
				_, _ = fmt.Fprint(&all, key, data, fields, text)
			}
			return nil
		}))
		return all.String()
	}
	db := sqlx.MustOpen(p.Driver, p.DSN)
	defer func() { _ = db.Close() }()
	rows, err := db.QueryxContext(t.Context(), "SELECT * FROM "+p.Table) //nolint:unqueryvet // whatever there is
	must(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		values, err := rows.SliceScan()
		must(t, err)
		for _, v := range values {
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			_, _ = fmt.Fprint(&all, v, "\n")
		}
	}
	must(t, rows.Err())
	if p.Driver == "sqlite" {
		path, _, _ := strings.Cut(strings.TrimPrefix(p.DSN, "file:"), "?")
		files, err := filepath.Glob(path + "*") // the log, too
		must(t, err)
		for _, f := range files {
			data, err := os.ReadFile(f)
			must(t, err)
			all.Write(data)
		}
		if len(files) < 2 {
			t.Errorf("only %q was read", files)
		}
	}
	return all.String()
}

func TestDumpOfASealedStoreHidesTheSecret(t *testing.T) { // CASES C11
	t.Parallel()
	everyStore(t, func(t *testing.T, where place, d driver.Driver) {
		t.Helper()
		op := sealed(t, d, 1)
		value := func(ctx context.Context) (string, error) {
			return idem.Step(ctx, "step", func(context.Context) (string, error) { return secret, nil })
		}
		failure := func(context.Context) error { return fmt.Errorf("%s: %w", secret, &declinedError{Code: secret}) }
		replays := func(op *idem.Operation) {
			t.Helper()
			got, err := idem.Execute(t.Context(), "value", value, idem.On(op), idem.WithFingerprint(secret))
			if err != nil || got != secret {
				t.Errorf("%q, %v", got, err)
			}
			err = idem.Do(t.Context(), "failure", failure, idem.On(op))
			if declined, ok := errors.AsType[*declinedError](err); !ok || declined.Code != secret {
				t.Error(err)
			}
		}
		replays(op)
		all := where.dump(t)
		if len(all) < 300 || strings.Contains(all, "4111") {
			t.Fatalf("%d bytes, the secret is at %d", len(all), strings.Index(all, "4111"))
		}
		if !strings.Contains(all, "value") { // a key: it was the right place to look
			t.Errorf("%q", all)
		}

		value = func(context.Context) (string, error) { t.Error("it ran again"); return "", nil }
		failure = func(context.Context) error { t.Error("it ran again"); return nil }
		replays(sealed(t, d, 2, 1)) // rotated
		wrong := sealed(t, d, 2)
		if _, err := idem.Execute(t.Context(), "value", value, idem.On(wrong)); !errors.Is(err, idem.ErrUnreadable) || !errors.Is(err, aead.ErrOpen) {
			t.Error("a wrong key:", err)
		}
		moved(t, d)
		if _, err := idem.Execute(t.Context(), "moved", value, idem.On(op)); !errors.Is(err, idem.ErrUnreadable) || !errors.Is(err, aead.ErrOpen) {
			t.Error("a moved row:", err)
		}
		t.Logf("%d bytes were looked through", len(all))
	})
}

// moved puts the outcome of one key under another, as whoever can write to the store may.
func moved(t *testing.T, d driver.Driver) {
	t.Helper()
	i, ok := driver.As[driver.Inspector](d)
	if !ok {
		t.Fatal("the driver cannot be looked into")
	}
	res, err := i.Inspect(t.Context(), driver.InspectParams{Key: driver.Key{Scope: "sealed", ID: "value"}})
	must(t, err)
	p := driver.ClaimParams{
		Key: driver.Key{Scope: "sealed", ID: "moved"}, Token: driver.Token{1}, Lease: lease, OnLapse: driver.TakeOver,
		Guarantee: driver.AtLeastOnce, Retention: 100 * lease, Format: 1,
	}
	_, err = d.Claim(t.Context(), p)
	must(t, err)
	_, err = d.Complete(t.Context(), driver.CompleteParams{
		Key: p.Key, Token: p.Token, To: driver.StateCompleted, Outcome: res.Record.Outcome, Retention: p.Retention, Format: 1,
	})
	must(t, err)
}
