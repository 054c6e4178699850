package idemhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemhttp"
)

// TestTranscriptsInTheGuideAreTrue runs each command of docs/http.md and looks
// for the lines that the guide shows.
func TestTranscriptsInTheGuideAreTrue(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: the transcripts of docs/http.md are not run")
	}
	guide, err := os.ReadFile("../../docs/http.md")
	must(t, err)
	url := serveGuide(t)
	ran := 0
	for block := range strings.SplitSeq(string(guide), "```console\n") {
		block, _, ok := strings.Cut(block, "```")
		if !ok || !strings.HasPrefix(block, "$ ") {
			continue
		}
		for transcript := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
			command, shown, _ := strings.Cut(transcript, "\n")
			cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
			cmd.Env = append(os.Environ(), "URL="+url)
			out, err := cmd.CombinedOutput()
			must(t, err)
			printed := strings.Split(strings.ReplaceAll(string(out), "\r\n", "\n"), "\n")
			for line := range strings.Lines(shown) {
				if line = strings.TrimSpace(line); !slices.Contains(printed, line) {
					t.Errorf("%s\n\tdoes not print %q, but\n%s", command, line, out)
				}
			}
			ran++
		}
	}
	if ran < 5 {
		t.Error("the guide has only", ran, "transcripts")
	}
}

func serveGuide(t *testing.T) string {
	t.Helper()
	op, err := idem.NewOperation("payments", memory(t), idem.AtLeastOnce)
	must(t, err)
	protect, err := idemhttp.New(op, idemhttp.WithoutPrincipal())
	must(t, err)
	var id, running atomic.Int64
	finish := make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("POST /payments", protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n := id.Add(1)
		w.Header().Set("Location", fmt.Sprintf("/payments/%d", n))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":%d,%s`+"\n", n, strings.TrimPrefix(string(body), "{"))
	})))
	mux.Handle("POST /payments/slow", protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		running.Add(1)
		<-finish
	})))
	mux.HandleFunc("GET /running", func(w http.ResponseWriter, _ *http.Request) {
		if running.Load() > 0 {
			_, _ = io.WriteString(w, "yes")
		}
	})
	mux.HandleFunc("GET /finish", func(http.ResponseWriter, *http.Request) { close(finish) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
