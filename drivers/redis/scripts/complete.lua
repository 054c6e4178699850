-- ARGV: token, state, outcome, retention, tombstone, format.
-- Returns the time alone if it was done now; if it had been, that, the time, until when
-- the record is completed, and since when.

if not raw or token ~= ARGV[1] or state == RELEASED then
  return {LOST}
elseif state ~= CLAIMED then
  return {ALREADY, now, after(ended, retention), ended}
end
local told = watched == 1
state, ended, watched = ARGV[2] + 0, now, 0
retention, tombstone, format = ARGV[4] + 0, ARGV[5] + 0, ARGV[6] + 0
local rest = string.sub(raw, HEAD + 1, HEAD + length) .. ARGV[3]
-- include write.lua
-- include settle.lua
return now
