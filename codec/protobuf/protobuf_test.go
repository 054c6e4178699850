package protobuf_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/codec/protobuf"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMessageComesBackAsItWas(t *testing.T) {
	t.Parallel()
	full, err := structpb.NewStruct(map[string]any{"b": 1.5, "a": []any{"x", nil, true}, "\x00": map[string]any{}})
	must(t, err)
	for _, m := range []*structpb.Struct{full, {}, nil} {
		data, err := protobuf.New().Append([]byte("before"), &m)
		must(t, err)
		var back *structpb.Struct
		must(t, protobuf.New().Decode(data[len("before"):], &back))
		if !proto.Equal(m, back) || (m == nil) != (back == nil) {
			t.Errorf("%v came back as %v", m, back)
		}
	}
}

func TestReplayIsTheFirstMessage(t *testing.T) {
	t.Parallel()
	store, err := idemmemory.New()
	must(t, err)
	op, err := idem.NewOperation("payments", store, idem.AtLeastOnce, idem.WithCodec(protobuf.New()))
	must(t, err)
	runs := 0
	for range 2 {
		got, err := idem.Execute(t.Context(), "k", func(context.Context) (*wrapperspb.StringValue, error) {
			runs++
			return wrapperspb.String("receipt"), nil
		}, idem.On(op))
		if err != nil || got.GetValue() != "receipt" || runs != 1 {
			t.Error(got, err, runs)
		}
	}
}

func TestWhatIsNoMessageIsRefusedBeforeItRuns(t *testing.T) {
	t.Parallel()
	checker := protobuf.New().(codec.TypeChecker)
	for _, err := range []error{
		refused[string](checker), refused[proto.Message](checker), refused[structpb.Struct](checker), refused[**structpb.Struct](checker),
	} {
		if !errors.Is(err, codec.ErrUnsupportedType) {
			t.Error(err)
		}
	}
}

func refused[T any](c codec.TypeChecker) error {
	_, err := protobuf.New().Append(nil, new(T))
	return errors.Join(err, c.CheckType(reflect.TypeFor[T]()))
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 10, 1, 65})
	f.Add([]byte{0})
	f.Add([]byte{})
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var m *structpb.Struct
		if err := protobuf.New().Decode(data, &m); err != nil {
			return
		}
		if _, err := protobuf.New().Append(nil, &m); err != nil {
			t.Error(err)
		}
	})
}

func ExampleNew() {
	store, _ := idemmemory.New()
	op, _ := idem.NewOperation("payments", store, idem.AtLeastOnce, idem.WithCodec(protobuf.New()))
	for range 2 {
		receipt, err := idem.Execute(context.Background(), "pay-42", func(context.Context) (*wrapperspb.StringValue, error) {
			fmt.Println("charging")
			return wrapperspb.String("receipt 1"), nil
		}, idem.On(op))
		fmt.Println(receipt.GetValue(), err)
	}
	// Output:
	// charging
	// receipt 1 <nil>
	// receipt 1 <nil>
}
