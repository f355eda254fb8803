package mailbox

import "time"

// lane is new work in the order of its pushes. A drain takes whole pushes from
// the front, so what a push was refused or accepted as stays together.
type lane[M any] struct {
	messages []M
	pushes   []push
	// from and first are what has been taken of messages and pushes.
	from  int
	first int
}

// push is one accepted Push.
type push struct {
	messages int
	bytes    int
	at       time.Time
}

func (l *lane[M]) len() int { return len(l.messages) - l.from }

func (l *lane[M]) push(batch []M, bytes int) {
	l.messages = append(l.messages, batch...)
	l.pushes = append(l.pushes, push{messages: len(batch), bytes: bytes, at: time.Now()})
}

func (l *lane[M]) olderThan(at time.Time) bool { return l.len() > 0 && l.oldest().Before(at) }

// oldest is when the first push that waits came; zero if none does.
func (l *lane[M]) oldest() time.Time {
	if l.len() == 0 {
		return time.Time{}
	}
	return l.pushes[l.first].at
}

// take appends whole pushes from the front to batch until most messages are
// taken, all for 0, and says how many and how large they were.
func (l *lane[M]) take(batch []M, most int) (_ []M, taken, bytes int) {
	start := l.from
	for l.first < len(l.pushes) {
		p := l.pushes[l.first]
		if most > 0 && taken > 0 && taken+p.messages > most {
			break
		}
		taken += p.messages
		bytes += p.bytes
		l.first++
	}
	l.from += taken
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
			*l = lane[M]{}
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
