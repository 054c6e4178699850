package idemredis

import (
	"context"
	"crypto/sha1" //nolint:gosec // the server names scripts by it
	"embed"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

//go:embed scripts/*.lua
var files embed.FS

var (
	claimScript    = newScript("claim.lua")
	completeScript = newScript("complete.lua")
	releaseScript  = newScript("release.lua")
	renewScript    = newScript("renew.lua")
	resolveScript  = newScript("resolve.lua")
	lookScript     = newScript("look.lua")
)

// script is a script on one key.
type script struct{ text, sha string }

// newScript puts a script together: judge.lua, and then its own file.
func newScript(name string) script {
	s := script{text: source("judge.lua") + source(name)}
	sum := sha1.Sum([]byte(s.text)) //nolint:gosec // see the import
	s.sha = hex.EncodeToString(sum[:])
	return s
}

// source is a file's text, with other files in place of the lines that include them.
func source(name string) string {
	text, err := files.ReadFile("scripts/" + name)
	if err != nil {
		panic(err) // the file is missing from the source
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if included, ok := strings.CutPrefix(strings.TrimSpace(line), "-- include "); ok {
			line = source(included)
		}
		b.WriteString(line)
	}
	return b.String()
}

// command runs the script by its name. The client does not send it again by
// itself: whoever called decides that, with the same token.
func (s script) command(c rueidis.CommandClient, key string, args []string) rueidis.Completed {
	return c.B().Evalsha().Sha1(s.sha).Numkeys(1).Key(key).Arg(args...).Build()
}

// full sends the script's text, for a server that does not know it (any more).
func (s script) full(c rueidis.CommandClient, key string, args []string) rueidis.Completed {
	return c.B().Eval().Script(s.text).Numkeys(1).Key(key).Arg(args...).Build()
}

func (s script) run(ctx context.Context, c rueidis.CommandClient, key string, args []string) (answer, error) {
	res := c.Do(ctx, s.command(c, key, args))
	if noScript(res) {
		res = c.Do(ctx, s.full(c, key, args))
	}
	return parse(res)
}

// runAll runs the script on each key, in one round trip to each node.
func (s script) runAll(ctx context.Context, c rueidis.CommandClient, keys []string, args [][]string) []rueidis.RedisResult {
	commands := make([]rueidis.Completed, len(keys))
	for i := range keys {
		commands[i] = s.command(c, keys[i], args[i])
	}
	results := c.DoMulti(ctx, commands...)
	var unknown []int // to the server
	var again []rueidis.Completed
	for i, res := range results {
		if noScript(res) {
			unknown = append(unknown, i)
			again = append(again, s.full(c, keys[i], args[i]))
		}
	}
	for i, res := range c.DoMulti(ctx, again...) {
		results[unknown[i]] = res
	}
	return results
}

func noScript(res rueidis.RedisResult) bool {
	err, ok := rueidis.IsRedisErr(res.Error())
	return ok && err.IsNoScript()
}

// verdict is the first value of an answer: a [driver.Decision] or
// [driver.State], or one of these.
type verdict int64

// As in judge.lua.
const (
	verdictOK      verdict = 10
	verdictOwn     verdict = 11
	verdictAlready verdict = 12
	verdictRefused verdict = 13
	verdictLost    verdict = 14
	verdictNewer   verdict = 15
	verdictCorrupt verdict = 16
)

// answer is what a script returned.
type answer struct {
	verdict verdict
	rest    []rueidis.RedisMessage

	// The most frequent answers are one value, which the server makes faster
	// than a list. The verdict is then verdictOK.
	alone  bool
	text   []byte
	number int64
}

// parse returns the answer, or the contract's error that the script decided on.
func parse(res rueidis.RedisResult) (answer, error) {
	m, err := res.ToMessage()
	switch {
	case err != nil:
		return answer{}, err
	case m.IsInt64():
		n, err := m.ToInt64()
		return answer{verdict: verdictOK, alone: true, number: n}, err
	case m.IsString():
		text, err := m.AsBytes()
		return answer{verdict: verdictOK, alone: true, text: text}, err
	}
	values, err := m.ToArray()
	if err != nil {
		return answer{}, err
	}
	if len(values) == 0 {
		return answer{}, errors.New("an empty answer of a script")
	}
	v, err := values[0].ToInt64()
	if err != nil {
		return answer{}, err
	}
	a := answer{verdict: verdict(v), rest: values[1:]}
	switch a.verdict {
	case verdictLost:
		err = driver.ErrLost
	case verdictNewer:
		err = driver.ErrNewerFormat
	case verdictCorrupt:
		err = driver.ErrCorrupt
	default:
	}
	return a, err
}

// int is the i-th number after the verdict; 0 if there is none.
func (a answer) int(i int) int64 {
	if i >= len(a.rest) {
		return 0
	}
	n, _ := a.rest[i].ToInt64() // a script returns no other type there
	return n
}

// bytes is the i-th string after the verdict; nil if there is none.
func (a answer) bytes(i int) []byte {
	if i >= len(a.rest) {
		return nil
	}
	b, _ := a.rest[i].AsBytes() // a script returns no other type there
	return b
}
