-- ARGV: fence, action, outcome, retention, tombstone, format.
-- Returns, if it was not applied, the time, until when, the state and the fence.

local RESOLVE_COMPLETED, RESOLVE_NOT_RUN, RESOLVE_FORGET = 1, 2, 3

local NOBODY = string.rep('\0', 16)

local seen = visible()
if seen == 0 then
  return {REFUSED, now, NEVER, 0, 0}
elseif format > tonumber(ARGV[6]) then
  return {NEWER}
end
local action = tonumber(ARGV[2])
local applies = seen == UNCERTAIN
if action == RESOLVE_FORGET then
  applies = seen ~= CLAIMED or now >= till
end
if fence ~= tonumber(ARGV[1]) or not applies then
  return {REFUSED, now, till, seen, fence}
end

local rest = ''
if action == RESOLVE_COMPLETED then
  state, ended, watched, token = COMPLETED, now, 0, NOBODY
  retention, tombstone, format = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
  rest = string.sub(raw, HEAD + 1, HEAD + length) .. ARGV[3]
else
  release(0)
  token = NOBODY
  if action == RESOLVE_FORGET then
    retention = 0 -- past its keep: only the fence is remembered
  end
end
local record, failure = settle(rest)
if not record then
  return failure
end
tell(true)
return {OK}
