package idemconnect

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/idem-go/idem"
)

// Response is what is stored of an answer: a message or an error.
type Response struct {
	Type    string // the message's full name
	Message []byte // as protobuf writes it
	Status  []byte // a google.rpc.Status; nil: the answer is the message
}

// answer is what a handler has answered.
type answer struct {
	response connect.AnyResponse
	err      error // as the client gets it; nil: none
	code     connect.Code
}

// answered takes what a handler returned.
func answered(res connect.AnyResponse, err error) answer {
	if err == nil {
		m, isMessage := res.Any().(proto.Message)
		if isMessage && m.ProtoReflect().IsValid() {
			return answer{response: res}
		}
		err = connect.NewError(connect.CodeInternal, fmt.Errorf("the handler returned %T, which is no message", res.Any()))
	}
	e := errorOf(err)
	_, known := errors.AsType[*connect.Error](err)
	if _, nested := errors.AsType[*idem.Error](err); nested && !known {
		err = e
	}
	return answer{err: err, code: e.Code()}
}

// stored returns what is stored of the answer.
func (a answer) stored() (r Response, err error) {
	deterministic := proto.MarshalOptions{Deterministic: true}
	if a.err == nil {
		m := a.response.Any().(proto.Message) //nolint:forcetypeassert // see answered
		r.Type = string(m.ProtoReflect().Descriptor().FullName())
		r.Message, err = deterministic.Marshal(m)
		return r, err
	}
	e := errorOf(a.err)
	s := &statuspb.Status{Code: int32(e.Code()), Message: e.Message()} //nolint:gosec // there are 16 codes
	for _, d := range e.Details() {
		s.Details = append(s.Details, &anypb.Any{TypeUrl: "type.googleapis.com/" + d.Type(), Value: d.Bytes()})
	}
	r.Status, err = deterministic.Marshal(s)
	return r, err
}

// replay is the response with a stored message.
type replay struct {
	connect.AnyResponse // for the headers

	message proto.Message
}

func (r replay) Any() any { return r.message }

// rebuild makes the answer again. unreadable says why it cannot be made.
func (r Response) rebuild() (res connect.AnyResponse, e *connect.Error, unreadable error) {
	if r.Status != nil {
		var s statuspb.Status
		if err := proto.Unmarshal(r.Status, &s); err != nil {
			return nil, nil, err
		}
		e = connect.NewError(connect.Code(s.GetCode()), errors.New(s.GetMessage())) //nolint:gosec // see stored
		for _, d := range s.GetDetails() {
			detail, err := connect.NewErrorDetail(d)
			if err != nil {
				return nil, nil, err
			}
			e.AddDetail(detail)
		}
		return nil, e, nil
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(r.Type))
	if err != nil {
		return nil, nil, fmt.Errorf("stored as a %q, which this program does not know: %w", r.Type, err)
	}
	m := t.New().Interface()
	return replay{connect.NewResponse(&emptypb.Empty{}), m}, nil, proto.Unmarshal(r.Message, m)
}
