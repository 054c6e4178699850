-- Returns the state that is shown, the time, until when, and the record.

return {visible(), now, till, raw or ''}
