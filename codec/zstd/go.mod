module github.com/idem-go/idem/codec/zstd

go 1.26.0

require (
	github.com/idem-go/idem v0.0.0
	github.com/klauspost/compress v1.20.4
	go.uber.org/goleak v1.3.0
)

require (
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
)

replace github.com/idem-go/idem => ../..
