package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemhttp"
)

// Config is what a gateway does. A zero field has its default.
type Config struct {
	Upstream string        `yaml:"upstream"` // http:// or https://; required
	Listen   string        `yaml:"listen"`   // [DefaultListen]
	Admin    string        `yaml:"admin"`    // [DefaultAdmin]; for /healthz and /readyz
	Store    string        `yaml:"store"`    // [DefaultStore]
	Drain    time.Duration `yaml:"drain"`    // [DefaultDrain]; how long requests may take to finish at the end
	Policy   Policy        `yaml:"policy"`   // of every route, unless it says otherwise
	Routes   []Route       `yaml:"routes"`   // empty: all requests; else what matches none passes through
}

// Policy says how requests are protected.
type Policy struct {
	Guarantee   string        `yaml:"guarantee"`   // at-least-once (default) or at-most-once
	Key         string        `yaml:"key"`         // required (default), optional or ignored
	Principal   string        `yaml:"principal"`   // the header that says whose request it is; none (default)
	Lease       time.Duration `yaml:"lease"`       // [idem.DefaultLeaseTTL]
	Retention   time.Duration `yaml:"retention"`   // [idem.DefaultRetention]; at-most-once: for ever
	Wait        time.Duration `yaml:"wait"`        // how long a duplicate waits for the first; not at all
	MaxBody     int64         `yaml:"maxBody"`     // [idemhttp.DefaultMaxBody], bytes
	MaxResponse int           `yaml:"maxResponse"` // [idemhttp.DefaultMaxResponse], bytes
}

// Route is a policy for some of the requests.
type Route struct {
	Policy `yaml:",inline"`

	Match string `yaml:"match"` // a pattern of net/http's ServeMux: "POST /payments/{id}"
}

// The defaults of a [Config].
const (
	DefaultListen = "127.0.0.1:8080"
	DefaultAdmin  = "127.0.0.1:8081"
	DefaultStore  = "sqlite:idem.db"
	DefaultDrain  = 30 * time.Second
)

// The words of a [Policy].
const (
	atLeastOnce = "at-least-once"
	atMostOnce  = "at-most-once"
	exactlyOnce = "exactly-once"
	required    = "required"
	optional    = "optional"
	ignored     = "ignored"
	none        = "none"
)

// Parse reads a configuration file. A name that it does not know is an error.
func Parse(file []byte) (Config, error) {
	var c Config
	if len(bytes.TrimSpace(file)) == 0 {
		return c, nil
	}
	if err := yaml.UnmarshalWithOptions(file, &c, yaml.Strict()); err != nil {
		return c, errors.New(yaml.FormatError(err, false, true))
	}
	return c, nil
}

// Or returns the configuration with what it leaves out taken from other.
func (c Config) Or(other Config) Config {
	c.Upstream = cmp.Or(c.Upstream, other.Upstream)
	c.Listen = cmp.Or(c.Listen, other.Listen)
	c.Admin = cmp.Or(c.Admin, other.Admin)
	c.Store = cmp.Or(c.Store, other.Store)
	c.Drain = cmp.Or(c.Drain, other.Drain)
	c.Policy = c.Policy.or(other.Policy)
	if c.Routes == nil {
		c.Routes = other.Routes
	}
	return c
}

func (p Policy) or(other Policy) Policy {
	return Policy{
		Guarantee:   cmp.Or(p.Guarantee, other.Guarantee),
		Key:         cmp.Or(p.Key, other.Key),
		Principal:   cmp.Or(p.Principal, other.Principal),
		Lease:       cmp.Or(p.Lease, other.Lease),
		Retention:   cmp.Or(p.Retention, other.Retention),
		Wait:        cmp.Or(p.Wait, other.Wait),
		MaxBody:     cmp.Or(p.MaxBody, other.MaxBody),
		MaxResponse: cmp.Or(p.MaxResponse, other.MaxResponse),
	}
}

// WithDefaults returns the configuration with nothing left out.
func (c Config) WithDefaults() Config {
	return c.Or(Config{Listen: DefaultListen, Admin: DefaultAdmin, Store: DefaultStore, Drain: DefaultDrain, Policy: Policy{
		Guarantee: atLeastOnce, Key: required, MaxBody: idemhttp.DefaultMaxBody, MaxResponse: idemhttp.DefaultMaxResponse,
	}})
}

// upstream returns the address of the service.
func (c Config) upstream() (*url.URL, error) {
	u, err := url.Parse(c.Upstream)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the upstream %q is no address of a service: write http://127.0.0.1:9000", c.Upstream)
	}
	return u, nil
}

// guarantee returns the policy's, which a proxy can keep.
func (p Policy) guarantee() (idem.Guarantee, error) {
	switch p.Guarantee {
	case atLeastOnce:
		return idem.AtLeastOnce, nil
	case atMostOnce:
		return idem.AtMostOnce, nil
	case exactlyOnce:
		return 0, errors.New("exactly-once needs the effect in the store's own transaction, and a gateway has the effect behind it: " +
			"use at-least-once or at-most-once, or the library inside the service")
	}
	return 0, fmt.Errorf("%q is no guarantee: use at-least-once or at-most-once", p.Guarantee)
}

// operation returns the options of the policy's operation.
func (p Policy) operation() []idem.OperationOption {
	opts := []idem.OperationOption{
		idem.WithWait(p.Wait),
		idem.WithMaxResultSize(p.MaxResponse + 64<<10), // for the headers
	}
	if p.Lease != 0 {
		opts = append(opts, idem.WithLeaseTTL(p.Lease))
	}
	if p.Retention != 0 {
		opts = append(opts, idem.WithRetention(p.Retention))
	}
	return opts
}

// keyOptions returns the middleware's options that say what a key is for.
func (p Policy) keyOptions() ([]idemhttp.Option, error) {
	opts := []idemhttp.Option{
		idemhttp.WithPrincipal(p.principal), idemhttp.WithMaxBody(p.MaxBody), idemhttp.WithMaxResponse(p.MaxResponse),
	}
	switch p.Key {
	case required:
	case optional:
		opts = append(opts, idemhttp.WithOptionalKey())
	default:
		return nil, fmt.Errorf("the key is %q: use required, optional or ignored", p.Key)
	}
	if strings.ContainsAny(p.Principal, " :\t") {
		return nil, fmt.Errorf("the principal %q is no name of a header: write Authorization, or none", p.Principal)
	}
	return opts, nil
}
