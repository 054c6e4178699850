// Package faults breaks things on purpose, so that a test can see what a driver, or a
// program built on one, makes of it. It does not import package testing, so
// that long-running programs can use it too.
//
// Crashes: a child process calls [Crasher.Point] wherever it may die; the
// parent runs it with [Crash] and a number, and the child is killed with SIGKILL at the
// point with that number.
//
// Connections: a [Proxy] stands between a client and its server, and cuts or
// stalls their connection before, within or after any message, in either direction.
package faults
