package httpapi

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"slices"

	"codeq/internal/auth"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

func (a *api) subscriptionResources() []resource {
	path := base + "/workers/subscriptions"
	return []resource{
		{path, []verb{
			{method: http.MethodGet, scope: auth.ScopeSubscribe, handle: a.getSubscriptions},
			{method: http.MethodPost, scope: auth.ScopeSubscribe, handle: parsed(wire.ParseSubscribeRequest, a.postSubscription)},
		}},
		{path + "/{subscription}", []verb{{method: http.MethodDelete, scope: auth.ScopeSubscribe, handle: a.deleteSubscription}}},
		{path + "/{subscription}/heartbeat", []verb{{method: http.MethodPost, scope: auth.ScopeSubscribe, handle: parsed(wire.ParseRenewal, a.renewSubscription)}}},
	}
}

// postSubscription makes a subscription for commands of the credential.
func (a *api) postSubscription(c *call, s *wire.Subscription) answer {
	if len(s.EventTypes) == 0 || slices.Contains(s.EventTypes, wire.AllCommands) {
		if s.EventTypes = c.who.Commands; s.EventTypes == nil {
			s.EventTypes = []string{wire.AllCommands}
		}
	}
	if len(s.EventTypes) == 0 {
		return refuse(c.who.CheckCommand(wire.AllCommands))
	}
	for _, command := range s.EventTypes {
		if refusal := c.who.CheckCommand(command); refusal != nil {
			return refuse(refusal)
		}
	}
	s.TTLSeconds = cmp.Or(s.TTLSeconds, wire.DefaultSubscriptionSeconds)
	var chance [10]byte
	_, _ = rand.Read(chance[:]) // documented never to fail
	key := record.NamedKey{Tenant: c.who.Tenant, Kind: record.KindSubscription, Name: wire.NewTaskID(a.o.NowMs(), chance).String()}
	return a.keepSubscription(&record.Named{NamedKey: key}, s)
}

// keepSubscription has the subscription stay from now on for its time.
func (a *api) keepSubscription(had *record.Named, s *wire.Subscription) answer {
	s.ExpiresAtMs = a.o.NowMs() + int64(s.TTLSeconds)*1000
	_, refusal := a.name(shard.NameChange{
		Key: had.NamedKey, Value: string(wire.AppendSubscription(nil, s)), IfVersion: had.Version, Most: wire.MaxSubscriptions,
	})
	if refusal != nil {
		return refuse(refusal)
	}
	body := wire.AppendQuoted([]byte(`{"subscriptionId":`), had.Name)
	return okay(append(wire.AppendTimeMs(append(body, `,"expiresAt":`...), s.ExpiresAtMs), '}'))
}

// subscriptionOf is the subscription that the path names. It refuses if there is none that has not
// expired, or one for commands that the credential may not use.
func (a *api) subscriptionOf(c *call) (record.Named, wire.Subscription, *wire.Error) {
	key := record.NamedKey{Tenant: c.who.Tenant, Kind: record.KindSubscription, Name: c.r.PathValue("subscription")}
	n := a.o.Engine.Named(key.Tenant, key.Kind).Get(key)
	s := n.Subscription()
	if s.ExpiresAtMs <= a.o.NowMs() {
		return n, s, wire.Refuse(wire.CodeNotFound, "the tenant has no subscription of this id, or it has expired; POST "+base+"/workers/subscriptions makes one")
	}
	return n, s, c.checkOutcomes(s.EventTypes)
}

// renewSubscription has a subscription stay for its time again, or for another one.
func (a *api) renewSubscription(c *call, ttlSeconds int) answer {
	for {
		n, s, refusal := a.subscriptionOf(c)
		if refusal != nil {
			return refuse(refusal)
		}
		s.TTLSeconds = cmp.Or(ttlSeconds, s.TTLSeconds)
		ans := a.keepSubscription(&n, &s)
		if ans.refusal == nil || ans.refusal.Code != wire.CodeVersionConflict {
			return ans
		}
	}
}

func (a *api) figuresOfSubscription(n *record.Named) wire.SubscriptionFigures {
	return wire.SubscriptionFigures{ID: n.Name, Subscription: n.Subscription(), Failures: a.o.Notifier.Failures(n.NamedKey)}
}

// getSubscriptions lists the subscriptions of the tenant that have not expired.
func (a *api) getSubscriptions(c *call) answer {
	list := slices.DeleteFunc(slices.Clone(a.o.Engine.Named(c.who.Tenant, record.KindSubscription)), func(n record.Named) bool {
		return n.Subscription().ExpiresAtMs <= a.o.NowMs()
	})
	body := appendList([]byte(`{"subscriptions":[`), len(list), func(dst []byte, i int) []byte {
		f := a.figuresOfSubscription(&list[i])
		return wire.AppendSubscriptionFigures(dst, &f)
	})
	return okay(append(body, "]}"...))
}

// deleteSubscription answers with what the subscription was.
func (a *api) deleteSubscription(c *call) answer {
	n, _, refusal := a.subscriptionOf(c)
	was := a.figuresOfSubscription(&n)
	if refusal == nil {
		_, refusal = a.name(shard.NameChange{Key: n.NamedKey, IfVersion: -1})
	}
	if refusal != nil {
		return refuse(refusal)
	}
	return okay(wire.AppendSubscriptionFigures(nil, &was))
}
