package client

import (
	"codeq/wire"
)

// goesOn reports whether a link is another socket of the session that the last
// one had.
func (c *crew) goesOn(l *link) bool {
	return c.redial.hello.Resume != "" && l.welcome.SessionID == c.session
}

// takeUp sorts what is in hand by what the server says that the session still
// has. The rest is lost, though an outcome that is there already may count. What
// this worker does not know never arrived; it goes back at once.
func (c *crew) takeUp(held []wire.TaskRef) {
	for _, ref := range held {
		j := c.jobs[ref.Token]
		if j == nil {
			c.jobs[ref.Token] = &job{
				ref: ref, task: &wire.Task{ID: ref.TaskID}, link: c.link, state: jobFinished, outcome: Release(), stray: true,
			}
			continue
		}
		if j.link != c.link {
			j.link = c.link
			c.carried--
		}
		if j.state == jobArrived {
			j.state, j.doubtful = jobReady, false
		}
	}
	for _, j := range c.jobs {
		if j.link != c.link && j.state != jobFinished {
			c.lose(j, "it is not in hand of the session any more")
		}
	}
}

// remember keeps what the next link needs to go on with the session.
func (c *crew) remember(welcome *wire.Welcome) {
	c.session = welcome.SessionID
	c.redial.resume(welcome.Resume)
}
