package idemhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/idem-go/idem"
)

// New returns a middleware that runs handlers as the operation op. What is
// wrong with the options is refused here. Guarantees over HTTP:
//
//   - AtLeastOnce: a status that is not final (see [WithFinal]) frees the key,
//     so that a retry runs again;
//   - AtMostOnce: whatever the handler answers is stored; a handler that never
//     answered is 409 outcome_unknown;
//   - ExactlyOnce: the handler finds its transaction in the request's context;
//     a failing status (see [WithRollback]) rolls it back.
func New(op *idem.Operation, opts ...Option) (func(http.Handler) http.Handler, error) {
	if op == nil {
		return nil, errors.New("idemhttp: the operation is nil: build one with idem.NewOperation")
	}
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if err := checkOperation(op); err != nil {
		return nil, fmt.Errorf("idemhttp: %w", err)
	}
	if c.principal == nil && !c.shared {
		c.logger.Warn("idemhttp: no principal is configured: a caller who guesses another's key gets the other's response; " +
			"use WithPrincipal, or WithoutPrincipal if that is meant")
	}
	return func(next http.Handler) http.Handler { return &middleware{config: c, op: op, next: next} }, nil
}

// checkOperation finds out whether the operation can store responses.
func checkOperation(op *idem.Operation) error {
	_, err := idem.Wrap(op,
		func(struct{}) (string, error) { return "", nil },
		func(context.Context, struct{}) (Response, error) { return Response{}, nil })
	return err
}

type middleware struct {
	config

	op   *idem.Operation
	next http.Handler
}

// errRolledBack rolls a transaction back whose handler has answered with a failure.
var errRolledBack = errors.New("the response is a failure")

// ServeHTTP implements [http.Handler].
func (m *middleware) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !slices.Contains(m.methods, r.Method) {
		m.next.ServeHTTP(w, r)
		return
	}
	if m.key != nil && !m.buffer(w, r) { // it may look into the body
		return
	}
	key, ok := m.keyOf(w, r)
	if !ok {
		return
	}
	if m.key != nil {
		rewind(r)
	}
	if key == "" {
		m.next.ServeHTTP(w, r)
		return
	}
	if !m.buffer(w, r) {
		return
	}
	opts, ok := m.options(w, r)
	if !ok {
		return
	}
	m.run(w, r, key, opts)
}

// buffer makes the body one that can be read again, or has answered.
func (m *middleware) buffer(w http.ResponseWriter, r *http.Request) bool {
	err := m.readBody(r)
	switch {
	case err == nil:
		return true
	case errors.Is(err, errTooLarge):
		m.problem(w, http.StatusRequestEntityTooLarge, "body_too_large", "", 0)
	case errors.Is(err, errConsumed):
		m.logger.ErrorContext(r.Context(), "idemhttp: "+err.Error())
		m.problem(w, http.StatusInternalServerError, "misconfigured", "", 0)
	default:
		panic(http.ErrAbortHandler) // the client is gone in the middle of its request
	}
	return false
}

// keyOf returns the request's key, "" if it may pass without; else it has answered.
func (m *middleware) keyOf(w http.ResponseWriter, r *http.Request) (key string, ok bool) {
	var err error
	present := false
	if m.key != nil {
		if key, err = m.key(r); err == nil && key != "" {
			key, err = checkKey(key)
			present = true
		}
	} else {
		key, present, err = m.headerKey(r)
	}
	switch {
	case err != nil:
		detail := ""
		if isAnyOf(err, errTwoKeys, errBadKey, errStrict) {
			detail = err.Error()
		}
		m.problem(w, http.StatusBadRequest, "key_invalid", detail, 0)
	case !present && !m.optional:
		m.problem(w, http.StatusBadRequest, "key_missing", "", 0)
	default:
		return key, true
	}
	return "", false
}

func isAnyOf(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}

// options returns the options of the call, or has answered.
func (m *middleware) options(w http.ResponseWriter, r *http.Request) ([]idem.ExecuteOption, bool) {
	principal := ""
	if m.principal != nil {
		var err error
		if principal, err = m.principal(r); err != nil || principal == "" {
			m.problem(w, http.StatusForbidden, "forbidden", "", 0)
			return nil, false
		}
	}
	opts := []idem.ExecuteOption{idem.On(m.op)}
	for _, o := range KeyOptions(r, principal) {
		opts = append(opts, o)
	}
	fingerprint, err := m.fingerprint(r, bodyOf(r))
	if err != nil {
		m.logger.ErrorContext(r.Context(), "idemhttp: no fingerprint", "error", err)
		m.problem(w, http.StatusInternalServerError, "misconfigured", "", 0)
		return nil, false
	}
	if fingerprint != nil {
		opts = append(opts, idem.WithFingerprintBytes(fingerprint))
	}
	return opts, true
}

// run runs the handler under the key, or answers without it.
func (m *middleware) run(w http.ResponseWriter, r *http.Request, key string, opts []idem.ExecuteOption) {
	echo := func() { w.Header().Set(m.keyHeader, r.Header.Get(m.keyHeader)) }
	if m.key != nil {
		echo = func() {}
	}
	var rec *recorder
	res, err := idem.ExecuteResult(r.Context(), key, func(ctx context.Context) (Response, error) {
		rec = newRecorder(w, m.maxResponse, m.op.Guarantee() == idem.ExactlyOnce, echo)
		run := r.WithContext(contextWithRenderer(ctx, &m.config))
		rewind(run)
		m.next.ServeHTTP(rec, run)
		rec.implyStatus(nil)
		return m.conclude(ctx, rec)
	}, opts...)
	switch {
	case rec != nil && (err == nil && !res.Replayed || errors.Is(err, errRolledBack)):
		rec.finish()
	case rec != nil && rec.streaming:
		// The client has what there is.
	case err != nil:
		echo()
		m.fail(w, r, err)
	case m.authorize != nil && m.authorize(r) != nil:
		m.problem(w, http.StatusForbidden, "forbidden", "", 0)
	default:
		echo()
		m.send(w, res.Value)
	}
}

// conclude says what the handler's answer means for its key.
func (m *middleware) conclude(ctx context.Context, rec *recorder) (Response, error) {
	res := m.stored(rec)
	switch m.op.Guarantee() {
	case idem.AtLeastOnce:
		if !m.final(rec.status) {
			a, _ := idem.FromContext(ctx)
			return res, a.DoNotRecord()
		}
	case idem.ExactlyOnce:
		if m.failed(rec.status) {
			return res, errRolledBack
		}
	case idem.AtMostOnce:
	}
	return res, nil
}
