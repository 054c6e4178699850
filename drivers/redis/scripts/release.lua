-- ARGV: token, how long the stub is kept.

if not raw or token ~= ARGV[1] or (state ~= CLAIMED and state ~= RELEASED) then
  return {LOST}
elseif state == CLAIMED then
  local told = watched
  release(tonumber(ARGV[2]))
  local record, failure = settle('')
  if not record then
    return failure
  end
  tell(told == 1)
end
return {OK}
