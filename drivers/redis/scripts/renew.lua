-- ARGV: token, lease. Returns the time and the lease's end.

if not raw or token ~= ARGV[1] or state ~= CLAIMED then
  return {LOST}
end
local prolonged = after(now, tonumber(ARGV[2]))
if prolonged > ended then
  ended = prolonged
  local record, failure = settle(string.sub(raw, HEAD + 1))
  if not record then
    return failure
  end
end
return {OK, now, ended}
