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
	if o.Tokens != nil {
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

// watchTokens reloads the token file when it changes, until unwatch is called.
func (s *Server) watchTokens() error {
	if s.o.Tokens == nil {
		return nil
	}
	stop, err := s.o.Tokens.Watch(s.tokensChanged)
	if err != nil {
		return err
	}
	s.unwatch = stop
	return nil
}

// tokensChanged logs that the token file has changed or cannot be read. After a change it
// ends the sessions whose token was revoked.
func (s *Server) tokensChanged(err error) {
	if err != nil {
		s.o.Log.Error().Err(err).Msg("the file of tokens can not be read; the tokens stay as they were")
		return
	}
	s.o.Log.Info().Str("file", s.o.Tokens.File()).Int("tokens", s.o.Tokens.Count()).Msg("tokens read again")
	s.sessions.Recheck()
	s.hub.Recheck()
}

// ReloadTokens reads the token file now, for file systems that do not report changes.
// Without a token file it only logs that there is none.
func (s *Server) ReloadTokens() {
	if s.o.Tokens == nil {
		s.o.Log.Info().Msg("there is no file of tokens to read again")
		return
	}
	changed, err := s.o.Tokens.Reload()
	if err != nil {
		err = fmt.Errorf("reload: %w", err)
	}
	if changed || err != nil {
		s.tokensChanged(err)
	}
}
