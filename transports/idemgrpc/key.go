package idemgrpc

import (
	"context"
	"strings"

	"google.golang.org/grpc/metadata"
)

// maxKey is the largest length of a key, in bytes.
const maxKey = 255

// keyOf returns the call's key; "" if it has none. The problem says what is
// wrong with it.
func keyOf(ctx context.Context) (key, problem string) {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get(KeyEntry)
	switch {
	case len(values) == 0:
		return "", ""
	case len(values) > 1:
		return "", "there are two keys: send one"
	case len(values[0]) > maxKey || strings.TrimSpace(values[0]) == "" || strings.ContainsFunc(values[0], unprintable):
		return "", "the key must be 1 to 255 printable ASCII characters"
	}
	return values[0], ""
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }
