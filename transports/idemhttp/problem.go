package idemhttp

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/idem-go/idem"
)

// Problem is the body of what is answered instead of a response (RFC 9457,
// application/problem+json). Type and Code are stable.
//
//	code               status  meaning
//	key_missing        400     the route needs a key
//	key_invalid        400     the key is malformed, or there are two
//	body_too_large     413     the body is longer than the route takes
//	forbidden          403     the caller is unknown, or may not have the stored response
//	in_progress        409     the first request still runs; Retry-After
//	outcome_unknown    409     it may have run; Retry-After if an answer may still come
//	key_expired        409     it has run, its response is no longer kept
//	response_omitted   409     it has run, its response could not be kept
//	key_reused         422     the key was used for another request
//	failed             500     the handler failed, and nobody renders its errors
//	response_unreadable 500    a response is stored that this server cannot read
//	misconfigured      500     the server is set up wrongly; its log says how
//	store_unavailable  503     the request did not run; Retry-After
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`
}

// typePrefix begins the type of every problem.
const typePrefix = "tag:idem-go,2026:problem:"

// titles are the texts of the codes.
var titles = map[string]string{
	"key_missing":         "The request needs an idempotency key",
	"key_invalid":         "The idempotency key is invalid",
	"body_too_large":      "The request body is too large",
	"forbidden":           "The request is not allowed",
	"in_progress":         "A request with this idempotency key is in progress",
	"outcome_unknown":     "The outcome of the request with this idempotency key is unknown",
	"key_expired":         "The response to this idempotency key is no longer kept",
	"response_omitted":    "The response to this idempotency key was not kept",
	"key_reused":          "The idempotency key was used for another request",
	"response_unreadable": "The response to this idempotency key cannot be read",
	"misconfigured":       "The server is misconfigured",
	"store_unavailable":   "The idempotency store is unavailable",
	"failed":              "The request failed",
}

// problem writes a problem document.
func (c *config) problem(w http.ResponseWriter, status int, code, detail string, retry time.Duration) {
	h := w.Header()
	if retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(max(retry.Seconds(), 1)))))
	}
	if c.describedBy != "" {
		h.Add("Link", "<"+c.describedBy+`>; rel="describedby"`)
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/problem+json")
	body, err := json.Marshal(Problem{Type: typePrefix + code, Title: titles[code], Status: status, Code: code, Detail: detail})
	if err != nil { // it is made of strings
		panic(err)
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// fail answers a call that has no response. The error's text stays here.
func (c *config) fail(w http.ResponseWriter, r *http.Request, err error) {
	var e *idem.Error
	if !errors.As(err, &e) {
		c.logger.ErrorContext(r.Context(), "idemhttp: no response", "error", err)
		c.problem(w, http.StatusInternalServerError, "failed", "", 0)
		return
	}
	for _, row := range answers {
		if !errors.Is(e.Reason, row.reason) {
			continue
		}
		if row.status >= http.StatusInternalServerError && r.Context().Err() == nil { // else the client has left, which is no failure
			c.logger.ErrorContext(r.Context(), "idemhttp: no response", "error", err)
		}
		retry := e.RetryAfter
		if row.status == http.StatusServiceUnavailable {
			retry = time.Second
		}
		c.problem(w, row.status, row.code, "", retry)
		return
	}
}

// answers is what each reason is answered with; the last is for all others.
var answers = []struct {
	reason error
	status int
	code   string
}{
	{idem.ErrInProgress, http.StatusConflict, "in_progress"},
	{idem.ErrOutcomeUnknown, http.StatusConflict, "outcome_unknown"},
	{idem.ErrMismatch, http.StatusUnprocessableEntity, "key_reused"},
	{idem.ErrKeyExpired, http.StatusConflict, "key_expired"},
	{idem.ErrResultOmitted, http.StatusConflict, "response_omitted"},
	{idem.ErrUnreadable, http.StatusInternalServerError, "response_unreadable"},
	{idem.ErrStore, http.StatusServiceUnavailable, "store_unavailable"},
	{idem.ErrInvalidKey, http.StatusBadRequest, "key_invalid"},
	{idem.ErrConfig, http.StatusInternalServerError, "misconfigured"},
}
