package canonical

import (
	"fmt"
	"strconv"
	"strings"
)

// appendNumber appends the JSON number text as its digits without leading and
// trailing zeros and a power of ten: 120 is 12e1, 0.5 is 5e-1, zero is 0e0.
func appendNumber(dst []byte, text string) ([]byte, error) {
	mantissa, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[i+1:]); err != nil || exponent > 1<<30 || exponent < -1<<30 {
			return nil, fmt.Errorf("the exponent of %.40q is out of range", text)
		}
		mantissa = text[:i]
	}
	sign := ""
	if rest, negative := strings.CutPrefix(mantissa, "-"); negative {
		sign, mantissa = "-", rest
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	if trimmed == "" {
		return append(dst, "0e0"...), nil
	}
	dst = append(append(dst, sign...), trimmed...)
	return strconv.AppendInt(append(dst, 'e'), int64(exponent), 10), nil
}
