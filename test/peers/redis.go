package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// startRedis has every write on disk before its answer.
func startRedis(dir string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	return launch(port, nil, "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", dir,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--logfile", filepath.Join(dir, "log"))
}

func (q *queue) findRedis(*settings) error {
	q.version = versionOf("redis-server", "--version")
	return need("redis-server", "it comes with Debian's package redis-server")
}

// streams is a stream of Redis and a group of consumers: no retries, priorities, delays or
// results.
func streams() *queue {
	q := &queue{name: "Redis Streams"}
	q.find = q.findRedis
	as := func(batch int) func(string) (link, error) {
		return func(addr string) (link, error) { return dialStreams(addr, batch) }
	}
	q.ways = []way{
		{name: "appendfsync always", synced: "yes", start: startRedis, dial: as(1), batch: 1, inFlight: 1},
		{name: "appendfsync always, 64 in a pipeline", pipelined: true, synced: "yes", start: startRedis, dial: as(64), batch: 64, inFlight: 1},
	}
	return q
}

const stream, group = "tasks", "workers"

type streamsLink struct {
	client *redis.Client
	batch  int
}

func dialStreams(addr string, batch int) (link, error) {
	c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: producers + workers, MaxRetries: -1})
	if err := c.XGroupCreateMkStream(context.Background(), stream, group, "0").Err(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &streamsLink{c, batch}, nil
}

func (l *streamsLink) close() error { return l.client.Close() }

func (l *streamsLink) producer() (producer, error) { return l, nil }

func (l *streamsLink) post(payloads [][]byte) (func() error, error) {
	ctx := context.Background()
	pipe := l.client.Pipeline()
	for _, p := range payloads {
		pipe.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []any{"p", p}})
	}
	_, err := pipe.Exec(ctx)
	return nothingToWaitFor, err
}

func (l *streamsLink) work(ctx context.Context, to *ledger) error {
	return inParallel(workers/l.batch+4, func() error {
		for ctx.Err() == nil {
			read, err := l.client.XReadGroup(ctx, &redis.XReadGroupArgs{
				Group: group, Consumer: "w", Streams: []string{stream, ">"}, Count: int64(l.batch), Block: time.Second,
			}).Result()
			if errors.Is(err, redis.Nil) {
				continue
			}
			if err != nil {
				return err
			}
			if err := l.complete(context.WithoutCancel(ctx), read[0].Messages, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// complete acks tasks and deletes them, as a queue does.
func (l *streamsLink) complete(ctx context.Context, tasks []redis.XMessage, to *ledger) error {
	ids := make([]string, len(tasks))
	for i, m := range tasks {
		ids[i] = m.ID
		if err := to.deliver([]byte(m.Values["p"].(string))); err != nil {
			return err
		}
	}
	pipe := l.client.Pipeline()
	pipe.XAck(ctx, stream, group, ids...)
	pipe.XDel(ctx, stream, ids...)
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	to.complete(len(tasks))
	return nil
}

// inParallel ends when all have ended, with one of their errors.
func inParallel(count int, do func() error) error {
	failures := make(chan error, count)
	var all sync.WaitGroup
	for range count {
		all.Go(func() { failures <- do() })
	}
	all.Wait()
	close(failures)
	var err error
	for e := range failures {
		err = errors.Join(err, e)
	}
	return err
}

// asynqQueue is a task queue on Redis. Its client posts one task at a time; the answer to
// a completion is seen by its own goroutines alone, so a task counts as completed when its
// handler returns.
func asynqQueue() *queue {
	q := &queue{name: "asynq 0.26.0 on Redis"}
	q.find = q.findRedis
	q.ways = []way{{
		name: "appendfsync always, 4 servers of 32", synced: "yes", start: startRedis, dial: dialAsynq, batch: 1, inFlight: 1,
	}}
	return q
}

type asynqLink struct {
	redis  asynq.RedisClientOpt
	client *asynq.Client
}

func dialAsynq(addr string) (link, error) {
	l := &asynqLink{redis: asynq.RedisClientOpt{Addr: addr, PoolSize: 2 * producers}}
	l.client = asynq.NewClient(l.redis)
	if err := l.client.Ping(); err != nil {
		return nil, errors.Join(err, l.client.Close())
	}
	return l, nil
}

func (l *asynqLink) close() error { return l.client.Close() }

func (l *asynqLink) producer() (producer, error) { return l, nil }

func (l *asynqLink) post(payloads [][]byte) (func() error, error) {
	_, err := l.client.Enqueue(asynq.NewTask("task", payloads[0]))
	return nothingToWaitFor, err
}

func (l *asynqLink) work(ctx context.Context, to *ledger) error {
	const servers = 4
	handler := asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		if err := to.deliver(t.Payload()); err != nil {
			return err
		}
		to.complete(1)
		return nil
	})
	var all []*asynq.Server
	for range servers {
		s := asynq.NewServer(l.redis, asynq.Config{
			Concurrency: workers / servers, TaskCheckInterval: 10 * time.Millisecond, LogLevel: asynq.FatalLevel,
		})
		if err := s.Start(handler); err != nil {
			return err
		}
		all = append(all, s)
	}
	<-ctx.Done()
	for _, s := range all {
		s.Shutdown()
	}
	return nil
}
