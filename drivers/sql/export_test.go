package idemsql

// PurgeStatement is what Purge sends; its one argument is the limit.
func PurgeStatement(s *Store) string { return s.statements[stPurge].sql }
