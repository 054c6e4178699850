package idemhttp

import (
	"maps"
	"net/http"
	"slices"
)

// Response is what is stored of a response.
type Response struct {
	Status  int
	Header  http.Header // the allow-listed ones
	Body    []byte
	Omitted bool // the body was too large to store, or was streamed
}

// storedHeaders are stored by default.
var storedHeaders = []string{
	"Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Content-Disposition", "Location", "Etag",
	"Last-Modified", "Cache-Control", "Vary", "Link", "Retry-After",
}

// neverStored belong to one exchange or one caller.
var neverStored = []string{
	"Set-Cookie", "Cookie", "Authorization", "Www-Authenticate", "Authentication-Info", "Connection", "Keep-Alive", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade", "Date", "Content-Length",
}

// stored returns what is stored of what the recorder has.
func (c *config) stored(rec *recorder) Response {
	res := Response{Status: rec.status, Header: http.Header{}, Body: rec.body.Bytes(), Omitted: rec.omitted}
	if res.Omitted {
		res.Body = nil
	}
	for name, values := range rec.sent {
		if slices.Contains(c.headers, name) {
			res.Header[name] = values
		}
	}
	if c.redact != nil { // the first client's must stay as it is
		res.Header, res.Body = res.Header.Clone(), slices.Clone(res.Body)
		c.redact(&res)
	}
	return res
}

// send writes a stored response. One that took the connection over cannot be sent again.
func (c *config) send(w http.ResponseWriter, res Response) {
	if res.Status < http.StatusOK {
		c.problem(w, http.StatusConflict, "response_omitted", "", 0)
		return
	}
	maps.Copy(w.Header(), res.Header)
	replayed := "true"
	if res.Omitted {
		replayed = "omitted"
	}
	w.Header().Set(c.replayed, replayed)
	w.WriteHeader(res.Status)
	if !res.Omitted {
		_, _ = w.Write(res.Body) // a client that is gone asks again
	}
}
