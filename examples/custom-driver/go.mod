module github.com/idem-go/idem/examples/custom-driver

go 1.26.0

require (
	github.com/idem-go/idem v0.0.0
	github.com/idem-go/idem/conformance/histories v0.0.0
	go.etcd.io/bbolt v1.5.0
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace github.com/idem-go/idem => ../..

replace github.com/idem-go/idem/conformance/histories => ../../conformance/histories
