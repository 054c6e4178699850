-- ARGV: token, state, outcome, retention, tombstone, format.
-- Returns whether it was done or had been, the time, until when the record is
-- that, and since when.

if not raw or token ~= ARGV[1] or state == RELEASED then
  return {LOST}
elseif state ~= CLAIMED then
  return {ALREADY, now, after(ended, retention), ended}
end
local told = watched
state, ended, watched = tonumber(ARGV[2]), now, 0
retention, tombstone, format = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local record, failure = settle(string.sub(raw, HEAD + 1, HEAD + length) .. ARGV[3])
if not record then
  return failure
end
tell(told == 1)
return {OK, now, after(ended, retention), ended}
