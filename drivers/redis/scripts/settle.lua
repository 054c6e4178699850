-- Included after write.lua in scripts that end or prolong what a claim has
-- begun.

if written.err and string.find(written.err, 'OOM', 1, true) then
  -- The server is over its memory limit. It keeps scripts from growing only
  -- until they have written, and PERSIST is no growth: what was granted
  -- can always be settled.
  redis.call('PERSIST', KEYS[1])
  if gone == NEVER then
    written = redis.pcall('SET', KEYS[1], record)
  else
    written = redis.pcall('SET', KEYS[1], record, 'PXAT', gone)
  end
end
if written.err then
  return written
end
if told then
  -- Wakes who waits. A server that forbids it fails nothing: waiters poll as well.
  redis.pcall('PUBLISH', KEYS[1], '')
end
