package server

import "codeq/shardactor"

// Pulse tells whether the shards of a server make rounds. One goroutine uses it.
type Pulse struct {
	server *Server
	engine *shardactor.Engine // of the last beat, nil if this node did not lead
	rounds []uint64           // of its shards then
}

// Pulse is one that has not beaten.
func (s *Server) Pulse() *Pulse { return &Pulse{server: s} }

// Beat wakes every shard, and reports whether each has made a round since the last beat. It is true
// the first time, and at a node that leads no cluster: such a node has no shards.
func (p *Pulse) Beat() bool {
	before, rounds := p.engine, p.rounds
	working := p.server.work()
	if p.engine, p.rounds = nil, nil; working == nil {
		return true
	}
	p.engine = working.engine
	p.rounds = p.engine.Wake()
	if p.engine != before {
		return true
	}
	for i, now := range p.rounds {
		if now == rounds[i] {
			return false
		}
	}
	return true
}
