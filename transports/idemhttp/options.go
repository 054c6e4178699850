package idemhttp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// The defaults of the options.
const (
	DefaultMaxBody     = 1 << 20        // bytes
	DefaultMaxResponse = 1<<20 - 64<<10 // bytes: below what an operation keeps, for the headers
	DefaultKeyHeader   = "Idempotency-Key"
	DefaultReplayed    = "Idempotency-Replayed"
)

// Option configures the middleware.
type Option interface{ apply(c *config) error }

type optionFunc func(*config) error

func (f optionFunc) apply(c *config) error { return f(c) }

type config struct {
	methods     []string
	keyHeader   string
	replayed    string
	key         KeyFunc
	optional    bool
	strict      bool
	principal   func(*http.Request) (string, error)
	shared      bool
	fingerprint FingerprintFunc
	maxBody     int64
	maxResponse int
	headers     []string
	final       func(status int) bool
	failed      func(status int) bool
	authorize   func(*http.Request) error
	redact      func(*Response)
	renderer    FailureRenderer
	describedBy string
	logger      *slog.Logger
}

func newConfig(opts []Option) (config, error) {
	c := config{
		methods:     []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		keyHeader:   DefaultKeyHeader,
		replayed:    DefaultReplayed,
		fingerprint: wholeRequest,
		maxBody:     DefaultMaxBody,
		maxResponse: DefaultMaxResponse,
		headers:     slices.Clone(storedHeaders),
		final:       isFinal,
		failed:      func(status int) bool { return status >= http.StatusBadRequest },
		logger:      slog.Default(),
	}
	for _, o := range opts {
		if o == nil {
			return c, errors.New("idemhttp: an option is nil: leave it out")
		}
		if err := o.apply(&c); err != nil {
			return c, fmt.Errorf("idemhttp: %w", err)
		}
	}
	return c, nil
}

// isFinal is the default of [WithFinal].
func isFinal(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < http.StatusInternalServerError
}

// WithMethods sets the methods whose requests need a key; others pass through.
// Default: POST, PUT, PATCH, DELETE. GET, HEAD, OPTIONS and TRACE are refused: they are safe to retry as they are.
func WithMethods(methods ...string) Option {
	return optionFunc(func(c *config) error {
		for _, m := range methods {
			switch m {
			case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "":
				return fmt.Errorf("WithMethods: %q needs no key: leave it out", m)
			}
		}
		if len(methods) == 0 {
			return errors.New("WithMethods: name the methods that need a key")
		}
		c.methods = methods
		return nil
	})
}

// WithOptionalKey lets requests without a key pass through, unprotected.
// Default: they are answered 400.
func WithOptionalKey() Option {
	return optionFunc(func(c *config) error { c.optional = true; return nil })
}

// WithStrictKey takes only structured-field strings as keys ("abc" with the
// quotes, RFC 9651). Default: a bare value is the same key.
func WithStrictKey() Option {
	return optionFunc(func(c *config) error { c.strict = true; return nil })
}

// WithKey sets where the key comes from, in place of the header: see
// [KeyFromQuery] and [KeyFromForm]. Default: the header.
func WithKey(f KeyFunc) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithKey")
		}
		c.key = f
		return nil
	})
}

// WithHeaderNames sets the names of the headers that carry the key and say
// that a response is a replay. Default: [DefaultKeyHeader], [DefaultReplayed].
func WithHeaderNames(key, replayed string) Option {
	return optionFunc(func(c *config) error {
		if key == "" || replayed == "" {
			return errors.New("WithHeaderNames: a header needs a name")
		}
		c.keyHeader, c.replayed = textproto.CanonicalMIMEHeaderKey(key), textproto.CanonicalMIMEHeaderKey(replayed)
		return nil
	})
}

// WithPrincipal tells whose request it is (a tenant, a user), so that equal
// keys of two of them are different. An error is answered 403. Default: keys are
// shared by all callers of a route, and a warning is logged.
func WithPrincipal(f func(*http.Request) (string, error)) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithPrincipal")
		}
		c.principal = f
		return nil
	})
}

// WithoutPrincipal says that keys are meant to be shared by all callers of a
// route. Default: a warning is logged.
func WithoutPrincipal() Option {
	return optionFunc(func(c *config) error { c.shared = true; return nil })
}

// WithFingerprint sets what a key is tied to: the same key with another
// fingerprint is answered 422. Default: method, path, query and body, JSON in canonical form.
func WithFingerprint(f FingerprintFunc) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithFingerprint")
		}
		c.fingerprint = f
		return nil
	})
}

// WithMaxBody sets how many bytes of a request's body are read; a longer one is
// answered 413. Default: [DefaultMaxBody].
func WithMaxBody(n int64) Option {
	return optionFunc(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("WithMaxBody(%d): give a number of bytes above 0", n)
		}
		c.maxBody = n
		return nil
	})
}

// WithMaxResponse sets how many bytes of a response's body are stored. The
// first client has a longer one, a duplicate only its status and headers.
// Default: [DefaultMaxResponse]; raise idem.WithMaxResultSize with it.
func WithMaxResponse(n int) Option {
	return optionFunc(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("WithMaxResponse(%d): give a number of bytes above 0", n)
		}
		c.maxResponse = n
		return nil
	})
}

// WithStoredHeaders adds headers to those that are stored with a response.
// Cookies, credentials, hop-by-hop headers and Date are refused. Default: what
// describes the body, Location, ETag, Last-Modified, Cache-Control, Vary, Link and Retry-After.
func WithStoredHeaders(names ...string) Option {
	return optionFunc(func(c *config) error {
		for _, name := range names {
			name = textproto.CanonicalMIMEHeaderKey(name)
			if slices.Contains(neverStored, name) || strings.HasPrefix(name, "Proxy-") {
				return fmt.Errorf("WithStoredHeaders: %s is never stored: it belongs to one exchange or one caller", name)
			}
			c.headers = append(c.headers, name)
		}
		return nil
	})
}

// WithFinal sets which statuses are stored and replayed on a lease; after
// another one the key is free. Default: all but 408, 425, 429 and 5xx.
func WithFinal(f func(status int) bool) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithFinal")
		}
		c.final = f
		return nil
	})
}

// WithRollback sets which statuses roll an ExactlyOnce transaction back; others
// commit and are replayed. Default: 400 and above.
func WithRollback(f func(status int) bool) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithRollback")
		}
		c.failed = f
		return nil
	})
}

// WithAuthorize is asked before a stored response is sent; an error is
// answered 403. Default: nobody is asked.
func WithAuthorize(f func(*http.Request) error) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithAuthorize")
		}
		c.authorize = f
		return nil
	})
}

// WithRedact changes a response before it is stored. The first client has it
// as it was. Default: it is stored as it is.
func WithRedact(f func(*Response)) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithRedact")
		}
		c.redact = f
		return nil
	})
}

// WithFailureRenderer turns the errors of a [HandlerFunc] into responses.
// Default: a problem document with status 500.
func WithFailureRenderer(f FailureRenderer) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithFailureRenderer")
		}
		c.renderer = f
		return nil
	})
}

// WithDescribedBy sets a link to documentation that goes with every problem
// document (Link: rel="describedby"). Default: none.
func WithDescribedBy(url string) Option {
	return optionFunc(func(c *config) error { c.describedBy = url; return nil })
}

// WithLogger sets where failures go that a client is not told of. Default: [slog.Default].
func WithLogger(l *slog.Logger) Option {
	return optionFunc(func(c *config) error {
		if l == nil {
			return errNil("WithLogger")
		}
		c.logger = l
		return nil
	})
}

func errNil(option string) error { return fmt.Errorf("%s: nil is no option: leave it out", option) }
