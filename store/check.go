package store

// Finding is one broken rule that Check found.
type Finding struct {
	// Shard is -1 for a key outside every span.
	Shard int
	// Kind is a short word for the rule, Key the key it was found at.
	Kind string
	Key  []byte
	// Sentence says what was expected and what is there.
	Sentence string
}

// Check reads every key of every span.
func (s *Store) Check() ([]Finding, error) { return nil, nil }
