-- ARGV: token, how long the stub is kept.

if not raw or token ~= ARGV[1] or (state ~= CLAIMED and state ~= RELEASED) then
  return {LOST}
elseif state == RELEASED then
  return {OK}
end
local told, keep, rest = watched == 1, ARGV[2] + 0
-- include stub.lua
-- include write.lua
-- include settle.lua
return {OK}
