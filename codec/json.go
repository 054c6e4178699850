package codec

import (
	"encoding/json"
	"reflect"
)

// JSON encodes with encoding/json. What it stores can be read in the store by eye.
func JSON() Codec { return jsonCodec{} }

type jsonCodec struct{}

func (jsonCodec) Name() string { return "json" }

func (jsonCodec) Append(dst []byte, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(dst, data...), nil
}

func (jsonCodec) Decode(data []byte, v any) error { return json.Unmarshal(data, v) }

func (jsonCodec) CheckType(t reflect.Type) error { return jsonChecker.check(t) }
