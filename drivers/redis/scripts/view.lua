-- Included where a record is shown: a lease that lapsed so long ago that any
-- claim may take it is nothing.

local seen = is
if is == CLAIMED and now - ended >= FENCE_MEMORY then
  seen = 0
end
