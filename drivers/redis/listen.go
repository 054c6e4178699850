package idemredis

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

const (
	subscribing   = 5 * time.Second // the longest that the server may take
	firstRedial   = 100 * time.Millisecond
	longestRedial = 5 * time.Second
)

// listen keeps a connection while anybody watches.
func (s *Store) listen(wake <-chan struct{}) {
	for pause := firstRedial; ; pause = min(2*pause, longestRedial) {
		c, release := s.client.Dedicate()
		broken := c.SetPubSubHooks(rueidis.PubSubHooks{
			OnMessage: func(m rueidis.PubSubMessage) { s.watches.tell(m.Channel) },
		})
		over, served := s.watches.serve(c, wake, broken)
		release()
		if over {
			return
		}
		if served {
			pause = firstRedial
		}
		s.watches.tellAll()
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-wake: // perhaps nobody watches any more
			timer.Stop()
		}
	}
}

// serve subscribes to what is watched until nobody watches (over) or the
// connection breaks. It tells whether it worked for a while.
func (ws *watches) serve(c rueidis.DedicatedClient, wake <-chan struct{}, broken <-chan error) (over, served bool) {
	subscribed := make(map[string]bool)
	ws.noteAll()
	for {
		joined, left, over := ws.take(subscribed)
		if over {
			return true, served
		}
		if ws.subscribe(c, joined, subscribed) != nil || unsubscribe(c, left, subscribed) != nil {
			return false, served
		}
		served = true
		select {
		case <-wake:
		case <-broken: //nolint:errcheck // whatever broke it
			return false, served
		}
	}
}

func (ws *watches) subscribe(c rueidis.DedicatedClient, names []string, subscribed map[string]bool) error {
	if len(names) == 0 {
		return nil
	}
	err := send(c, c.B().Subscribe().Channel(names...).Build())
	ws.confirm(names, err)
	if err != nil {
		return err
	}
	for _, name := range names {
		subscribed[name] = true
	}
	return nil
}

func unsubscribe(c rueidis.DedicatedClient, names []string, subscribed map[string]bool) error {
	if len(names) == 0 {
		return nil
	}
	if err := send(c, c.B().Unsubscribe().Channel(names...).Build()); err != nil {
		return err
	}
	for _, name := range names {
		delete(subscribed, name)
	}
	return nil
}

func send(c rueidis.DedicatedClient, cmd rueidis.Completed) error {
	ctx, cancel := context.WithTimeout(context.Background(), subscribing)
	defer cancel()
	return c.Do(ctx, cmd).Error()
}
