// Package zstd compresses outcomes (RFC 8878), with klauspost/compress.
//
//	small, err := zstd.New()
//	op, err := idem.NewOperation("reports", store, g, idem.WithTransforms(small))
//
// It is a module of its own, so that programs that do not compress do not
// depend on the compressor. Compress before you encrypt; and do not compress what
// mixes secrets with what a stranger chooses, since the length tells of it.
package zstd

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/idem-go/idem/codec"
)

// The defaults of the options.
const (
	DefaultThreshold = 1 << 10  // bytes
	DefaultMaxSize   = 64 << 20 // bytes
)

// How the rest of the stored form is to be read.
const (
	plain      = 0
	compressed = 1
)

// ErrTooLarge: the outcome is larger than [WithMaxSize] allows.
var ErrTooLarge = errors.New("zstd: the outcome is too large")

// Option configures the transform.
type Option func(*transform)

// WithThreshold sets from how many bytes on outcomes are compressed. Default: [DefaultThreshold].
func WithThreshold(n int) Option { return func(t *transform) { t.threshold = n } }

// WithMaxSize sets how many bytes an outcome may have when it is read, since a
// few hostile bytes can unpack to gigabytes. Default: [DefaultMaxSize].
func WithMaxSize(n int) Option { return func(t *transform) { t.maxSize = n } }

// New returns a transform that compresses outcomes.
func New(opts ...Option) (codec.Transform, error) {
	t := &transform{threshold: DefaultThreshold, maxSize: DefaultMaxSize}
	for _, o := range opts {
		o(t)
	}
	if t.threshold < 0 || t.maxSize < 1 {
		return nil, fmt.Errorf("zstd: a threshold of %d and a maximum of %d bytes: use at least 0 and 1", t.threshold, t.maxSize)
	}
	var err error
	if t.enc, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
		return nil, err
	}
	// One goroutine at a time and no background work: nothing has to be closed.
	t.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(t.maxSize)))
	return t, err
}

type transform struct {
	threshold, maxSize int

	enc *zstd.Encoder
	dec *zstd.Decoder
}

// Name implements [codec.Transform].
func (*transform) Name() string { return "zstd" }

// Seal implements [codec.Transform]. What does not become smaller is stored as it is.
func (t *transform) Seal(dst, outcome, _ []byte) ([]byte, error) {
	if len(outcome) > t.maxSize {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(outcome), t.maxSize)
	}
	if len(outcome) >= t.threshold {
		start := len(dst)
		if packed := t.enc.EncodeAll(outcome, append(dst, compressed)); len(packed)-start <= len(outcome) {
			return packed, nil
		}
	}
	return append(append(dst, plain), outcome...), nil
}

// Open implements [codec.Transform].
func (t *transform) Open(dst, stored, _ []byte) ([]byte, error) {
	switch {
	case len(stored) == 0 || stored[0] > compressed:
		return nil, errors.New("zstd: the outcome was not written by this package")
	case stored[0] == plain:
		return append(dst, stored[1:]...), nil
	}
	var head zstd.Header
	if err := head.Decode(stored[1:]); err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	if head.HasFCS && head.FrameContentSize > uint64(t.maxSize) { //nolint:gosec // above 0
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, head.FrameContentSize, t.maxSize)
	}
	out, err := t.dec.DecodeAll(stored[1:], dst)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return nil, fmt.Errorf("%w: at most %d bytes", ErrTooLarge, t.maxSize)
	}
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return out, nil
}
