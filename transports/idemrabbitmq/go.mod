module github.com/idem-go/idem/transports/idemrabbitmq

go 1.26.0

require github.com/idem-go/idem v0.0.0

require (
	github.com/rabbitmq/amqp091-go v1.16.0
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
)

replace github.com/idem-go/idem => ../..
