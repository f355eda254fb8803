package mailbox

import (
	"slices"
	"time"
)

// lanes is the new work of all owners, who take turns.
type lanes[M any] struct {
	// of has the lane of each owner of whom something waits, turns has all of them in
	// their order; at is whose turn it is.
	of    map[string]*lane[M]
	turns []*lane[M]
	at    int
	// messages are those of all.
	messages int
	// shared is for how many more drains pushes are taken in parts.
	shared int
	// spare are lanes to be used again.
	spare []*lane[M]
}

// sharedDrains is how many drains after several owners had some take pushes in parts, so that
// the next message of another owner waits for a short round. Whole ones cost fewer rounds.
const sharedDrains = 64

// maxSpare is how many lanes without messages are kept.
const maxSpare = 16

// find is the lane of an owner, nil if nothing of it waits.
func (l *lanes[M]) find(owner string) *lane[M] {
	if len(l.turns) == 1 && l.turns[0].owner == owner {
		return l.turns[0]
	}
	return l.of[owner]
}

// held is what waits of an owner.
func (l *lanes[M]) held(owner string) (messages, bytes int) {
	if one := l.find(owner); one != nil {
		return one.len(), one.bytes
	}
	return 0, 0
}

func (l *lanes[M]) push(owner string, batch []M, bytes int) {
	one := l.find(owner)
	if one == nil {
		one = l.begin(owner)
	}
	one.push(batch, bytes)
	l.messages += len(batch)
}

func (l *lanes[M]) begin(owner string) *lane[M] {
	if l.of == nil {
		l.of = make(map[string]*lane[M])
	}
	if len(l.spare) == 0 {
		l.spare = append(l.spare, &lane[M]{})
	}
	last := len(l.spare) - 1
	one := l.spare[last]
	l.spare = l.spare[:last]
	one.owner, l.of[owner] = owner, one
	l.turns = append(l.turns, one)
	return one
}

// end removes the lane whose turn it is.
func (l *lanes[M]) end() {
	one := l.turns[l.at]
	l.turns = slices.Delete(l.turns, l.at, l.at+1)
	delete(l.of, one.owner)
	if len(l.spare) < maxSpare {
		l.spare = append(l.spare, one)
	}
}

// take appends pushes to batch until most messages are taken, all for 0, and says how many
// and how large they were and when the oldest came. A turn is an equal share of most, so that
// nobody waits for the backlog of another. An owner that has been alone for sharedDrains
// has whole pushes taken, the first one whatever its size.
func (l *lanes[M]) take(batch []M, most int) (_ []M, taken, bytes int, oldest time.Time) {
	if l.shared = max(0, l.shared-1); len(l.turns) > 1 {
		l.shared = sharedDrains
	}
	whole, share := l.shared == 0, (most+len(l.turns)-1)/max(len(l.turns), 1)
	for len(l.turns) > 0 {
		l.at %= len(l.turns)
		one, room := l.turns[l.at], most-taken
		first := &one.pushes[one.first]
		if most > 0 && taken > 0 && (room == 0 || whole && first.messages > room) {
			break
		}
		if taken == 0 || first.at.Before(oldest) {
			oldest = first.at
		}
		var n, size int
		batch, n, size = one.take(batch, min(share, room), whole)
		taken, bytes = taken+n, bytes+size
		if one.len() == 0 {
			l.end()
		} else {
			l.at++
		}
	}
	l.messages -= taken
	return batch, taken, bytes, oldest
}

// admits says whether an owner may push beside what waits, of which most may. Alone it may
// fill that. While others wait it may have half, and what one of them has beyond half, from
// when it was alone, keeps nobody out.
func (l *lanes[M]) admits(owner string, most int) bool {
	own, _ := l.held(owner)
	if own == l.messages {
		return own < most
	}
	half := most - most/2
	return own < half && (l.messages < most || l.upTo(half) < most)
}

// upTo counts what waits, of each owner at most so much.
func (l *lanes[M]) upTo(most int) (n int) {
	for _, one := range l.turns {
		n += min(one.len(), most)
	}
	return n
}

// lane is the new work of one owner in the order of its pushes, from whose front a drain takes.
type lane[M any] struct {
	owner    string
	messages []M
	pushes   []push
	// from and first are what has been taken of messages and pushes.
	from  int
	first int
	// bytes are those that wait.
	bytes int
}

// push is what is left of one accepted Push.
type push struct {
	messages int
	bytes    int
	at       time.Time
}

func (l *lane[M]) len() int { return len(l.messages) - l.from }

func (l *lane[M]) push(batch []M, bytes int) {
	l.messages = append(l.messages, batch...)
	l.pushes = append(l.pushes, push{messages: len(batch), bytes: bytes, at: time.Now()})
	l.bytes += bytes
}

// take appends messages from the front to batch until most are taken, all for 0, and says how
// many and how large they were. Of whole pushes it takes at least one, and no part.
// The bytes of a push leave with its last message.
func (l *lane[M]) take(batch []M, most int, whole bool) (_ []M, taken, bytes int) {
	start := l.from
	for l.first < len(l.pushes) && (most <= 0 || taken < most) {
		p := &l.pushes[l.first]
		n, size := p.messages, p.bytes
		if most > 0 && taken+n > most {
			if whole && taken > 0 {
				break
			}
			if !whole {
				n, size = most-taken, 0
			}
		}
		taken, bytes = taken+n, bytes+size
		if p.messages, p.bytes = p.messages-n, p.bytes-size; p.messages == 0 {
			l.first++
		}
	}
	l.from += taken
	l.bytes -= bytes
	batch = append(batch, l.messages[start:l.from]...)
	l.shrink(start)
	return batch, taken, bytes
}

// shrink wipes what was taken and, when that is most of it, moves the rest to
// the front. Memory that a burst left behind is let go with an empty lane.
func (l *lane[M]) shrink(start int) {
	clear(l.messages[start:l.from])
	if l.len() == 0 {
		if cap(l.messages) > retainCap && l.from < cap(l.messages)/8 {
			*l = lane[M]{owner: l.owner}
			return
		}
		l.messages, l.pushes, l.from, l.first = l.messages[:0], l.pushes[:0], 0, 0
		return
	}
	if l.from < len(l.messages)/2 {
		return
	}
	n := copy(l.messages, l.messages[l.from:])
	clear(l.messages[n:])
	l.messages, l.from = l.messages[:n], 0
	l.pushes = l.pushes[:copy(l.pushes, l.pushes[l.first:])]
	l.first = 0
}
