//go:build !linux

package server

// warnOfLowLimits does nothing, because the limits of this system are not known.
func (s *Server) warnOfLowLimits() {}
