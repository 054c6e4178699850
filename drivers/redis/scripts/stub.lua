-- Included where a record becomes a stub, which remembers the fence, the
-- generation and the attempt for keep.

state, ended, length, watched, rest = RELEASED, now, 0, 0, ''
retention, tombstone = keep, 0
if keep ~= FOREVER and keep < FENCE_MEMORY then
  retention = FENCE_MEMORY
end
