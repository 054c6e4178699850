package codec

import (
	"encoding/json"
	"errors"
	"reflect"

	"github.com/idem-go/idem/internal/canonical"
)

// JSON encodes with encoding/json. What it stores can be read in the store by eye.
//
// Text that is no UTF-8 is refused when it is encoded. A time keeps its offset to the
// minute, not the abbreviation of its zone, and no year beyond 9999.
func JSON() Codec { return jsonCodec{} }

type jsonCodec struct{}

func (jsonCodec) Name() string { return "json" }

var errNoText = errors.New(`codec: JSON cannot hold text that is no UTF-8 (or the escape \ufffd, which stands for it): use codec.MessagePack`)

func (jsonCodec) Append(dst []byte, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if canonical.HidesText(data) {
		return nil, errNoText
	}
	return append(dst, data...), nil
}

func (jsonCodec) Decode(data []byte, v any) error { return json.Unmarshal(data, v) }

func (jsonCodec) CheckType(t reflect.Type) error { return jsonChecker.check(t) }
