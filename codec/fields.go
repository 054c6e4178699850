package codec

import (
	"reflect"
	"strings"
)

// storedField is a field under the name that it is stored by.
type storedField struct {
	reflect.StructField

	stored string
}

// storedFields returns the fields of t that are stored. The fields of an
// embedded struct are among them, unless one of them has the name of another: then the
// struct is a field by itself.
func storedFields(t reflect.Type, tag tagFunc, fs forms) []storedField {
	var found []storedField
	inner := map[int][]storedField{} // of embedded structs, by their numbers
	count := map[string]int{}
	for f := range t.Fields() {
		name, options := tag(f)
		if !stores(f, name) {
			continue
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct && !fs.any(f.Type) && f.Type != timeType && name == "" && !options["noinline"] {
			inner[f.Index[0]] = storedFields(f.Type, tag, fs)
			for _, in := range inner[f.Index[0]] {
				count[in.stored]++
			}
			continue
		}
		count[storedName(f, name)]++
	}
	for f := range t.Fields() {
		name, _ := tag(f)
		if !stores(f, name) {
			continue
		}
		embedded, ok := inner[f.Index[0]]
		for _, in := range embedded {
			ok = ok && count[in.stored] == 1
		}
		if !ok {
			found = append(found, storedField{f, storedName(f, name)})
			continue
		}
		for _, in := range embedded {
			in.Index = append(append([]int(nil), f.Index...), in.Index...)
			found = append(found, in)
		}
	}
	return found
}

// stores reports whether a field is stored.
func stores(f reflect.StructField, name string) bool {
	return name != "-" && (f.IsExported() || f.Anonymous && f.Type.Kind() == reflect.Struct)
}

func storedName(f reflect.StructField, name string) string {
	if name == "" {
		return f.Name
	}
	return name
}

// tagFunc reads a field's tag.
type tagFunc func(f reflect.StructField) (name string, options map[string]bool)

func msgpackTag(f reflect.StructField) (name string, options map[string]bool) {
	return readTag(f.Tag.Get("msgpack"))
}

func jsonTag(f reflect.StructField) (name string, options map[string]bool) {
	tag := f.Tag.Get("json")
	name, options = readTag(tag)
	if name == "-" && tag != "-" { // `json:"-,"` is a field named -
		name = "'-'"
	}
	return name, options
}

func readTag(tag string) (name string, options map[string]bool) {
	name, rest, _ := strings.Cut(tag, ",")
	options = map[string]bool{}
	for o := range strings.SplitSeq(rest, ",") {
		options[strings.TrimSpace(o)] = true
	}
	return strings.TrimSpace(name), options
}
