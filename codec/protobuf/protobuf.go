// Package protobuf stores protobuf messages as protobuf writes them.
//
//	op, err := idem.NewOperation("payments", store, g, idem.WithCodec(protobuf.New()))
//	receipt, err := idem.Execute(ctx, key, func(ctx context.Context) (*pb.Receipt, error) { … }, idem.On(op))
//
// It is a module of its own, so that programs without protobuf do not depend
// on it. Results are pointers to generated messages. What a newer program has written
// an older one reads as far as it knows the fields, and the other way round.
package protobuf

import (
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"

	"github.com/idem-go/idem/codec"
)

// The first byte tells a nil message from an empty one.
const (
	absent  = 0
	present = 1
)

type protobuf struct{}

// New returns the codec, which is named "protobuf".
func New() codec.Codec { return protobuf{} }

var errAbsent = errors.New("protobuf: these bytes are no message")

func (protobuf) Name() string { return "protobuf" }

func (p protobuf) Append(dst []byte, v any) ([]byte, error) {
	m, err := p.message(v)
	if err != nil {
		return nil, err
	}
	if !m.ProtoReflect().IsValid() {
		return append(dst, absent), nil
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(append(dst, present), m)
}

func (p protobuf) Decode(data []byte, v any) error {
	if _, err := p.message(v); err != nil {
		return err
	}
	switch {
	case len(data) == 1 && data[0] == absent:
		return nil
	case len(data) == 0 || data[0] != present:
		return errAbsent
	}
	target := reflect.ValueOf(v).Elem()
	target.Set(reflect.New(target.Type().Elem()))
	m, err := p.message(v)
	if err != nil {
		return err
	}
	return proto.Unmarshal(data[1:], m)
}

// message returns the message that *v is.
func (p protobuf) message(v any) (proto.Message, error) {
	target := reflect.ValueOf(v).Elem()
	if err := p.CheckType(target.Type()); err != nil {
		return nil, err
	}
	return target.Interface().(proto.Message), nil //nolint:forcetypeassert // it was checked
}

var messageType = reflect.TypeFor[proto.Message]()

func (protobuf) CheckType(t reflect.Type) error {
	if t.Kind() == reflect.Pointer && t.Implements(messageType) {
		return nil
	}
	return fmt.Errorf("%w: the protobuf codec keeps pointers to generated messages, not %v", codec.ErrUnsupportedType, t)
}
