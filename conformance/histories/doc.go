// Package histories checks a driver with random programs. Where the
// conformance suite tries what somebody thought of, this tries what nobody did.
//
//	func TestHistories(t *testing.T) {
//		histories.Check(t, conformance.Harness{Open: open, Peer: peer}, histories.Options{})
//	}
//
// A history is what some clients do to one key at the same time, on several
// handles of one store: claim, renew, complete, release, wait for a lease to
// end, come back as an owner that has lost its lease, crash. Some calls fail
// before they are sent, some lose their reply, some are cut short by their
// context. What the clients saw must be what one record could have answered if
// the calls had come one after the other, each at some moment between its
// beginning and its end (linearizability). A call that has no answer may have
// happened at any later moment, or not at all. Leases are judged by the
// time that can have passed between two calls and, where the driver says when
// it decided, by the backend's clock. An answer judged by a clock of a moment later
// than what was read is one that no record could have given.
//
// A history that no order explains is printed as a timeline. Its program is
// repeated with the seed that it prints; what the scheduler and the network
// make of it is not.
//
//	go test -run TestHistories -histories.count=10000 -histories.seed=7 -histories.html=/tmp
//
// Before that, the same model is compared with the driver step by step, by a
// single client on all handles, with [pgregory.net/rapid], which shrinks what fails.
package histories
