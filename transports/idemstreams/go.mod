module github.com/idem-go/idem/transports/idemstreams

go 1.26.0

require (
	github.com/idem-go/idem v0.0.0
	github.com/redis/rueidis v1.0.79
)

require (
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/idem-go/idem => ../..
