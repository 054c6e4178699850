package idemredis

import (
	"context"
	"sync"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

// ClaimBatch implements [driver.BatchClaimer] by a pipeline to each node. If
// claims have to be confirmed ([WithWaitReplicas], [WithWaitAOF]), each goes its own way.
func (s *Store) ClaimBatch(ctx context.Context, p driver.ClaimBatchParams) (driver.ClaimBatchResult, error) {
	answers := make([]driver.ClaimAnswer, len(p.Claims))
	if s.waits() {
		var wg sync.WaitGroup
		for i := range p.Claims {
			wg.Go(func() { answers[i].Result, answers[i].Err = s.Claim(ctx, p.Claims[i]) })
		}
		wg.Wait()
		return driver.ClaimBatchResult{Claims: answers}, nil
	}
	b := newBatch(s, claimScript, len(p.Claims))
	for i := range p.Claims {
		c := &p.Claims[i]
		if answers[i].Err = checkClaim(c); answers[i].Err == nil {
			b.add(i, c.Key, claimArgs(c, false))
		}
	}
	b.run(ctx, func(i int, a answer, err error) {
		answers[i].Result, answers[i].Err = claimed(a, err, &p.Claims[i])
	})
	return driver.ClaimBatchResult{Claims: answers}, nil
}

// CompleteBatch implements [driver.BatchCompleter] by a pipeline to each node.
func (s *Store) CompleteBatch(ctx context.Context, p driver.CompleteBatchParams) (driver.CompleteBatchResult, error) {
	answers := make([]driver.CompleteAnswer, len(p.Completions))
	b := newBatch(s, completeScript, len(p.Completions))
	for i := range p.Completions {
		c := &p.Completions[i]
		if answers[i].Err = s.checkCompletion(c); answers[i].Err == nil {
			b.add(i, c.Key, completeArgs(c))
		}
	}
	b.run(ctx, func(i int, a answer, err error) {
		answers[i].Result, answers[i].Err = completed(a, err, &p.Completions[i])
	})
	return driver.CompleteBatchResult{Completions: answers}, nil
}

// RenewBatch implements [driver.BatchRenewer] by a pipeline to each node.
func (s *Store) RenewBatch(ctx context.Context, p driver.RenewBatchParams) (driver.RenewBatchResult, error) {
	answers := make([]driver.RenewAnswer, len(p.Renewals))
	b := newBatch(s, renewScript, len(p.Renewals))
	for i := range p.Renewals {
		r := &p.Renewals[i]
		if answers[i].Err = r.Validate(); answers[i].Err == nil {
			b.add(i, r.Key, renewArgs(r))
		}
	}
	b.run(ctx, func(i int, a answer, err error) {
		answers[i].Result, answers[i].Err = renewed(a, err)
	})
	return driver.RenewBatchResult{Renewals: answers}, nil
}

// batch is one script on many keys.
type batch struct {
	store  *Store
	script script
	places []int // of the answers
	keys   []string
	args   [][]string
}

func newBatch(s *Store, sc script, n int) *batch {
	return &batch{
		store: s, script: sc,
		places: make([]int, 0, n), keys: make([]string, 0, n), args: make([][]string, 0, n),
	}
}

func (b *batch) add(place int, k driver.Key, args []string) {
	b.places = append(b.places, place)
	b.keys = append(b.keys, b.store.physical(k))
	b.args = append(b.args, args)
}

// run hands each answer to take, with its place.
func (b *batch) run(ctx context.Context, take func(place int, a answer, err error)) {
	var c rueidis.CommandClient = b.store.client
	for i, res := range b.script.runAll(ctx, c, b.keys, b.args) {
		a, err := parse(res)
		take(b.places[i], a, err)
	}
}
