module github.com/idem-go/idem/codec/protobuf

go 1.26.0

require github.com/idem-go/idem v0.0.0

require (
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	google.golang.org/protobuf v1.36.12
)

replace github.com/idem-go/idem => ../..
