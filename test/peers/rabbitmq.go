package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	amqp "github.com/rabbitmq/amqp091-go"
)

// rabbitScript is where Debian has the server itself; the script on PATH changes the user.
const rabbitScript = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// rabbit is RabbitMQ with a quorum queue, on one node. A client is not told that its ack
// is on disk: what is completed is what was acked.
func rabbit() *queue {
	q := &queue{name: "RabbitMQ"}
	q.find = func(*settings) error {
		if err := need(rabbitScript, "it comes with Debian's package rabbitmq-server"); err != nil {
			return err
		}
		out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server").Output()
		q.version = string(out)
		return err
	}
	dial := func(prefetch, consumers int) func(string) (link, error) {
		return func(addr string) (link, error) { return dialRabbit(addr, prefetch, consumers) }
	}
	q.ways = []way{
		{name: "quorum queue, confirms, prefetch 1", synced: "yes", start: startRabbit, dial: dial(1, workers), batch: 1, inFlight: 1},
		{name: "quorum queue, confirms, prefetch 256", pipelined: true, synced: "yes", start: startRabbit, dial: dial(256, 16), batch: 1, inFlight: 64},
	}
	return q
}

func startRabbit(dir string) (*server, error) {
	var ports [3]string
	for i := range ports {
		var err error
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	plugins := filepath.Join(dir, "plugins")
	if err := os.WriteFile(plugins, []byte("[].\n"), 0o644); err != nil {
		return nil, err
	}
	mapper := "ERL_EPMD_PORT=" + ports[2]
	s, err := launch(ports[0], []string{
		"HOME=" + dir, "RABBITMQ_NODENAME=peers@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_NODE_PORT=" + ports[0],
		"RABBITMQ_DIST_PORT=" + ports[1], "RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "data"), "RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + plugins, "RABBITMQ_CONF_ENV_FILE=" + filepath.Join(dir, "none"), mapper, "ERL_EPMD_ADDRESS=127.0.0.1",
	}, rabbitScript)
	if err != nil {
		return nil, err
	}
	// The server starts a daemon that knows the ports of nodes, outside of its group.
	s.after = func() error {
		end := exec.Command("epmd", "-kill")
		end.Env = append(os.Environ(), mapper)
		return end.Run()
	}
	return s, nil
}

type rabbitLink struct {
	posts, deliveries   *amqp.Connection
	prefetch, consumers int
}

const rabbitQueue = "tasks"

func dialRabbit(addr string, prefetch, consumers int) (link, error) {
	l := &rabbitLink{prefetch: prefetch, consumers: consumers}
	var err error
	if l.posts, err = amqp.Dial("amqp://guest:guest@" + addr); err != nil {
		return nil, err
	}
	if l.deliveries, err = amqp.Dial("amqp://guest:guest@" + addr); err != nil {
		return nil, errors.Join(err, l.posts.Close())
	}
	c, err := l.posts.Channel()
	if err == nil {
		_, err = c.QueueDeclare(rabbitQueue, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum})
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, c.Close()
}

func (l *rabbitLink) close() error { return errors.Join(l.posts.Close(), l.deliveries.Close()) }

type rabbitProducer struct{ channel *amqp.Channel }

func (l *rabbitLink) producer() (producer, error) {
	c, err := l.posts.Channel()
	if err != nil {
		return nil, err
	}
	return rabbitProducer{c}, c.Confirm(false)
}

func (p rabbitProducer) post(payloads [][]byte) (func() error, error) {
	confirmation, err := p.channel.PublishWithDeferredConfirm("", rabbitQueue, false, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Body: payloads[0]})
	return func() error {
		if !confirmation.Wait() {
			return errors.New("refused")
		}
		return nil
	}, err
}

func (l *rabbitLink) work(ctx context.Context, to *ledger) error {
	return inParallel(l.consumers, func() error {
		c, err := l.deliveries.Channel()
		if err != nil {
			return err
		}
		if err := c.Qos(l.prefetch, 0, false); err != nil {
			return err
		}
		tasks, err := c.ConsumeWithContext(ctx, rabbitQueue, "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		for d := range tasks {
			if err := to.deliver(d.Body); err != nil {
				return err
			}
			if err := d.Ack(false); err != nil {
				return err
			}
			to.complete(1)
		}
		return ctx.Err()
	})
}
