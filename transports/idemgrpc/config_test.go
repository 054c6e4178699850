package idemgrpc_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/transports/idemgrpc"
)

func TestWhatCannotBeProtectedIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	op := operation(t, stores[0].open(t), idem.AtLeastOnce)
	raw := operation(t, stores[0].open(t), idem.AtLeastOnce, idem.WithCodec(codec.Raw()))
	plain := &grpc.ServiceDesc{
		ServiceName: "plain.Service", Methods: []grpc.MethodDesc{{MethodName: "Do"}}, Streams: []grpc.StreamDesc{{StreamName: "Watch"}},
	}
	for _, row := range []struct {
		says   string
		method string
		op     *idem.Operation
		opts   []idemgrpc.Option
	}{
		{"streams: there is no one request", pb.TestService_StreamingInputCall_FullMethodName, op, nil},
		{"streams: there is no one request", pb.TestService_StreamingOutputCall_FullMethodName, op, nil},
		{"streams: there is no one request", pb.TestService_FullDuplexCall_FullMethodName, op, nil},
		{"streams: there is no one request", "/plain.Service/Watch", op, []idemgrpc.Option{idemgrpc.WithServices(plain)}},
		{"there is no such method", "/plain.Service/Undo", op, []idemgrpc.Option{idemgrpc.WithServices(plain)}},
		{"there is no such method", "/plain.Service/Do", op, nil},
		{"there is no such method", "grpc.testing.TestService/UnaryCall", op, nil},
		{"there is no such method", "/grpc.testing.TestService", op, nil},
		{"there is no such method", "/grpc.testing/TestService", op, nil},
		{"the operation is nil", unary, nil, nil},
		{"raw codec keeps []byte", unary, raw, nil},
		{"an option is nil", unary, op, []idemgrpc.Option{nil}},
		{"WithPrincipal: nil", unary, op, []idemgrpc.Option{idemgrpc.WithPrincipal(nil)}},
		{"WithFingerprint: nil", unary, op, []idemgrpc.Option{idemgrpc.WithFingerprint(nil)}},
		{"WithFinal: nil", unary, op, []idemgrpc.Option{idemgrpc.WithFinal(nil)}},
		{"WithRollback: nil", unary, op, []idemgrpc.Option{idemgrpc.WithRollback(nil)}},
		{"WithServices: nil", unary, op, []idemgrpc.Option{idemgrpc.WithServices(nil)}},
		{"WithLogger: nil", unary, op, []idemgrpc.Option{idemgrpc.WithLogger(nil)}},
	} {
		_, err := idemgrpc.UnaryServerInterceptor(map[string]*idem.Operation{row.method: row.op}, row.opts...)
		if !errors.Is(err, idem.ErrConfig) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v does not say %q", row.method, err, row.says)
		}
	}
	if _, err := idemgrpc.UnaryServerInterceptor(nil); !errors.Is(err, idem.ErrConfig) {
		t.Error(err)
	}
	_, err := idemgrpc.UnaryServerInterceptor(map[string]*idem.Operation{"/plain.Service/Do": op},
		idemgrpc.WithServices(plain), idemgrpc.WithoutPrincipal())
	must(t, err)
}

func TestWithoutAPrincipalSomebodyIsWarned(t *testing.T) {
	t.Parallel()
	op := operation(t, stores[0].open(t), idem.AtLeastOnce)
	var said strings.Builder
	log := idemgrpc.WithLogger(slog.New(slog.NewTextHandler(&said, nil)))
	_, err := idemgrpc.UnaryServerInterceptor(map[string]*idem.Operation{unary: op}, log)
	if must(t, err); !strings.Contains(said.String(), "no principal is configured") {
		t.Error(said.String())
	}
	said.Reset()
	_, err = idemgrpc.UnaryServerInterceptor(map[string]*idem.Operation{unary: op}, log, idemgrpc.WithPrincipal(tenant))
	if must(t, err); said.String() != "" {
		t.Error(said.String())
	}
}

func TestFingerprintIsWhatTheProgramSays(t *testing.T) {
	t.Parallel()
	s := serve(t, operation(t, stores[0].open(t), idem.AtLeastOnce),
		idemgrpc.WithFingerprint(func(_ context.Context, m proto.Message) ([]byte, error) {
			if len(m.(*pb.SimpleRequest).GetPayload().GetBody()) == 0 {
				return nil, errors.New("secret")
			}
			return m.(*pb.SimpleRequest).GetPayload().GetBody()[:1], nil
		}))
	s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return response("done"), nil }
	for _, body := range []string{"500", "501"} {
		if a := s.call("k", body); a.body != "done" {
			t.Errorf("%+v", a)
		}
	}
	s.call("k", "900").wantProblem(t, 9, idemgrpc.KeyReused, false)
	s.call("k", "").wantProblem(t, 13, idemgrpc.Misconfigured, false)
}

// option is a file with an option of methods and a service that uses it, as
// protoc would make and register it.
var option = sync.OnceValues(func() (protoreflect.ExtensionType, error) {
	own := &descriptorpb.FileDescriptorProto{
		Name: new("idemgrpc_test_option.proto"), Package: new("idemgrpc_test"), Syntax: new("proto3"),
		Dependency: []string{"google/protobuf/descriptor.proto"},
		Extension: []*descriptorpb.FieldDescriptorProto{{
			Name: new("idem_operation"), Number: proto.Int32(50001), Extendee: new(".google.protobuf.MethodOptions"),
			Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}},
	}
	file, err := protodesc.NewFile(own, protoregistry.GlobalFiles)
	if err != nil {
		return nil, err
	}
	ext := dynamicpb.NewExtensionType(file.Extensions().Get(0))
	options := &descriptorpb.MethodOptions{}
	proto.SetExtension(options, ext, "payments")
	empty := new(".google.protobuf.MethodOptions")
	service := &descriptorpb.FileDescriptorProto{
		Name: new("idemgrpc_test_service.proto"), Package: new("idemgrpc_test"), Dependency: []string{"google/protobuf/descriptor.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("Payments"), Method: []*descriptorpb.MethodDescriptorProto{
			{Name: new("Charge"), InputType: empty, OutputType: empty, Options: options},
			{Name: new("List"), InputType: empty, OutputType: empty},
		}}},
	}
	file, err = protodesc.NewFile(service, protoregistry.GlobalFiles)
	if err != nil {
		return nil, err
	}
	return ext, protoregistry.GlobalFiles.RegisterFile(file)
})

func TestMethodsAreNamedByAnOptionInTheirFile(t *testing.T) { //nolint:paralleltest // it registers a file, which others look through
	ext, err := option()
	must(t, err)
	op := operation(t, stores[0].open(t), idem.AtLeastOnce)
	r, err := idem.NewRegistry(op)
	must(t, err)
	methods, err := idemgrpc.MethodsByOption(ext, r)
	if must(t, err); len(methods) != 1 || methods["/idemgrpc_test.Payments/Charge"] != op {
		t.Error(methods)
	}
	_, err = idemgrpc.UnaryServerInterceptor(methods, idemgrpc.WithoutPrincipal())
	must(t, err)

	other, err := idem.NewOperation("other", stores[0].open(t), idem.AtLeastOnce)
	must(t, err)
	strangers, err := idem.NewRegistry(other)
	must(t, err)
	for says, err := range map[string]error{
		"is nil":                         second(idemgrpc.MethodsByOption(nil, r)),
		"has no such operation":          second(idemgrpc.MethodsByOption(ext, strangers)),
		"is no string option of methods": second(idemgrpc.MethodsByOption(dynamicpb.NewExtensionType(descriptorExtension(t)), r)),
	} {
		if !errors.Is(err, idem.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// descriptorExtension is an option of messages.
func descriptorExtension(t *testing.T) protoreflect.ExtensionDescriptor {
	t.Helper()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("x.proto"), Dependency: []string{"google/protobuf/descriptor.proto"},
		Extension: []*descriptorpb.FieldDescriptorProto{{
			Name: new("x"), Number: proto.Int32(50002), Extendee: new(".google.protobuf.MessageOptions"),
			Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}},
	}, protoregistry.GlobalFiles)
	must(t, err)
	return file.Extensions().Get(0)
}
