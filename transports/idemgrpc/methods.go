package idemgrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/idem-go/idem"
)

// checkMethod refuses what cannot be protected.
func (c *config) checkMethod(name string, op *idem.Operation) error {
	streams, found := c.find(name)
	switch {
	case op == nil:
		return configError("%s: the operation is nil: build one with idem.NewOperation", name)
	case !found:
		return configError("%s: there is no such method: write it as its FullMethodName is, /package.Service/Method, and import the "+
			"generated package of its service, or describe it by WithServices", name)
	case streams:
		return configError("%s streams: there is no one request to compare and no one response to store: protect the unary methods "+
			"around it, or run its effects by idem.Execute", name)
	}
	if err := checkOperation(op); err != nil {
		return fmt.Errorf("idemgrpc: %s: %w", name, err)
	}
	return nil
}

// checkOperation finds out whether the operation can store responses.
func checkOperation(op *idem.Operation) error {
	_, err := idem.Wrap(op,
		func(struct{}) (string, error) { return "", nil },
		func(context.Context, struct{}) (Response, error) { return Response{}, nil })
	return err
}

// find looks a method up, and whether it streams in either direction.
func (c *config) find(name string) (streams, found bool) {
	service, method, ok := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	if !ok || !strings.HasPrefix(name, "/") {
		return false, false
	}
	for _, d := range c.services {
		if d.ServiceName == service {
			return findIn(d, method)
		}
	}
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service + "." + method))
	m, isMethod := d.(protoreflect.MethodDescriptor)
	if err != nil || !isMethod {
		return false, false
	}
	return m.IsStreamingClient() || m.IsStreamingServer(), true
}

func findIn(d *grpc.ServiceDesc, method string) (streams, found bool) {
	for _, m := range d.Methods {
		if m.MethodName == method {
			return false, true
		}
	}
	for _, s := range d.Streams {
		if s.StreamName == method {
			return true, true
		}
	}
	return false, false
}

// MethodsByOption returns the methods of the program's proto files that have
// the option ext, each with the operation of r that the option names by its
// alias, for [UnaryServerInterceptor]. ext is an extension of the program's own:
//
//	extend google.protobuf.MethodOptions { string idem_operation = 50001; }
//	…
//	rpc Charge(ChargeRequest) returns (Receipt) { option (idem_operation) = "payments"; }
func MethodsByOption(ext protoreflect.ExtensionType, r *idem.Registry) (map[string]*idem.Operation, error) {
	if ext == nil || r == nil {
		return nil, configError("MethodsByOption: the extension or the registry is nil")
	}
	desc := ext.TypeDescriptor()
	if desc.ContainingMessage().FullName() != "google.protobuf.MethodOptions" || desc.Kind() != protoreflect.StringKind || desc.IsList() {
		return nil, configError("MethodsByOption: %s is no string option of methods: extend google.protobuf.MethodOptions", desc.FullName())
	}
	methods, errs := map[string]*idem.Operation{}, []error(nil)
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			ms := f.Services().Get(i).Methods()
			for j := range ms.Len() {
				m := ms.Get(j)
				if m.Options() == nil || !proto.HasExtension(m.Options(), ext) {
					continue
				}
				name := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
				op, err := r.Operation(idem.Alias(proto.GetExtension(m.Options(), ext).(string))) //nolint:forcetypeassert // it is of StringKind
				if err != nil {
					errs = append(errs, fmt.Errorf("idemgrpc: %s: %w", name, err))
				}
				methods[name] = op
			}
		}
		return true
	})
	if len(methods) == 0 {
		errs = append(errs, configError("MethodsByOption: no method has the option %s: import the generated packages", desc.FullName()))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return methods, nil
}
