-- Scripts that end or prolong what a claim has begun go on with this text.

-- Writes like write, also when the server is over its memory limit: a claim
-- that was granted can always be settled. A server refuses to grow by a script
-- only until the script has written; PERSIST is no growth.
local function settle(tail)
  local record, failure = write(tail)
  if not record and string.find(failure.err, 'OOM', 1, true) then
    redis.call('PERSIST', KEYS[1])
    record, failure = write(tail)
  end
  return record, failure
end

-- Wakes who waits for the record, if anybody does. A server that forbids it
-- fails nothing: waiters poll as well.
local function tell(always)
  if always or watched == 1 then
    redis.pcall('PUBLISH', KEYS[1], '')
  end
end

-- Makes the record a stub that remembers the fence, the generation and the attempt.
local function release(keep)
  state, ended, length, watched = RELEASED, now, 0, 0
  retention, tombstone = keep, 0
  if keep ~= FOREVER and keep < FENCE_MEMORY then
    retention = FENCE_MEMORY
  end
end
