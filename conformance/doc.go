// Package conformance is the test of every idem driver. It imports no
// third-party package, and a driver's whole test is one call:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{
//			Open: func(t testing.TB) driver.Driver { return mydriver.New(connect(t)) },
//		})
//	}
//
// What applies follows from the driver's [driver.Capabilities] and abilities,
// and these are verified both ways: what is declared works, what is not
// declared is absent. Each [Case] has a stable name and a rule of one sentence,
// which a failure prints. A case that does not apply is skipped with what it
// needs.
package conformance
