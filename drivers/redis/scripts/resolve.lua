-- ARGV: fence, action, outcome, retention, tombstone, format.
-- Returns, if it was not applied, the time, until when, the state and the fence.

local RESOLVE_COMPLETED, RESOLVE_NOT_RUN, RESOLVE_FORGET = 1, 2, 3

-- include view.lua
if seen == 0 then
  return {REFUSED, now, NEVER, 0, 0}
elseif format > ARGV[6] + 0 then
  return {NEWER}
end
local action = ARGV[2] + 0
local applies = seen == UNCERTAIN
if action == RESOLVE_FORGET then
  applies = seen ~= CLAIMED or now >= till
end
if fence ~= ARGV[1] + 0 or not applies then
  return {REFUSED, now, till, seen, fence}
end

local told, keep, rest = true, 0
token = string.rep('\0', 16) -- nobody's
if action == RESOLVE_COMPLETED then
  state, ended, watched = COMPLETED, now, 0
  retention, tombstone, format = ARGV[4] + 0, ARGV[5] + 0, ARGV[6] + 0
  rest = string.sub(raw, HEAD + 1, HEAD + length) .. ARGV[3]
else
  -- include stub.lua
  if action == RESOLVE_FORGET then
    retention = 0 -- past its keep: only the fence is remembered
  end
end
-- include write.lua
-- include settle.lua
return {OK}
