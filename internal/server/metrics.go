package server

import (
	"codeq/internal/httpapi"
	"codeq/internal/meter"
)

// writeMetrics adds what a server has beside its store and its engine to a page.
func (s *Server) writeMetrics(p *meter.Page) {
	s.writeProcess(p)
	s.events.WriteMetrics(p, httpapi.TopQueues, httpapi.OtherQueues)
	s.artifacts.WriteMetrics(p)
	if s.tracer != nil {
		s.tracer.WriteMetrics(p)
	}
}

// writeFollower adds what a node has that does not lead.
func (s *Server) writeFollower(p *meter.Page) {
	s.writeProcess(p)
	s.database().WriteDisk(p)
}

// writeProcess adds the figures of the listener and of the node. Those of descriptors are
// process_open_fds and process_max_fds.
func (s *Server) writeProcess(p *meter.Page) {
	p.One("codeq_connections", meter.Gauge, "Connections that are open, sessions included.", float64(s.listener.count()))
	p.One("codeq_connections_limit", meter.Gauge, "Connections that the limit of open files leaves room for.", float64(s.listener.limit))
	p.One("codeq_connections_refused_total", meter.Total, "Connections that were refused because as many were open as may be.",
		float64(s.listener.refused.Load()))
	p.One("codeq_connections_displaced_total", meter.Total, "Connections without a request that were closed because another wanted in.",
		float64(s.listener.displaced.Load()))
	if s.o.Certificate != nil {
		s.o.Certificate.writeMetrics(p)
	}
	s.writeClusterMetrics(p)
	if s.o.Providers != nil {
		s.o.Providers.WriteMetrics(p)
	}
	if s.o.LogLost != nil {
		p.One("codeq_log_lines_lost_total", meter.Total, "Lines of the log and of standard output that nobody took.", float64(s.o.LogLost()))
	}
}
