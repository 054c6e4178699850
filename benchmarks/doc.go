// Package benchmarks measures idem beside the least that the same work can
// cost: the codec alone, and raw statements on the same database, in one run.
// Absolute times depend on the machine; compare within a run.
//
//	go test -bench=. -benchmem
package benchmarks
