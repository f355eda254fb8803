package record

import (
	"cmp"
	"slices"
	"strings"

	"codeq/wire"
)

// NamedKey names one record of a tenant: Kind says what it is, Name which one.
type NamedKey struct {
	Tenant string
	Kind   Kind
	Name   string
}

// Compare orders records by tenant, kind and name.
func (k NamedKey) Compare(o NamedKey) int {
	return cmp.Or(strings.Compare(k.Tenant, o.Tenant), strings.Compare(string(k.Kind), string(o.Kind)), strings.Compare(k.Name, o.Name))
}

// Kind is what a named record is. A new kind is a constant here and a parser of its
// values; it changes records with a shardactor.Naming, reads them from Engine.Named, and
// a shard that needs them finds its copy in tenant.named. Nothing else is to do: home,
// copies, restarts and backups are the same for all kinds.
type Kind string

// The kinds: KindLimits are the limits of a tenant, see wire.TenantLimits. KindWebhook is an
// endpoint that gets outcomes of its tasks, see wire.Endpoint, KindSubscription a URL that is
// told of work without a worker, see wire.Subscription.
const (
	KindLimits       Kind = "limits"
	KindWebhook      Kind = "webhook"
	KindSubscription Kind = "subscription"
)

// Named is a named record of a tenant. Every shard has a copy; the home of the tenant,
// wire.ShardOfTenant, has the true one.
type Named struct {
	NamedKey
	// Version is another one, and a higher one, after each change, also if the record
	// was deleted between. 0 means that there is no record.
	Version int64
	// Value is what the kind makes of it; empty for no record.
	Value string

	// Newer has the fields that a newer program has added.
	Newer string
}

// Limits are those of a record of KindLimits. A record without a value, or with one that cannot
// be read, limits nothing.
func (n *Named) Limits() wire.TenantLimits {
	if l, err := wire.ParseTenantLimits([]byte(n.Value)); err == nil {
		return *l
	}
	return wire.TenantLimits{}
}

// Endpoint is that of a record of KindWebhook; ok is false for a record without a value, or
// with one that cannot be read.
func (n *Named) Endpoint() (e wire.Endpoint, ok bool) {
	read, err := wire.ParseEndpoint([]byte(n.Value))
	if err != nil {
		return e, false
	}
	return *read, true
}

// Subscription is that of a record of KindSubscription. One without a value, or with one that cannot
// be read, has expired.
func (n *Named) Subscription() wire.Subscription {
	if s, err := wire.ParseSubscription([]byte(n.Value)); err == nil {
		return *s
	}
	return wire.Subscription{}
}

func (n *Named) fields(f *form) {
	number(f, 1, "version", &n.Version)
	f.str(2, "value", &n.Value)
}

// AppendNamed adds the value of a named record, which has a version and a value.
func AppendNamed(dst []byte, n *Named) []byte {
	f := form{out: dst}
	n.fields(&f)
	return append(f.out, n.Newer...)
}

// ParseNamed reads what AppendNamed wrote under the key.
func ParseNamed(key NamedKey, data []byte) (n Named, err error) {
	f := read(string(data))
	n.NamedKey = key
	n.fields(&f)
	if n.Newer, err = f.end(); err == nil && (n.Version < 1 || n.Value == "") {
		err = ErrDamaged
	}
	return n, err
}

// NamedList are records in the order of their keys. With returns a new list, so one
// that somebody reads never changes.
type NamedList []Named

// With is the list with the record, or without it if that has no value.
func (l NamedList) With(n Named) NamedList {
	at, is := slices.BinarySearchFunc(l, n.NamedKey, func(n Named, key NamedKey) int { return n.Compare(key) })
	rest := l[at:]
	if is {
		rest = l[at+1:]
	}
	if n.Value == "" {
		return slices.Concat(l[:at], rest)
	}
	return slices.Concat(l[:at], NamedList{n}, rest)
}

// Get is the record with the key; one without a version if there is none.
func (l NamedList) Get(key NamedKey) Named {
	at, is := slices.BinarySearchFunc(l, key, func(n Named, key NamedKey) int { return n.Compare(key) })
	if !is {
		return Named{NamedKey: key}
	}
	return l[at]
}

// Of are the records of one kind of a tenant.
func (l NamedList) Of(tenant string, kind Kind) NamedList {
	isOf := func(n Named) bool { return n.Tenant == tenant && n.Kind == kind }
	from := slices.IndexFunc(l, isOf)
	if from < 0 {
		return nil
	}
	to := from
	for to < len(l) && isOf(l[to]) {
		to++
	}
	return l[from:to]
}
