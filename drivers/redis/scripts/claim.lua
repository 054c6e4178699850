-- ARGV: token, fingerprint, lease, what its end means, guarantee, retention,
-- tombstone, fence of the uncertain record to take, format, whether the caller
-- waits, whether the claim must pass through this connection.
-- Returns the record alone if it was granted and took over nothing, as most are;
-- else whether it was granted (OK, OWN) or the state that it found, the time,
-- until when, the record, and the fingerprint that a takeover found.

local FINGERPRINT_PREFIX = 4

local fingerprint, before = ARGV[2]
if raw then
  if format > ARGV[9] + 0 then
    return {NEWER}
  end
  local own = token == ARGV[1]
  if own and state == CLAIMED then
    if ARGV[11] == '1' then
      -- What is there already, so that WAIT on this connection waits for it.
      local reply = redis.pcall('SETRANGE', KEYS[1], 0, 'i')
      if type(reply) == 'table' then
        return reply
      end
    end
    return {OWN, now, ended, raw}
  elseif own and state == RELEASED then
    return {LOST}
  end
  local stored = string.sub(raw, HEAD + 1, HEAD + length)
  local same = stored == fingerprint or stored == '' or fingerprint == ''
    or string.sub(stored, 1, FINGERPRINT_PREFIX) ~= string.sub(fingerprint, 1, FINGERPRINT_PREFIX)
  if is == CLAIMED and now >= ended and (same or now - ended >= FENCE_MEMORY)
    or is == UNCERTAIN and fence == ARGV[8] + 0 then
    attempt, took_over, before = attempt + 1, 1, stored
    if fingerprint == '' then
      fingerprint = stored
    end
  elseif is == RELEASED then
    attempt, took_over = attempt + 1, 0
  elseif is ~= 0 then
    if is == CLAIMED and watched == 0 and ARGV[10] == '1' then
      redis.pcall('SETRANGE', KEYS[1], 9, '\1') -- watched; without it, the waiter polls
    end
    return {is, now, till, raw}
  end
end

fence = math.max((fence or 0) + 1, now)
if is == 0 then
  generation, attempt, took_over, watched = fence, 1, 0, 0
end
state, token, length = CLAIMED, ARGV[1], #fingerprint
claimed_at, ended = now, after(now, ARGV[3] + 0)
on_lapse, guarantee, format = ARGV[4] + 0, ARGV[5] + 0, ARGV[9] + 0
retention, tombstone = ARGV[6] + 0, ARGV[7] + 0
local rest = fingerprint
-- include write.lua
if written.err then
  return written
end
if not before then
  return record
end
return {OK, now, ended, record, before}
