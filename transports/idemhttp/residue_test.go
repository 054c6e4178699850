package idemhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemhttp"
)

// requestsEnv is how many requests the test below sends: 1000000 for the long form.
const requestsEnv = "IDEM_TEST_HTTP_REQUESTS"

func TestRequestsLeaveNoGoroutineAndNoMemory(t *testing.T) { //nolint:paralleltest // it counts what the whole process has
	requests := 2000
	if text := os.Getenv(requestsEnv); text != "" {
		var err error
		requests, err = strconv.Atoi(text)
		must(t, err)
	}
	const kept = 100 // records, before and after
	store, err := idemmemory.New(idemmemory.WithMaxRecords(kept))
	must(t, err)
	op, err := idem.NewOperation("payments", store, idem.AtLeastOnce)
	must(t, err)
	protect, err := idemhttp.New(op, idemhttp.WithoutPrincipal())
	must(t, err)
	server := httptest.NewServer(protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "paid") })))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	next := 0
	send := func(n int) { // half of them are replays
		from := next
		next += n
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				for i := from + worker; i < from+n; i += 8 {
					for range 2 {
						r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("500"))
						if err != nil {
							t.Error(err)
							return
						}
						r.Header.Set("Idempotency-Key", strconv.Itoa(i))
						res, err := client.Do(r)
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, res.Body)
						_ = res.Body.Close()
						if res.StatusCode != http.StatusOK {
							t.Error(res.Status)
							return
						}
					}
				}
			})
		}
		all.Wait()
		client.CloseIdleConnections()
	}
	send(5 * kept) // so that pools are filled and the store is full
	goroutines, heap := residue(0)
	send(requests / 2)
	goroutinesAfter, heapAfter := residue(goroutines)
	t.Logf("%d requests: goroutines %d, then %d; heap %d KiB, then %d KiB", requests, goroutines, goroutinesAfter, heap>>10, heapAfter>>10)
	if goroutinesAfter > goroutines {
		t.Errorf("%d goroutines before, %d after", goroutines, goroutinesAfter)
	}
	if heapAfter > heap+1<<20 {
		t.Errorf("%d bytes of heap before, %d after", heap, heapAfter)
	}
}

// residue returns what is left when what is under way has ended: connections take a moment to close.
func residue(goroutines int) (int, uint64) {
	n := runtime.NumGoroutine()
	for began := time.Now(); (n > goroutines || goroutines == 0) && time.Since(began) < 2*time.Second; n = runtime.NumGoroutine() {
		time.Sleep(10 * time.Millisecond)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return n, m.HeapAlloc
}
