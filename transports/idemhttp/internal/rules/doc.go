// Package rules is what the middleware promises over HTTP, as tests that run on
// any store, guarantee, router and version of HTTP. It is for tests only.
package rules
