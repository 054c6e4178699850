package idemasynq_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/internal/testenv"
	"github.com/idem-go/idem/transports/idemasynq"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func operation(t *testing.T, g idem.Guarantee) *idem.Operation {
	t.Helper()
	s, err := idemmemory.New()
	must(t, err)
	op, err := idem.NewOperation("orders", s, g)
	must(t, err)
	return op
}

func task(kind, key string) *asynq.Task {
	return asynq.NewTaskWithHeaders(kind, nil, map[string]string{"key": key})
}

var errBroken = errors.New("broken")

func TestDecisionsReachAsynq(t *testing.T) {
	t.Parallel()
	once, err := idemasynq.Middleware(operation(t, idem.AtLeastOnce), idemasynq.Header("key"))
	must(t, err)
	runs, end := 0, errBroken
	h := once(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { runs++; return end }))
	if err := h.ProcessTask(t.Context(), task("charge", "k")); !errors.Is(err, errBroken) || errors.Is(err, asynq.SkipRetry) || runs != 1 {
		t.Error(err, runs)
	}
	end = nil
	for range 2 {
		if err := h.ProcessTask(t.Context(), task("charge", "k")); err != nil || runs != 2 {
			t.Error(err, runs)
		}
	}
	if err := h.ProcessTask(t.Context(), task("refund", "k")); err != nil || runs != 3 { // another type, another key space
		t.Error(err, runs)
	}
	if err := h.ProcessTask(t.Context(), task("charge", "")); !errors.Is(err, asynq.SkipRetry) || !errors.Is(err, idem.ErrInvalidKey) || runs != 3 {
		t.Error(err, runs)
	}
}

func TestTaskInProgressComesBackAfterTheLeasesRest(t *testing.T) {
	t.Parallel()
	once, err := idemasynq.Middleware(operation(t, idem.AtLeastOnce), idemasynq.Header("key"))
	must(t, err)
	delay := idemasynq.RetryDelay(func(int, error, *asynq.Task) time.Duration { return time.Hour })
	var h asynq.Handler
	h = once(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		err := h.ProcessTask(t.Context(), task("charge", "k"))
		if d := delay(1, err, nil); !errors.Is(err, idem.ErrInProgress) || d <= 0 || d > idem.DefaultLeaseTTL {
			t.Error(err, d)
		}
		return nil
	}))
	must(t, h.ProcessTask(t.Context(), task("charge", "k")))
	if d := delay(1, errBroken, nil); d != time.Hour {
		t.Error(d)
	}
}

// TestTaskOfAServerRunsOnce enqueues to a real queue what fails at first, and is sent twice.
func TestTaskOfAServerRunsOnce(t *testing.T) {
	t.Parallel()
	redis, err := asynq.ParseRedisURI(testenv.Backend(t, testenv.Redis))
	must(t, err)
	queue := "idemasynq_" + strings.ToLower(rand.Text()[:10])
	client := asynq.NewClient(redis)
	inspector := asynq.NewInspector(redis)
	t.Cleanup(func() {
		must(t, inspector.DeleteQueue(queue, true))
		must(t, errors.Join(client.Close(), inspector.Close()))
	})
	once, err := idemasynq.Middleware(operation(t, idem.AtLeastOnce), idemasynq.TaskID)
	must(t, err)
	byHeader, err := idemasynq.Middleware(operation(t, idem.AtLeastOnce), idemasynq.Header("key"))
	must(t, err)
	var runs, sent atomic.Int64
	ended := make(chan string, 10)
	mux := asynq.NewServeMux()
	mux.Handle("charge", byHeader(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if runs.Add(1) == 1 {
			return errBroken
		}
		return nil
	})))
	mux.Handle("id", once(asynq.HandlerFunc(func(_ context.Context, tk *asynq.Task) error {
		ended <- tk.ResultWriter().TaskID()
		return nil
	})))
	server := asynq.NewServer(redis, asynq.Config{
		Queues: map[string]int{queue: 1}, LogLevel: asynq.FatalLevel, DelayedTaskCheckInterval: 50 * time.Millisecond, Concurrency: 1,
		TaskCheckInterval: 20 * time.Millisecond,
		RetryDelayFunc:    idemasynq.RetryDelay(func(int, error, *asynq.Task) time.Duration { return 0 }),
	})
	for range 3 {
		_, err := client.Enqueue(task("charge", "order-7"), asynq.Queue(queue), asynq.Retention(time.Hour))
		must(t, err)
		sent.Add(1)
	}
	_, err = client.Enqueue(asynq.NewTask("id", nil), asynq.Queue(queue), asynq.TaskID("mine"))
	must(t, err)
	must(t, server.Start(mux))
	defer server.Shutdown()
	if id := <-ended; id != "mine" {
		t.Error(id)
	}
	for {
		info, err := inspector.GetQueueInfo(queue)
		must(t, err)
		if int64(info.Completed) == sent.Load() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if runs.Load() != 2 {
		t.Error(runs.Load(), "runs, want the failed one and one more")
	}
}

func TestWrongMiddlewareIsRefused(t *testing.T) {
	t.Parallel()
	op := operation(t, idem.AtLeastOnce)
	for says, err := range map[string]error{
		"the key function is nil": second(idemasynq.Middleware(op, nil)),
		"the operation is nil":    second(idemasynq.Middleware(nil, idemasynq.TaskID)),
	} {
		if !errors.Is(err, idem.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	if key, err := idemasynq.TaskID(asynq.NewTask("x", nil)); key != "" || err == nil {
		t.Error(key, err)
	}
}

func second[T any](_ T, err error) error { return err }

func ExampleMiddleware() {
	store, _ := idemmemory.New()
	orders, _ := idem.NewOperation("orders", store, idem.AtLeastOnce)
	once, err := idemasynq.Middleware(orders, idemasynq.Header("idempotency-key"))
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := asynq.NewServeMux()
	mux.Use(once)
	mux.HandleFunc("charge", func(context.Context, *asynq.Task) error { fmt.Println("charging"); return nil })
	for range 2 { // the task was enqueued twice; a server would call the mux
		enqueued := asynq.NewTaskWithHeaders("charge", nil, map[string]string{"idempotency-key": "order-7"})
		fmt.Println(mux.ProcessTask(context.Background(), enqueued))
	}
	// Output:
	// charging
	// <nil>
	// <nil>
}
