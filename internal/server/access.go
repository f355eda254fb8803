package server

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"codeq/internal/auth"
)

// authenticator is the one for the options: with tokens their authenticator, without
// tokens one that admits every client, on loopback addresses unless InsecureNoAuth is set.
func authenticator(o *Options) (auth.Authenticator, error) {
	switch {
	case o.Providers != nil:
		return o.Providers, nil
	case o.Tokens != nil:
		return o.Tokens, nil
	}
	if err := auth.CheckListener(o.Listen, o.InsecureNoAuth); err != nil {
		return nil, err
	}
	return auth.None(), nil
}

// refusedAtOnce bounds the lines a second about refused clients;
// codeq_http_requests_total counts all refusals.
const refusedAtOnce = 10

// atMost is a log that drops the lines beyond so many in each period.
func atMost(log zerolog.Logger, lines uint32, period time.Duration) zerolog.Logger {
	return log.Sample(&zerolog.BurstSampler{Burst: lines, Period: period})
}

// refused logs a refusal of a client. Any goroutine.
func (s *Server) refused(t auth.Attempt) {
	line := s.refusedLog.Warn().Str("remote", t.Remote).Str("what", t.What).Str("code", string(t.Refusal.Code))
	if t.Who != nil {
		line.Str("tenant", t.Who.Tenant).Str("subject", t.Who.Subject)
	}
	line.Msg("refused: " + t.Refusal.Sentence)
}

// credentialFile is the file of tokens, that of providers, or that of the certificate.
type credentialFile interface {
	File() string
	// Beside are further files that Reload reads.
	Beside() []string
	Count() int
	Reload() (changed bool, err error)
}

// credentialFiles are the files that say who is admitted, by what they have.
func (s *Server) credentialFiles() map[string]credentialFile {
	files := map[string]credentialFile{}
	if s.o.Tokens != nil {
		files["tokens"] = s.o.Tokens
	}
	if s.o.Providers != nil {
		files["providers"] = s.o.Providers
	}
	if s.o.Certificate != nil {
		files["certificates"] = s.o.Certificate
	}
	return files
}

// watchCredentials reloads the files of credentials when they change, and asks the providers
// again and again, until unwatch is called.
func (s *Server) watchCredentials() error {
	if s.o.Providers != nil {
		s.o.Providers.Start(s.recheck)
		s.unwatch = append(s.unwatch, s.o.Providers.Stop)
	}
	for what, file := range s.credentialFiles() {
		stop, err := auth.WatchFile(file.File(), file.Reload, func(err error) { s.credentialsChanged(what, file, err) }, file.Beside()...)
		if err != nil {
			return err
		}
		s.unwatch = append(s.unwatch, stop)
	}
	return nil
}

// credentialsChanged logs that a file of credentials has changed or cannot be read. After a
// change it ends the sessions whose credential was revoked.
func (s *Server) credentialsChanged(what string, file credentialFile, err error) {
	if err != nil {
		s.o.Log.Error().Err(err).Msg("the file of " + what + " cannot be read; the " + what + " stay as they were")
		return
	}
	s.o.Log.Info().Str("file", file.File()).Int(what, file.Count()).Msg(what + " read again")
	s.recheck()
}

// recheck ends the sessions whose credential was revoked or has other rights.
func (s *Server) recheck() {
	if working := s.work(); working != nil {
		working.sessions.Recheck()
		working.hub.Recheck()
	}
}

// ReloadTokens reads the files of credentials now, for file systems that do not report changes.
// Without such a file it only logs that there is none.
func (s *Server) ReloadTokens() {
	files := s.credentialFiles()
	if len(files) == 0 {
		s.o.Log.Info().Msg("there is no file of tokens to read again")
		return
	}
	for what, file := range files {
		changed, err := file.Reload()
		if err != nil {
			err = fmt.Errorf("reload: %w", err)
		}
		if changed || err != nil {
			s.credentialsChanged(what, file, err)
		}
	}
}
