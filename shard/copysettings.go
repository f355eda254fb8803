package shard

import "codeq/store"

// copySettings takes over what the home of a queue has decided. A copy that
// comes late, behind a newer one, changes nothing.
func (s *Shard) copySettings(m *CopySettings) {
	q := s.queueOf(m.Queue)
	if m.Settings.Version > q.settings.Version {
		s.applySettings(q, m.Settings)
	}
	if m.Thaw {
		s.thaw(q)
	}
	s.tell(m.Sink, &Configured{Ref: m.Ref, Settings: q.settings})
}

// restoreSettings takes what recovery found, before anything is granted.
func (s *Shard) restoreSettings(found []store.SettingsState) {
	for i := range found {
		q := s.queueOf(found[i].Key)
		q.settings = found[i].Settings
		s.noteDeleted(q)
		if found[i].Unsaved {
			s.unsaved = append(s.unsaved, q)
		}
	}
}

// saveSettings writes the settings that recovery took from another shard.
func (s *Shard) saveSettings() {
	if len(s.unsaved) == 0 || s.space >= store.OnlyDelete {
		return
	}
	for _, q := range s.unsaved {
		s.span.Batch().PutSettings(q.key, &q.settings)
	}
	s.unsaved = nil
}
