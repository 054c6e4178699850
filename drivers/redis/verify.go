package idemredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

// Verify implements [driver.Verifier]: the user must be allowed to run the
// scripts, and the settings of every master must keep what the guarantees in
// use promise (see docs/redis.md for the reasons). It asks by EVALSHA, INFO and
// CONFIG GET. Where the server forbids one of the last two, AtMostOnce is
// refused, for what is not known may be wrong, unless the risk is accepted.
func (s *Store) Verify(ctx context.Context, p driver.VerifyParams) (driver.VerifyResult, error) {
	v := &verification{Store: s, atMostOnce: p.Guarantees.Has(driver.AtMostOnce)}
	if err := v.run(ctx); err != nil {
		return driver.VerifyResult{}, failed("verify", err)
	}
	if len(v.faults) > 0 {
		return driver.VerifyResult{}, fmt.Errorf("idemredis: %w: %w", driver.ErrUnfit, errors.Join(v.faults...))
	}
	return driver.VerifyResult{Warnings: v.warnings}, nil
}

// verification is one run of [Store.Verify].
type verification struct {
	*Store

	atMostOnce bool
	where      string // the node that is looked at, in a cluster
	warnings   []string
	faults     []error
}

func (v *verification) warnf(format string, args ...any) {
	v.warnings = append(v.warnings, v.where+fmt.Sprintf(format, args...))
}

func (v *verification) faultf(format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf(v.where+format, args...))
}

// doubtf is a fault for AtMostOnce, unless the user has accepted the risk, and else a warning.
func (v *verification) doubtf(r Risk, format string, args ...any) {
	if !v.atMostOnce || v.risks[r] {
		v.warnf(format, args...)
		return
	}
	name := map[Risk]string{RiskLostWrites: "RiskLostWrites", RiskFailover: "RiskFailover"}[r]
	v.faultf(format+" AtMostOnce does not hold with that; accept it with WithAcceptedRisk(%s) if the effects may happen again.",
		append(args, name)...)
}

func (v *verification) run(ctx context.Context) error {
	_, err := v.Inspect(ctx, driver.InspectParams{Key: driver.Key{Scope: "verify", ID: "verify"}})
	switch {
	case isKind(err, kindDenied):
		v.faultf("The user may not run the scripts: grant what docs/redis.md lists (%w).", err)
		return nil
	case isKind(err, kindWrong):
		v.faultf("The server does not run scripts as Redis 6.2 does (%w).", err)
		return nil
	case err != nil && !errors.Is(err, driver.ErrCorrupt) && !errors.Is(err, driver.ErrNewerFormat):
		return err
	}
	masters, err := v.masters(ctx)
	switch {
	case isKind(err, kindDenied), isKind(err, kindWrong):
		v.doubtf(RiskLostWrites, "The server forbids INFO (%v), so its version, memory, persistence and replicas are not known: allow it.", err)
		return nil
	case err != nil:
		return err
	}
	for _, m := range masters {
		v.where = ""
		if m.addr != "" {
			v.where = m.addr + ": "
		}
		if err := v.check(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func isKind(err error, k kind) bool { return err != nil && kindOf(err) == k }

func (v *verification) check(ctx context.Context, m node) error {
	if role := m.info["role"]; role != "" && role != "master" {
		v.faultf("The server is a replica: connect to its master.")
		return nil
	}
	v.version(m)
	v.memory(m)
	v.replication(m)
	return v.persistence(ctx, m)
}

// version needs SET with PXAT, of 6.2 (https://redis.io/docs/latest/commands/set/#history).
func (v *verification) version(m node) {
	version := m.info["redis_version"] // Valkey says with which version of Redis it is compatible
	switch {
	case version == "":
		v.warnf("The server does not tell its version: it must be Redis 6.2 or newer, or Valkey.")
	case older(version, 6, 2):
		v.faultf("Redis %s is too old: use 6.2 or newer, or Valkey.", version)
	case v.aof && older(version, 7, 2) && m.info["valkey_version"] == "":
		v.faultf("Redis %s has no WAITAOF: use 7.2 or newer, or leave WithWaitAOF out.", version)
	}
}

// older reports whether a version is below major.minor; one that cannot be read is not.
func older(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(first)
	b, errB := strconv.Atoi(second)
	return errA == nil && errB == nil && (a < major || a == major && b < minor)
}

// nearlyFull is the part of its memory from which on a server is.
const nearlyFull = 0.9

// memory looks at https://redis.io/docs/latest/develop/reference/eviction/.
func (v *verification) memory(m node) {
	used, limit := field(m, "used_memory"), field(m, "maxmemory")
	if policy := m.info["maxmemory_policy"]; limit > 0 && policy != "noeviction" {
		v.doubtf(RiskLostWrites, "With maxmemory-policy %s the server drops records when its memory is full, and their operations run again. "+
			"Set maxmemory-policy noeviction.", policy)
	}
	if limit == 0 {
		limit = field(m, "total_system_memory")
	}
	if limit > 0 && used > nearlyFull*limit {
		v.warnf("%.0f %% of the server's memory is used: when it is full, the claims of new keys are refused. "+
			"Raise maxmemory, or shorten retentions.", 100*used/limit)
	}
}

// replication looks at https://redis.io/docs/latest/operate/oss_and_stack/management/replication/.
func (v *verification) replication(m node) {
	replicas := int(field(m, "connected_slaves"))
	switch {
	case replicas < v.replicas:
		v.warnf("%d replicas are connected, so no claim will be confirmed by %d: connect more, or lower WithWaitReplicas.",
			replicas, v.replicas)
	case replicas > 0 && v.replicas == 0:
		v.doubtf(RiskFailover, "Replication is asynchronous: a failover may lose the latest claims and outcomes. "+
			"Use WithWaitReplicas(%d, …).", replicas)
	case replicas > v.replicas:
		v.warnf("Claims wait for %d of %d replicas: a failover to another one may lose the latest claims. "+
			"Use WithWaitReplicas(%d, …).", v.replicas, replicas, replicas)
	}
}

// persistence looks at https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/.
func (v *verification) persistence(ctx context.Context, m node) error {
	if enabled := m.info["aof_enabled"]; enabled != "1" {
		v.doubtf(RiskLostWrites, "The server keeps no append-only file, so a restart forgets records. "+
			"Set appendonly yes and appendfsync always.")
		if v.aof && enabled == "0" {
			v.faultf("WithWaitAOF waits for an append-only file: set appendonly yes, or leave the option out.")
		}
		return nil
	}
	if status := m.info["aof_last_write_status"]; status != "" && status != "ok" {
		v.warnf("The last write to the append-only file failed (%s): look at the server's disk.", status)
	}
	fsync, err := configGet(ctx, m.client, "appendfsync")
	switch {
	case isKind(err, kindDenied), isKind(err, kindWrong), err == nil && fsync == "":
		fsync = "not known, because the server forbids CONFIG GET"
	case err != nil:
		return err
	}
	switch {
	case fsync == "always":
	case v.aof:
		// Each claim waits for the disk by itself.
	case v.replicas > 0 && fsync == "everysec":
		v.warnf("appendfsync is %s: if a power failure hits the master and it is back before a replica is promoted, "+
			"the last second may be lost.", fsync)
	default:
		v.doubtf(RiskLostWrites, "appendfsync is %s: a power failure may lose the latest claims and outcomes. "+
			"Set appendfsync always, or use WithWaitAOF.", fsync)
	}
	return nil
}

func field(m node, name string) float64 {
	n, _ := strconv.ParseFloat(m.info[name], 64) // 0 if it is not there
	return n
}

func configGet(ctx context.Context, c rueidis.Client, name string) (string, error) {
	values, err := c.Do(ctx, c.B().ConfigGet().Parameter(name).Build()).AsStrMap()
	return values[name], err
}
