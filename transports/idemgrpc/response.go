package idemgrpc

import (
	"errors"
	"fmt"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/idem-go/idem"
)

// Response is what is stored of an answer: a message or a status.
type Response struct {
	Type    string // the message's full name
	Message []byte // as protobuf writes it
	Status  []byte // a google.rpc.Status; nil: the answer is the message
}

// answer is what a handler has answered.
type answer struct {
	message any
	err     error // as the client gets it; nil: OK
	code    codes.Code
}

// answered takes what a handler returned, as gRPC would.
func answered(message any, err error) answer {
	if err == nil {
		if m, ok := message.(proto.Message); ok && m.ProtoReflect().IsValid() {
			return answer{message: message}
		}
		err = status.Errorf(codes.Internal, "the handler returned %T, which is no message", message)
	}
	s := statusOf(err)
	_, known := status.FromError(err)
	switch nested := (*idem.Error)(nil); {
	case s.Code() == codes.OK: // which no error is
		s = status.New(codes.Unknown, s.Message())
		err = s.Err()
	case !known && errors.As(err, &nested):
		err = s.Err()
	}
	return answer{err: err, code: s.Code()}
}

// stored returns what is stored of the answer.
func (a answer) stored() (r Response, err error) {
	if a.err != nil {
		r.Status, err = proto.MarshalOptions{Deterministic: true}.Marshal(statusOf(a.err).Proto())
		return r, err
	}
	m := a.message.(proto.Message) //nolint:forcetypeassert // see answered
	r.Type = string(m.ProtoReflect().Descriptor().FullName())
	r.Message, err = proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return r, err
}

// rebuild makes the answer again. unreadable says why it cannot be made.
func (r Response) rebuild() (message proto.Message, st *status.Status, unreadable error) {
	if r.Status != nil {
		var s statuspb.Status
		if err := proto.Unmarshal(r.Status, &s); err != nil {
			return nil, nil, err
		}
		return nil, status.FromProto(&s), nil
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(r.Type))
	if err != nil {
		return nil, nil, fmt.Errorf("stored as a %q, which this program does not know: %w", r.Type, err)
	}
	m := t.New().Interface()
	return m, nil, proto.Unmarshal(r.Message, m)
}
