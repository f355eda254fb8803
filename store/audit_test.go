package store_test

import (
	"codeq/internal/audit"
	"codeq/store"
)

func init() {
	store.Audit.Check = func(s *store.Store) (findings []store.Finding, err error) {
		found, err := audit.Check(s)
		for _, f := range found {
			findings = append(findings, store.Finding{Kind: f.Kind, Text: f.String()})
		}
		return findings, err
	}
}
