-- Returns the state that is shown, the time, until when, and the record.

-- include view.lua
return {seen, now, till, raw or ''}
