-- Scripts that show records go on with this text.

-- What the record is to who looks: a lease that lapsed so long ago that any
-- claim may take it is nothing.
local function visible()
  if is == CLAIMED and now - ended >= FENCE_MEMORY then
    return 0
  end
  return is
end
