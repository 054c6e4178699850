package idemredis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// node is one server.
type node struct {
	addr   string
	client rueidis.Client
	info   map[string]string // what INFO said, by field
}

// masters are the servers that take writes, in the order of their addresses.
// The client may know replicas too, and they may be away.
func (s *Store) masters(ctx context.Context) ([]node, error) {
	if s.client.Mode() != rueidis.ClientModeCluster {
		info, err := readInfo(ctx, s.client)
		return []node{{client: s.client, info: info}}, err
	}
	var masters []node
	var failures []error
	for addr, c := range s.client.Nodes() {
		info, err := readInfo(ctx, c)
		if err != nil {
			failures = append(failures, err)
		} else if info["role"] == "master" {
			masters = append(masters, node{addr: addr, client: c, info: info})
		}
	}
	if len(masters) == 0 {
		return nil, errors.Join(append(failures, errors.New("no node is a master"))...)
	}
	slices.SortFunc(masters, func(a, b node) int { return cmp.Compare(a.addr, b.addr) })
	return masters, nil
}

// identity tells sets of masters apart, and the same ones after a restart.
func identity(masters []node) string {
	var b strings.Builder
	for _, m := range masters {
		b.WriteString(m.info["run_id"])
	}
	return b.String()
}

// readInfo asks for the sections that a store looks at: one by one, since only
// Redis 7 and newer give several at once.
func readInfo(ctx context.Context, c rueidis.Client) (map[string]string, error) {
	info := make(map[string]string)
	for _, res := range c.DoMulti(ctx,
		c.B().Info().Section("server").Build(),
		c.B().Info().Section("memory").Build(),
		c.B().Info().Section("persistence").Build(),
		c.B().Info().Section("replication").Build(),
	) {
		text, err := res.ToString()
		if err != nil {
			return info, err
		}
		for line := range strings.SplitSeq(text, "\r\n") {
			if field, value, ok := strings.Cut(line, ":"); ok {
				info[field] = value
			}
		}
	}
	return info, nil
}
