package idemstreams_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/internal/testenv"
	"github.com/idem-go/idem/transports/idemqueue"
	"github.com/idem-go/idem/transports/idemstreams"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) idemstreams.Consumer {
	t.Helper()
	o, err := rueidis.ParseURL(testenv.Backend(t, testenv.Redis))
	must(t, err)
	o.ForceSingleClient, o.DisableCache = true, true
	client, err := rueidis.NewClient(o)
	must(t, err)
	c := idemstreams.Consumer{Client: client, Stream: "idemstreams_" + rand.Text()[:10], Group: "billing", Name: "one", Idle: 100 * time.Millisecond}
	c.Dead = c.Stream + "_dead"
	t.Cleanup(func() {
		must(t, client.Do(context.Background(), client.B().Del().Key(c.Stream, c.Dead).Build()).Error())
		client.Close()
	})
	return c
}

func send(t *testing.T, c idemstreams.Consumer, key string) {
	t.Helper()
	must(t, c.Client.Do(t.Context(), c.Client.B().Xadd().Key(c.Stream).Id("*").FieldValue().FieldValue("key", key).Build()).Error())
}

func TestDecisionsReachTheStream(t *testing.T) {
	t.Parallel()
	c := open(t)
	for _, key := range []string{"a", "dead", "later", "b"} {
		send(t, c, key)
	}
	seen := map[string]int{}
	var put time.Time
	ctx, cancel := context.WithCancel(t.Context())
	must(t, c.Run(ctx, func(_ context.Context, e idemstreams.Entry) idemqueue.Decision {
		key, err := idemstreams.Field("key")(e)
		must(t, err)
		seen[key]++
		switch {
		case key == "dead":
			return idemqueue.Decision{Action: idemqueue.DeadLetter, Err: errors.New("why")}
		case key == "later" && seen[key] == 1:
			put = time.Now()
			return idemqueue.Decision{Action: idemqueue.Retry}
		case key == "later":
			if idle := time.Since(put); idle < 90*time.Millisecond {
				t.Errorf("again after %v", idle)
			}
			cancel()
		}
		return idemqueue.Decision{Action: idemqueue.Ack}
	}))
	if seen["a"] != 1 || seen["b"] != 1 || seen["dead"] != 1 || seen["later"] != 2 {
		t.Error(seen)
	}
	dead, err := c.Client.Do(t.Context(), c.Client.B().Xrange().Key(c.Dead).Start("-").End("+").Build()).AsXRange()
	if must(t, err); len(dead) != 1 || dead[0].FieldValues["key"] != "dead" {
		t.Error(dead)
	}
	pending, err := c.Client.Do(t.Context(), c.Client.B().Xpending().Key(c.Stream).Group(c.Group).Build()).ToArray()
	must(t, err)
	if n, err := pending[0].AsInt64(); n != 0 || err != nil {
		t.Error(n, "pending", err)
	}
}

func TestFailureOfTheServerEndsTheConsumer(t *testing.T) {
	t.Parallel()
	c := open(t)
	must(t, c.Client.Do(t.Context(), c.Client.B().Set().Key(c.Stream).Value("no stream").Build()).Error())
	if err := c.Run(t.Context(), nil); err == nil {
		t.Error("it goes on")
	}
}

func TestIDIsTheEntrysOwn(t *testing.T) {
	t.Parallel()
	key := idemqueue.FirstKey(idemstreams.Field("key"), idemstreams.ID)
	for want, e := range map[string]idemstreams.Entry{
		"k": {ID: "1-0", FieldValues: map[string]string{"key": "k"}}, "1-0": {ID: "1-0"},
	} {
		if got, err := key(e); got != want || err != nil {
			t.Error(got, err)
		}
	}
}
