package idemsql_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
)

// L1: what cannot be read is neither free nor taken over, and stays as it is.
func TestACorruptRecordIsErrCorruptAndStays(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for what, damage := range map[string]string{
		"no lease end":    "lease_end = NULL",
		"no state":        "state = 77",
		"no outcome":      "state = 2, ended_at = 1",
		"no end":          "state = 5, ended_at = NULL",
		"no meaning":      "on_lapse = 0",
		"a short token":   "token = x'01'",
		"a stored expiry": "state = 4, ended_at = 1",
	} {
		p := claimOf(what)
		p.Lease = time.Millisecond
		s.mustClaim(p, driver.DecisionClaimed)
		s.db.MustExec("UPDATE idem_records SET "+damage+" WHERE id = ?", []byte(what))
		dump := s.dump(what)
		time.Sleep(3 * time.Millisecond)
		if _, err := s.Claim(t.Context(), claimOf(what)); !errors.Is(err, driver.ErrCorrupt) {
			t.Errorf("%s: Claim says %v", what, err)
		}
		if _, err := s.transact(t.Context(), claimOf(what), effect(what)); !errors.Is(err, driver.ErrCorrupt) {
			t.Errorf("%s: Transact says %v", what, err)
		}
		if _, err := s.Inspect(t.Context(), driver.InspectParams{Key: key(what)}); !errors.Is(err, driver.ErrCorrupt) {
			t.Errorf("%s: Inspect says %v", what, err)
		}
		if now := s.dump(what); now != dump {
			t.Errorf("%s: the record was\n%s\nand is\n%s", what, dump, now)
		}
	}
	res, err := s.List(t.Context(), driver.ListParams{Limit: 100})
	if err != nil || len(res.Records) != 7 {
		t.Errorf("List shows %d of 7 corrupt records, %v", len(res.Records), err)
	}
}

func (b *bundle) dump(id string) string {
	b.t.Helper()
	row := map[string]any{}
	must(b.t, b.db.QueryRowx("SELECT * FROM idem_records WHERE id = ?", []byte(id)).MapScan(row)) //nolint:unqueryvet // all of it
	return fmt.Sprint(row)
}

// Rule 8.
func TestANewerRecordIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("x")
	p.Lease = time.Millisecond
	claimed := s.mustClaim(p, driver.DecisionClaimed)
	s.db.MustExec("UPDATE idem_records SET format = 2, state = 9")
	dump := s.dump("x")
	time.Sleep(3 * time.Millisecond)
	newer := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, driver.ErrNewerFormat) {
			t.Errorf("%s: %v is not ErrNewerFormat", what, err)
		}
	}
	_, err := s.Claim(t.Context(), claimOf("x"))
	newer("Claim", err)
	_, err = s.transact(t.Context(), claimOf("x"), effect("x"))
	newer("Transact", err)
	_, err = s.Complete(t.Context(), completionOf(p, "x"))
	newer("Complete", err)
	_, err = s.Resolve(t.Context(), driver.ResolveParams{
		Key: p.Key, Fence: claimed.Fence, Action: driver.ResolveForget, Format: 1,
	})
	newer("Resolve", err)
	if now := s.dump("x"); now != dump {
		t.Errorf("the record was\n%s\nand is\n%s", dump, now)
	}
	s.db.MustExec("UPDATE idem_records SET state = 1") // claimed still, by this very token
	dump = s.dump("x")
	_, err = s.Complete(t.Context(), completionOf(p, "x"))
	newer("Complete", err)
	if now := s.dump("x"); now != dump {
		t.Errorf("the record was\n%s\nand is\n%s", dump, now)
	}
}

// S9.
func TestAnOutcomeComesBackByteForByte(t *testing.T) {
	t.Parallel()
	s := setup(t)
	big := make([]byte, 17<<20)
	_, _ = rand.Read(big)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for name, outcome := range map[string][]byte{"every byte": all, "64 KiB + 1": big[:64<<10+1], "17 MiB": big} {
		for _, inbox := range []bool{false, true} {
			p := claimOf(fmt.Sprint(name, inbox))
			if inbox {
				_, err := s.Transact(t.Context(), driver.TransactParams{Claim: p}, completeWith(p, outcome))
				must(t, err)
			} else {
				s.mustClaim(p, driver.DecisionClaimed)
				s.mustComplete(p, string(outcome))
			}
			p.Token = newToken()
			if res := s.mustClaim(p, driver.DecisionCompleted); !bytes.Equal(res.Outcome, outcome) {
				t.Errorf("%s: %d bytes come back, and are not the same", name, len(res.Outcome))
			}
		}
	}
}

// S7.
func TestKeysAreBytes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	keys := []string{"Abc", "abc", "abc ", "\u00e1bc", "a\u0301bc", "a\x00b", "a\x00", "a", "\xff\xfe", "1", "1.0", "x'61'"}
	for _, k := range keys {
		s.mustClaim(claimOf(k), driver.DecisionClaimed)
	}
	for _, k := range keys {
		s.mustClaim(claimOf(k), driver.DecisionInFlight)
	}
	if n := s.rows(); n != len(keys) {
		t.Errorf("%d records of %d keys", n, len(keys))
	}
	res, err := s.List(t.Context(), driver.ListParams{Scope: "payments", Limit: 100})
	must(t, err)
	got := map[string]bool{}
	for _, r := range res.Records {
		got[r.Key.ID] = true
	}
	for _, k := range keys {
		if !got[k] {
			t.Errorf("List does not show %q", k)
		}
	}
}

func TestListPagesThroughEverythingOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for i := range 25 {
		p := claimOf(strconv.Itoa(i))
		p.Key.Scope = []string{"a", "a:", "b"}[i%3]
		s.mustClaim(p, driver.DecisionClaimed)
		if i%2 == 0 {
			s.mustComplete(p, "x")
		}
	}
	count := func(p driver.ListParams) int {
		seen := map[driver.Key]int{}
		for {
			res, err := s.List(t.Context(), p)
			must(t, err)
			for _, r := range res.Records {
				seen[r.Key]++
			}
			if len(res.Records) > p.Limit {
				t.Errorf("a page of %d has %d records", p.Limit, len(res.Records))
			}
			if p.After = res.Next; p.After == "" {
				return len(seen)
			}
		}
	}
	for _, c := range []struct {
		p    driver.ListParams
		want int
	}{
		{driver.ListParams{Limit: 4}, 25},
		{driver.ListParams{Limit: 5}, 25},
		{driver.ListParams{Limit: 100}, 25},
		{driver.ListParams{Limit: 2, Scope: "a"}, 9},
		{driver.ListParams{Limit: 3, Scope: "none"}, 0},
		{driver.ListParams{Limit: 3, State: driver.StateCompleted}, 13},
		{driver.ListParams{Limit: 3, State: driver.StateUncertain}, 0},
	} {
		if n := count(c.p); n != c.want {
			t.Errorf("%+v lists %d records, want %d", c.p, n, c.want)
		}
	}
	for _, after := range []string{"x", "3:a", "-1:a:b", "99999999999999999999:a:b"} {
		if _, err := s.List(t.Context(), driver.ListParams{Limit: 1, After: after}); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("After %q: %v is not ErrInvalid", after, err)
		}
	}
}

func TestABatchOfRenewalsAnswersEachAsRenewDoes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p, stale, done := claimOf("held"), claimOf("held"), claimOf("done")
	s.mustClaim(p, driver.DecisionClaimed)
	s.mustClaim(done, driver.DecisionClaimed)
	s.mustComplete(done, "x")
	res, err := s.RenewBatch(t.Context(), driver.RenewBatchParams{Renewals: []driver.RenewParams{
		renewalOf(p, time.Hour), renewalOf(stale, time.Hour), renewalOf(done, time.Hour), renewalOf(claimOf("absent"), time.Hour),
		renewalOf(p, time.Millisecond), renewalOf(p, 0),
	}})
	must(t, err)
	for i, want := range []error{nil, driver.ErrLost, driver.ErrLost, driver.ErrLost, nil, driver.ErrInvalid} {
		if got := res.Renewals[i]; !errors.Is(got.Err, want) || want == nil && got.Result.LeaseLeft < 59*time.Minute {
			t.Errorf("renewal %d: %+v, want %v", i, got, want)
		}
	}
	res, err = s.RenewBatch(t.Context(), driver.RenewBatchParams{Renewals: []driver.RenewParams{renewalOf(stale, 24*time.Hour)}})
	if err != nil || !errors.Is(res.Renewals[0].Err, driver.ErrLost) {
		t.Errorf("a stale renewal alone: %+v, %v", res, err)
	}
	if left := s.inspect("held").LeaseLeft; left > time.Hour {
		t.Errorf("a stale renewal has prolonged the lease to %v", left)
	}
	if res, err := s.RenewBatch(t.Context(), driver.RenewBatchParams{}); err != nil || len(res.Renewals) != 0 {
		t.Errorf("an empty batch: %v, %v", res, err)
	}
}
