package server

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"codeq/auth"
)

// authenticator decides who may in by the options: whoever has a token, or,
// without tokens, everybody who reaches an address that strangers do not.
func authenticator(o *Options) (auth.Authenticator, error) {
	if o.Tokens != nil {
		return o.Tokens, nil
	}
	if err := auth.CheckListener(o.Listen, o.InsecureNoAuth); err != nil {
		return nil, err
	}
	return auth.None(), nil
}

// refusedAtOnce is how many lines a second are written about what was refused because
// of who asked; codeq_http_requests_total counts all.
const refusedAtOnce = 10

// sparing is a log that leaves out what is too much.
func sparing(log zerolog.Logger) zerolog.Logger {
	return log.Sample(&zerolog.BurstSampler{Burst: refusedAtOnce, Period: time.Second})
}

// refused writes down what was refused because of who asked. Any goroutine.
func (s *Server) refused(t auth.Attempt) {
	line := s.sparingLog.Warn().Str("remote", t.Remote).Str("what", t.What).Str("code", string(t.Refusal.Code))
	if t.Who != nil {
		line.Str("tenant", t.Who.Tenant).Str("subject", t.Who.Subject)
	}
	line.Msg("refused: " + t.Refusal.Sentence)
}

// watchTokens makes changes of the file of tokens count, until unwatch.
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

// tokensChanged is told of a new file of tokens, or that it can not be read.
// Sessions whose token is gone end now.
func (s *Server) tokensChanged(err error) {
	if err != nil {
		s.o.Log.Error().Err(err).Msg("the file of tokens can not be read; the tokens stay as they were")
		return
	}
	s.o.Log.Info().Str("file", s.o.Tokens.File()).Int("tokens", s.o.Tokens.Count()).Msg("tokens read again")
	s.sessions.Recheck()
}

// ReloadTokens reads the file of tokens now, for file systems that tell
// nobody of a change. Without one it writes a line into the log.
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
