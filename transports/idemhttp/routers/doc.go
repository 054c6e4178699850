// Package routers tests the HTTP middleware under routers other than the
// standard library's. It is a module of its own, so that nobody else depends on them.
package routers
