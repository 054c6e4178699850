package idemredis_test

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/idem-go/idem/driver"
	idemredis "github.com/idem-go/idem/drivers/redis"
	"github.com/idem-go/idem/internal/testenv"
)

func TestMain(m *testing.M) {
	// The client closes connections to nodes that have left a cluster after a few seconds.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

// bundle is a store with records of its own on the shared server.
type bundle struct {
	*idemredis.Store

	t      testing.TB
	client rueidis.Client
	prefix string
}

func setup(t testing.TB, opts ...idemredis.Option) *bundle {
	t.Helper()
	return setupOn(t, dial(t, standalone(t)), opts...)
}

// setupOn is a store through the client, with a prefix that no other test has.
func setupOn(t testing.TB, client rueidis.Client, opts ...idemredis.Option) *bundle {
	t.Helper()
	prefix := newPrefix()
	s, err := idemredis.New(client, append([]idemredis.Option{idemredis.WithPrefix(prefix)}, opts...)...)
	must(t, err)
	return &bundle{Store: s, t: t, client: client, prefix: prefix}
}

func newPrefix() string {
	t := newToken()
	return "test-" + hex.EncodeToString(t[:6]) + ":"
}

// standalone are the options for the shared server.
func standalone(t testing.TB) rueidis.ClientOption {
	t.Helper()
	o, err := rueidis.ParseURL(testenv.Backend(t, testenv.Redis))
	must(t, err)
	return small(o)
}

// several are the options for a group of servers.
func several(t testing.TB, name testenv.Name) rueidis.ClientOption {
	t.Helper()
	return small(rueidis.ClientOption{InitAddress: strings.Split(testenv.Backend(t, name), ",")})
}

func cluster(t testing.TB) rueidis.ClientOption {
	t.Helper()
	return several(t, testenv.RedisCluster)
}

func valkey(t testing.TB) rueidis.ClientOption {
	t.Helper()
	o, err := rueidis.ParseURL(testenv.Backend(t, testenv.Valkey))
	must(t, err)
	return small(o)
}

// onOneAndMany are the options for servers of each kind.
var onOneAndMany = map[string]func(testing.TB) rueidis.ClientOption{
	"standalone": standalone,
	"Valkey":     valkey,
	"cluster":    cluster,
}

// small makes do with less memory: tests open many clients.
func small(o rueidis.ClientOption) rueidis.ClientOption {
	o.ReadBufferEachConn, o.WriteBufferEachConn = 1<<14, 1<<14
	o.RingScaleEachConn = 8
	o.DisableCache = true
	return o
}

func dial(t testing.TB, o rueidis.ClientOption) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(o)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newToken() (tok driver.Token) {
	_, _ = rand.Read(tok[:])
	return tok
}

func key(id string) driver.Key { return driver.Key{Scope: "payments", ID: id} }

// claimOf is a claim of a lease with a token of its own.
func claimOf(id string) driver.ClaimParams {
	return driver.ClaimParams{
		Key: key(id), Token: newToken(), Lease: time.Minute, OnLapse: driver.TakeOver,
		Guarantee: driver.AtLeastOnce, Retention: time.Hour, Format: 1,
	}
}

// guardOf is a claim of a guard.
func guardOf(id string) driver.ClaimParams {
	p := claimOf(id)
	p.OnLapse, p.Guarantee, p.Retention = driver.Uncertain, driver.AtMostOnce, driver.RetainForever
	return p
}

func completionOf(p driver.ClaimParams, outcome string) driver.CompleteParams {
	return driver.CompleteParams{
		Key: p.Key, Token: p.Token, To: driver.StateCompleted, Outcome: []byte(outcome),
		Retention: time.Hour, Format: p.Format,
	}
}

func (b *bundle) mustClaim(p driver.ClaimParams, want driver.Decision) driver.ClaimResult {
	b.t.Helper()
	res, err := b.Claim(b.t.Context(), p)
	must(b.t, err)
	if res.Decision != want {
		b.t.Fatalf("the claim answers %v, want %v: %+v", res.Decision, want, res)
	}
	return res
}

func (b *bundle) mustComplete(p driver.ClaimParams, outcome string) driver.CompleteResult {
	b.t.Helper()
	res, err := b.Complete(b.t.Context(), completionOf(p, outcome))
	must(b.t, err)
	return res
}

// physical is the name of a key's record.
func (b *bundle) physical(k driver.Key) string { return b.prefix + k.String() }

// tryClaim claims and wants the claim to be granted, or an error.
func (b *bundle) tryClaim(p driver.ClaimParams) error {
	res, err := b.Claim(b.t.Context(), p)
	if err == nil && res.Decision != driver.DecisionClaimed {
		err = errors.New(res.Decision.String())
	}
	return err
}

// mustHold wants the claim to be there still.
func (b *bundle) mustHold(p driver.ClaimParams) {
	b.t.Helper()
	_, err := b.Renew(b.t.Context(), driver.RenewParams{Key: p.Key, Token: p.Token, Lease: time.Minute})
	must(b.t, err)
}

// list goes through a whole listing.
func (b *bundle) list(p driver.ListParams, each ...func(driver.Record)) error {
	for {
		res, err := b.List(b.t.Context(), p)
		if err != nil {
			return err
		}
		for _, f := range each {
			for _, r := range res.Records {
				f(r)
			}
		}
		if p.After = res.Next; p.After == "" {
			return nil
		}
	}
}

// parallel runs f n times at once and waits.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// on is the same records through another client, as another process would see them.
func (b *bundle) on(c rueidis.Client) *bundle {
	b.t.Helper()
	s, err := idemredis.New(c, idemredis.WithPrefix(b.prefix))
	must(b.t, err)
	return &bundle{Store: s, t: b.t, client: c, prefix: b.prefix}
}
