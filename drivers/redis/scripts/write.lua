-- Scripts that write go on with this text.

-- The time at which the server may drop the record.
local function gone()
  local memory = after(ended, FENCE_MEMORY)
  if state == CLAIMED and on_lapse == TAKE_OVER then
    return memory
  end
  return math.max(memory, after(after(ended, retention), tombstone))
end

local function set(record)
  local t = gone()
  if t == NEVER then
    return redis.pcall('SET', KEYS[1], record)
  end
  return redis.pcall('SET', KEYS[1], record, 'PXAT', string.format('%.0f', math.ceil(t / 1000)))
end

-- Writes the record and returns it; nil and the error if the server refuses.
local function write(tail)
  local record = struct.pack(LAYOUT, 'idem', 1, state, on_lapse, guarantee, took_over, watched, length, attempt, format,
    token, fence, generation, claimed_at, ended, retention, tombstone) .. tail
  local reply = set(record)
  if reply.err then
    return nil, reply
  end
  return record
end
