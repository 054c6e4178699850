// Package benchmarks measures the HTTP middleware beside handlers without one, and beside other middlewares for Go. It is a
// module of its own, so that nobody else depends on them.
//
//	go test -bench=. -benchtime=20x
package benchmarks
