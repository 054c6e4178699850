package codec_test

import (
	"bytes"
	"encoding/hex"
	"math"
	"net/netip"
	"reflect"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/idem-go/idem/codec"
)

// invoice has a field of each kind.
type invoice struct {
	ID     string `msgpack:"id"`
	Paid   bool
	Cents  int64
	Small  int8
	Big    uint64
	Rate   float64
	Half   float32
	Raw    []byte
	Hash   [3]byte
	Lines  []line
	Nil    []line
	Empty  []int
	Next   *line
	From   netip.Addr
	Notes  map[string]string
	Skip   string `msgpack:"-"`
	Absent string `msgpack:",omitempty"`
}

type line struct {
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // its tag is read

	Name  string
	Count uint8
}

func sample() invoice {
	return invoice{
		ID: "i-1", Paid: true, Cents: -70_000, Small: -33, Big: math.MaxUint64, Rate: 0.5, Half: -2, Raw: []byte{0, 0xff}, Hash: [3]byte{1, 2, 3},
		Lines: []line{{Name: "a", Count: 200}}, Empty: []int{}, Next: &line{Name: "b"}, From: netip.MustParseAddr("10.0.0.1"),
		Notes: map[string]string{"k": "v"},
	}
}

func TestStoredValuesAreFrozen(t *testing.T) {
	t.Parallel()
	v := sample()
	data, err := codec.MessagePack().Append(nil, &v)
	const want = "8fa26964a3692d31a450616964c3a543656e7473d2fffeee90a5536d616c6cd0dfa3426967cfffffffffffffffffa452617465cb3fe000" +
		"0000000000a448616c66cac0000000a3526177c40200ffa448617368c403010203a54c696e65739192a161ccc8a34e696cc0a5456d7074" +
		"7990a44e65787492a16200a446726f6dc4040a000001a54e6f74657381a16ba176"
	if got := hex.EncodeToString(data); err != nil || got != want {
		t.Errorf("it is stored as\n%s, want\n%s (%v)", got, want, err)
	}
	if got := roundTrip(t, codec.MessagePack(), v); !reflect.DeepEqual(got, v) {
		t.Errorf("%+v, want %+v", got, v)
	}
}

func TestOtherProgramsReadAndWriteTheSame(t *testing.T) {
	t.Parallel()
	want := sample()
	data, err := codec.MessagePack().Append(nil, &want)
	if err != nil {
		t.Fatal(err)
	}
	var theirs, ours invoice
	if err := msgpack.Unmarshal(data, &theirs); err != nil || !reflect.DeepEqual(theirs, want) {
		t.Errorf("it reads %+v, %v; want %+v", theirs, err, want)
	}
	var buffer bytes.Buffer
	enc := msgpack.NewEncoder(&buffer)
	enc.UseCompactInts(true)
	if err := enc.Encode(&want); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(buffer.Bytes(), data) {
		t.Errorf("it writes\n%x, not\n%x", buffer.Bytes(), data)
	}
	if data, err = msgpack.Marshal(&want); err != nil { // numbers in all their bytes
		t.Fatal(err)
	}
	if err := codec.MessagePack().Decode(data, &ours); err != nil || !reflect.DeepEqual(ours, want) {
		t.Errorf("%+v, %v; want %+v", ours, err, want)
	}
}
