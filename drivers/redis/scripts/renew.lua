-- ARGV: token, lease. Returns the time and the lease's end.

if not raw or token ~= ARGV[1] or state ~= CLAIMED then
  return {LOST}
end
local prolonged = after(now, ARGV[2] + 0)
if prolonged <= ended then
  return {OK, now, ended}
end
ended = prolonged
local told, rest = false, string.sub(raw, HEAD + 1)
-- include write.lua
-- include settle.lua
return {OK, now, ended}
