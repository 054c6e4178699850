package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem/driver"
)

var batchCases = []testCase{
	{
		"batches/claims-are-decided-one-by-one",
		"ClaimBatch answers each claim in its place as Claim would, and a bad one spoils no other.",
		needs{leasesOrGuards, batchClaimer}, claimBatches,
	},
	{
		"batches/completions-are-decided-one-by-one",
		"CompleteBatch answers each completion in its place as Complete would, and a stale one spoils no other.",
		needs{leasesOrGuards, batchCompleter}, completeBatches,
	},
	{
		"batches/renewals-are-decided-one-by-one",
		"RenewBatch answers each renewal in its place as Renew would, and a stale one spoils no other.",
		needs{leasesOrGuards, batchRenewer}, renewBatches,
	},
	{
		"batches/claims-have-one-winner",
		"Where batches and single claims meet on the same keys, each key is granted once.",
		needs{leasesOrGuards, batchClaimer}, batchesHaveOneWinner,
	},
}

// callers are new callers of n keys.
func (s *suite) callers(n int) []driver.ClaimParams {
	list := make([]driver.ClaimParams, n)
	for i := range list {
		list[i] = s.caller()
		list[i].Key = key(fmt.Sprint("batch", i))
	}
	return list
}

func (s *suite) claimBatch(claims []driver.ClaimParams) []driver.ClaimAnswer {
	b, _ := driver.As[driver.BatchClaimer](s.d)
	res, err := b.ClaimBatch(s.ctx, driver.ClaimBatchParams{Claims: claims})
	if err != nil {
		s.Fatalf("ClaimBatch: %v", err)
	}
	if len(res.Claims) != len(claims) {
		s.Fatalf("ClaimBatch gave %d answers to %d claims", len(res.Claims), len(claims))
	}
	return res.Claims
}

func claimBatches(s *suite) {
	claims := s.callers(6)
	completed, live, newer, stub := claims[0], claims[2], claims[3], claims[4]
	s.grant(completed)
	s.complete(completion(completed))
	s.grant(live)
	newer.Format = format + 1
	s.grant(newer)
	s.grant(stub)
	s.release(stub)
	claims[0], claims[2], claims[4] = again(completed), again(live), again(stub)
	answers := s.claimBatch(claims)
	for i, want := range []driver.Decision{
		driver.DecisionCompleted, driver.DecisionClaimed, driver.DecisionInFlight,
		0, driver.DecisionClaimed, driver.DecisionClaimed,
	} {
		if a := answers[i]; a.Result.Decision != want || (a.Err == nil) != (want != 0) {
			s.Errorf("answer %d is %v, %v; want %v", i, a.Result.Decision, a.Err, want)
		}
	}
	if !errors.Is(answers[3].Err, driver.ErrNewerFormat) {
		s.Errorf("the claim of a newer record returned %v, want ErrNewerFormat", answers[3].Err)
	}
	if !bytes.Equal(answers[0].Result.Outcome, outcome) || answers[4].Result.Attempt != 2 {
		s.Errorf("outcome %q, attempt %d; want %q, 2", answers[0].Result.Outcome, answers[4].Result.Attempt, outcome)
	}
	for _, i := range []int{1, 4, 5} {
		if res := s.grant(claims[i]); !res.Own || res.Fence != answers[i].Result.Fence {
			s.Errorf("claim %d of the batch is not recognised", i)
		}
		s.complete(completion(claims[i]))
	}
}

func completeBatches(s *suite) {
	claims := s.callers(4)
	for _, p := range claims[:3] {
		s.grant(p)
	}
	s.release(claims[1])
	s.complete(completion(claims[2]))
	done := make([]driver.CompleteParams, len(claims))
	for i, p := range claims {
		done[i] = completion(p)
		done[i].Outcome = fmt.Append(nil, "outcome ", i)
	}
	b, _ := driver.As[driver.BatchCompleter](s.d)
	res, err := b.CompleteBatch(s.ctx, driver.CompleteBatchParams{Completions: done})
	if err != nil || len(res.Completions) != len(claims) {
		s.Fatalf("CompleteBatch: %d answers, %v", len(res.Completions), err)
	}
	a := res.Completions
	if a[0].Err != nil || a[0].Result.Already || a[2].Err != nil || !a[2].Result.Already {
		s.Errorf("a live and a completed claim are answered %+v and %+v", a[0], a[2])
	}
	if !errors.Is(a[1].Err, driver.ErrLost) || !errors.Is(a[3].Err, driver.ErrLost) {
		s.Errorf("a released and an absent claim are %v and %v, want ErrLost", a[1].Err, a[3].Err)
	}
	for i, want := range map[int]string{0: "outcome 0", 2: "outcome"} {
		if got := s.expect(driver.DecisionCompleted, again(claims[i])).Outcome; string(got) != want {
			s.Errorf("outcome %d is %q, want %q", i, got, want)
		}
	}
	s.grant(claims[3])
}

func renewBatches(s *suite) {
	claims := s.callers(3)
	for i := range claims[:2] {
		claims[i].Lease = time.Second
		s.grant(claims[i])
	}
	s.release(claims[1])
	renewals := make([]driver.RenewParams, len(claims))
	for i, p := range claims {
		renewals[i] = driver.RenewParams{Key: p.Key, Token: p.Token, Lease: long}
	}
	b, _ := driver.As[driver.BatchRenewer](s.d)
	res, err := b.RenewBatch(s.ctx, driver.RenewBatchParams{Renewals: renewals})
	if err != nil || len(res.Renewals) != len(claims) {
		s.Fatalf("RenewBatch: %d answers, %v", len(res.Renewals), err)
	}
	if err := res.Renewals[0].Err; err != nil {
		s.Errorf("renewing a live claim: %v", err)
	}
	s.within("LeaseLeft", res.Renewals[0].Result.LeaseLeft, long)
	for _, a := range res.Renewals[1:] {
		if !errors.Is(a.Err, driver.ErrLost) {
			s.Errorf("renewing a claim that is not held returned %v, want ErrLost", a.Err)
		}
	}
	if dup := s.expect(driver.DecisionInFlight, again(claims[0])); dup.LeaseLeft <= time.Second {
		s.Errorf("the renewed lease has %v left", dup.LeaseLeft)
	}
}

func batchesHaveOneWinner(s *suite) {
	claims := s.callers(8)
	granted := make(chan driver.Key, 1000)
	s.parallel(8, func(i int) {
		mine := make([]driver.ClaimParams, len(claims))
		for j := range claims {
			mine[j] = again(claims[(i+j)%len(claims)])
		}
		if i%2 == 0 {
			for j, a := range s.claimBatch(mine) {
				if a.Err == nil && a.Result.Decision == driver.DecisionClaimed {
					granted <- mine[j].Key
				}
			}
			return
		}
		for _, p := range mine {
			if s.try(p).Decision == driver.DecisionClaimed {
				granted <- p.Key
			}
		}
	})
	close(granted)
	winners := make(map[driver.Key]int)
	for k := range granted {
		winners[k]++
	}
	for _, p := range claims {
		if n := winners[p.Key]; n != 1 {
			s.Errorf("%q was granted %d times, want once", p.Key.ID, n)
		}
	}
}
