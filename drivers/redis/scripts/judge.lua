-- Every script begins with this: it reads the record and says what it is now. A
-- script may return from here. The layout is record.go's.

local LAYOUT, HEAD = '>c4BBBBBBI2I4I4c16i8i8i8i8i8i8', 84
local CLAIMED, COMPLETED, UNCERTAIN, EXPIRED, RELEASED = 1, 2, 3, 4, 5
local TAKE_OVER = 1
local FENCE_MEMORY = 600000000
local FOREVER, NEVER = -1, 9007199254740992 -- Lua counts exactly up to here
local OK, OWN, ALREADY, REFUSED, LOST, NEWER, CORRUPT = 10, 11, 12, 13, 14, 15, 16

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local raw = redis.pcall('GET', KEYS[1])
if type(raw) == 'table' then
  if string.find(raw.err, 'WRONGTYPE', 1, true) then
    return {CORRUPT}
  end
  return raw
end

local function after(t, d)
  if d == FOREVER or t + d > NEVER then
    return NEVER
  end
  return t + d
end

-- The record as written.
local magic, layout, state, on_lapse, guarantee, took_over, watched, length, attempt, format
local token, fence, generation, claimed_at, ended, retention, tombstone
-- What it is now, until when; 0: nothing any more, or there is none.
local is, till = 0, NEVER

if raw then
  if string.sub(raw, 1, 4) ~= 'idem' then
    return {CORRUPT}
  elseif #raw > 4 and string.byte(raw, 5) > 1 then
    return {NEWER}
  elseif #raw < HEAD then
    return {CORRUPT}
  end
  magic, layout, state, on_lapse, guarantee, took_over, watched, length, attempt, format,
    token, fence, generation, claimed_at, ended, retention, tombstone = struct.unpack(LAYOUT, raw)
  local rest = #raw - HEAD - length
  if layout ~= 1 or state < CLAIMED or state == EXPIRED or state > RELEASED
    or on_lapse < 1 or on_lapse > 2 or guarantee < 1 or guarantee > 3 or attempt < 1 or format < 1
    or generation < 1 or fence < generation or claimed_at < 1 or ended < 1
    or retention < FOREVER or tombstone < FOREVER
    or rest < 0 or (rest > 0) ~= (state == COMPLETED) then
    return {CORRUPT}
  end
  is, till = state, ended
  if state == RELEASED then
    till = after(ended, retention)
    if now >= till then
      is, till = 0, NEVER
    end
  elseif state ~= CLAIMED or (now >= ended and on_lapse ~= TAKE_OVER) then
    if state == CLAIMED then
      is = UNCERTAIN
    end
    till = after(ended, retention)
    if now >= till then
      is, till = EXPIRED, after(till, tombstone)
      if now >= till then
        is, till = 0, NEVER
      end
    end
  end
end
