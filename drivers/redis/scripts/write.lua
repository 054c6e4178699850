-- Included where a script writes the record, with its fingerprint and outcome
-- in rest. It is no function, since Lua would make it anew at every call.

-- The time at which the server may drop the record.
local gone = after(ended, FENCE_MEMORY)
if state ~= CLAIMED or on_lapse ~= TAKE_OVER then
  gone = math.max(gone, after(after(ended, retention), tombstone))
end
local record = struct.pack(LAYOUT, 'idem', 1, state, on_lapse, guarantee, took_over, watched, length, attempt, format,
  token, fence, generation, claimed_at, ended, retention, tombstone) .. rest
local written
if gone == NEVER then
  written = redis.pcall('SET', KEYS[1], record)
else
  gone = string.format('%.0f', math.ceil(gone / 1000))
  written = redis.pcall('SET', KEYS[1], record, 'PXAT', gone)
end
