// Made by types.mjs from docs/asyncapi.yaml and docs/openapi.yaml. Do not change it by hand.

/** The nodes of a cluster as its leader sees them. */
export type ClusterStatus = {
  /** The id of the node that leads and answers. */
  leader: string;
  /** It grows with each election. */
  term: number;
  voters: number;
  /** How many of the voters answer. */
  reachable: number;
  /** How many of those may be lost before the cluster stops. */
  mayLose: number;
  nodes: ClusterNode[];
};

/** A node of a cluster. What it says of itself is absent if it does not answer. */
export type ClusterNode = {
  node: string;
  /** Where other nodes reach it. */
  address: string;
  /** Where clients reach it. */
  url?: string;
  voter: boolean;
  reachable: boolean;
  role?: "leader" | "follower" | "candidate";
  version?: string;
  /** The last entry of the log that its database has. */
  applied?: number;
  /** How many entries the leader has more. */
  behind?: number;
  /** The time since it heard of the leader. */
  lastContactMs?: number;
  /** How far its clock is ahead of that of the leader, negative if it is behind; absent if they differ by less than a second. */
  clockAheadMs?: number;
  /** The space on its disk; absent if its system does not tell it. */
  freeBytes?: number;
  snapshotAt?: Time;
};

export type Id = string;

export type Time = string;

/** Not dots alone. */
export type Command = string;

export type NewTask = {
  command: Command;
  /** Any JSON value of at most 1048576 bytes; it comes out byte for byte. */
  payload: unknown;
  /** Higher goes first. */
  priority?: number | null;
  /** The number of executions that may fail. */
  maxAttempts?: number | null;
  /** At most 512 bytes. The same key again, for the same command and tenant, finds the first task. */
  idempotencyKey?: string | null;
  /** The task is ready so long after the post. Not together with runAt. */
  delaySeconds?: number | null;
  /** The task is ready at this time. Not together with delaySeconds. */
  runAt?: string | null;
  /** The longest time that one delivery may run, despite heartbeats. */
  timeoutSeconds?: number | null;
  /** The task expires so long after the post. Not together with expiresAt. */
  ttlSeconds?: number | null;
  /** The task expires at this time. Not together with ttlSeconds. */
  expiresAt?: string | null;
  /** The traceparent of W3C Trace Context. Without it the header of the request holds. */
  traceParent?: string | null;
  /** The tracestate of W3C Trace Context. */
  traceState?: string | null;
  /** The limits perKey of the queue hold for all its tasks with the same key. At most 128 bytes. */
  concurrencyKey?: string | null;
  /** Labels by which the task is found. A name and its value have at most 64 bytes together. */
  labels?: Record<string, string> | null;
  /** An http or https URL to which the outcome is posted, without a user name and a password. */
  webhook?: string | null;
};

export type Task = {
  id: Id;
  command: Command;
  /** The JSON as it was posted, in a string. */
  payload: string;
  priority: number;
  status: Status;
  /** Ready, delayed, with a worker, dead letter, ended otherwise, or ready but for its concurrency key. */
  lastKnownLocation: "PENDING_LIST" | "DELAYED_ZSET" | "INPROG_SET" | "DLQ_SET" | "NONE" | "LIMITED";
  dlqCause?: DeadCause;
  /** Deliveries that failed. */
  attempts: number;
  maxAttempts: number;
  /** All deliveries so far. */
  deliveries: number;
  /** The URL that gets the outcome. */
  webhook?: string;
  workerId?: string;
  leaseUntil?: Time;
  /** Only in the answer of a claim. */
  leaseToken?: LeaseToken;
  /** The time at which the run of that worker ends despite heartbeats. */
  runUntil?: Time;
  /** When a delayed task becomes ready. */
  visibleAt?: Time;
  /** How long one delivery may run, as posted. */
  timeoutSeconds?: number;
  /** From this time on it is not delivered. */
  expiresAt?: Time;
  cancelCause?: CancelCause;
  error?: string;
  /** How far its worker says the work is. */
  progress?: {
    percent?: number;
    note?: string;
    /** Any JSON value. */
    data?: unknown;
    at: Time;
    delivery: number;
  };
  /** A worker has sent output. */
  printed?: boolean;
  /** Why no worker has it. Only GET /tasks/{id} has it. */
  waiting?: {
    reason: "delayed" | "suspect" | "paused" | "storage_full" | "limit" | "no_worker" | "target" | "behind" | "no_room";
    /** The setting of the queue that holds it back; only with the reason limit. */
    limit?: "maxInProgress" | "startsPerSecond" | "perKey.inProgress" | "perKey.startsPerSecond";
    /** The concurrency key whose limit it is. */
    key?: string;
    /** How many tasks of the queue or of the key are in progress, for maxInProgress and perKey.inProgress. */
    used?: number;
    /** The limit. */
    of?: number;
    /** The number of ready tasks that are granted before it, if that is known. */
    behind?: number;
    until?: Time;
    /** Why the target of the queue gets no task; only with the reason target. */
    problem?: string;
  };
  /** The last 10 of the deliveries that did not succeed and of what people did to the task. The latter have no delivery and no from. */
  history?: {
    delivery?: number;
    workerId?: string;
    from?: Time;
    to: Time;
    cause: string;
    /** The subject of the token with which a person did it. */
    by?: string;
    /** The close code of the connection over which it did not arrive, if that is known. */
    closeCode?: number;
    /** The first 1,024 bytes of the worker's error. */
    error?: string;
    /** The exit code of the program that did the work. */
    exitCode?: number;
    /** The signal that ended the program. */
    signal?: string;
    /** The task that posts the outcome to the webhook, where the cause is callback. */
    callback?: Id;
  }[];
  tenantId: string;
  traceParent?: string;
  traceState?: string;
  labels?: Record<string, string>;
  concurrencyKey?: string;
  createdAt: Time;
  updatedAt: Time;
};

export type Status = "PENDING" | "IN_PROGRESS" | "COMPLETED" | "FAILED" | "CANCELLED";

/** Names one delivery of a task. A request without it acts only on deliveries that the same subject claimed over HTTP. */
export type LeaseToken = string | null;

export type Claim = {
  /** The queues. Without it, all that the token allows. */
  commands?: string[] | null;
  leaseSeconds?: number | null;
  /** How long to wait if no task is ready. */
  waitSeconds?: number | null;
  /** A name for the worker. Without it, the subject. */
  workerId?: string | null;
};

export type BatchClaim = {
  /** The queues. Without it, all that the token allows. */
  commands?: string[] | null;
  leaseSeconds?: number | null;
  /** How long to wait if no task is ready. */
  waitSeconds?: number | null;
  /** A name for the worker. Without it, the subject. */
  workerId?: string | null;
  /** The most tasks. */
  count?: number | null;
};

export type NewArtifacts = ({
  /** Alone, that of a file that the delivery has uploaded. */
  name: string;
  /** Of a link. */
  url?: string | null;
  /** A small file; not together with url. */
  contentBase64?: string | null;
  /** The media type of the file; of a link nobody reads it. */
  contentType?: unknown;
})[] | null;

export type ResultRecord = {
  taskId: Id;
  status: "COMPLETED" | "FAILED" | "CANCELLED";
  /** The worker's object, byte for byte. */
  result?: Record<string, unknown>;
  error?: string;
  cancelCause?: CancelCause;
  artifacts?: Artifact[];
  completedAt: Time;
};

export type Artifact = {
  name: string;
  url: string;
  /** What the worker says of a file that the server keeps. */
  contentType?: string;
  sizeBytes?: number;
  /** In hexadecimal digits. */
  sha256?: string;
  /** Names the file among those of its task; absent for a link. */
  file?: string;
};

/** expired if the task expired; absent if a client cancelled it. */
export type CancelCause = "expired";

/** Why a task is a dead letter. */
export type DeadCause = "exhausted" | "released_too_often" | "failed";

export type Queue = {
  command: Command;
  tenantId: string;
  ready: number;
  /** Tasks that would be ready, did their concurrency key not hold them back; absent without one. */
  limited?: number;
  delayed: number;
  inProgress: number;
  /** Dead letters. */
  dlq: number;
  /** The number of dead letters for each cause above 0. */
  dlqCauses?: {
    exhausted?: number;
    released_too_often?: number;
    failed?: number;
  };
  paused: boolean;
  /** true while the queue is being deleted. */
  deleting?: boolean;
  /** true if the queue has neither a task nor settings. */
  unknown?: boolean;
  /** Tasks without an idempotency key lie on all shards, and the queue has an order on each instead of one. Taken back only while no shard but the home of the queue holds a task of it. */
  spread?: boolean | null;
  maxAttempts?: number | null;
  leaseSeconds?: number | null;
  /** The longest time that one delivery may run, despite heartbeats. */
  timeoutSeconds?: number | null;
  /** A task without an expiry expires so long after its post. */
  ttlSeconds?: number | null;
  backoff?: Backoff;
  /** How long ended tasks stay. */
  retentionSeconds?: number | null;
  /** How long dead letters stay. */
  dlqRetentionSeconds?: number | null;
  /** Most tasks that workers may have at once, over all shards. Without it there is no limit. */
  maxInProgress?: number | null;
  /** Most deliveries that begin in any second, over all shards. Without it there is no limit. */
  startsPerSecond?: number | null;
  perKey?: PerKey;
  target?: Target;
  oldestReadyAt?: Time;
  /** What holds: the settings of the queue, and the server's defaults for the rest. A retention that is missing has no end. Not in lists of queues. */
  effective?: QueueSettings;
};

export type QueueSettings = {
  /** Tasks without an idempotency key lie on all shards, and the queue has an order on each instead of one. Taken back only while no shard but the home of the queue holds a task of it. */
  spread?: boolean | null;
  maxAttempts?: number | null;
  leaseSeconds?: number | null;
  /** The longest time that one delivery may run, despite heartbeats. */
  timeoutSeconds?: number | null;
  /** A task without an expiry expires so long after its post. */
  ttlSeconds?: number | null;
  backoff?: NewBackoff;
  /** How long ended tasks stay. */
  retentionSeconds?: number | null;
  /** How long dead letters stay. */
  dlqRetentionSeconds?: number | null;
  /** Most tasks that workers may have at once, over all shards. Without it there is no limit. */
  maxInProgress?: number | null;
  /** Most deliveries that begin in any second, over all shards. Without it there is no limit. */
  startsPerSecond?: number | null;
  perKey?: NewPerKey;
  target?: Target;
};

/** Where the server posts the tasks of the queue. */
export type Target = {
  /** An http or https URL without a user name and a password. */
  url: string;
  /** How many tasks the target has at once. */
  window?: number | null;
} | null;

/** Limits of each concurrency key; in a spread queue they hold on each shard. */
export type PerKey = {
  /** Most tasks of one key that workers may have at once. Without it there is no limit. */
  inProgress?: number | null;
  /** Most deliveries of one key that begin in any second. Without it there is no limit. */
  startsPerSecond?: number | null;
} | null;

/** Limits of each concurrency key; in a spread queue they hold on each shard. */
export type NewPerKey = {
  /** Most tasks of one key that workers may have at once. Without it there is no limit. */
  inProgress?: number | null;
  /** Most deliveries of one key that begin in any second. Without it there is no limit. */
  startsPerSecond?: number | null;
} | null;

/** The pause before a retry. */
export type Backoff = {
  policy?: "fixed" | "linear" | "exponential" | "exp_equal_jitter" | "exp_full_jitter" | null;
  baseSeconds?: number | null;
  maxSeconds?: number | null;
} | null;

/** The pause before a retry. */
export type NewBackoff = {
  policy?: "fixed" | "linear" | "exponential" | "exp_equal_jitter" | "exp_full_jitter" | null;
  baseSeconds?: number | null;
  maxSeconds?: number | null;
} | null;

export type WebhookChange = {
  /** The http or https URL that gets the outcomes. */
  url: string;
  /** Commands and prefixes such as build.*; the webhook gets only their outcomes. Absent for all. */
  commands?: string[];
  /** The webhook gets only outcomes with these statuses. Absent for all. */
  statuses?: ("COMPLETED" | "FAILED" | "CANCELLED")[];
  /** A disabled webhook gets nothing; what it would get waits. */
  state?: "enabled" | "disabled";
  /** Signs what is posted, whsec_ and base64 of 24 to 64 bytes. Without it the webhook keeps its own, and a new one gets one. */
  secret?: string;
  /** That of the webhook which the request means to change; absent for any. */
  version?: number;
};

export type Subscribed = {
  subscriptionId: string;
  expiresAt: Time;
};

export type Subscription = {
  subscriptionId: string;
  callbackUrl: string;
  eventTypes: string[];
  deliveryMode?: "fanout" | "group" | "hash";
  groupId?: string;
  minIntervalSeconds?: number;
  ttlSeconds: number;
  expiresAt: Time;
  /** Calls in a row that failed, since the start of the server. */
  failures?: number;
};

export type Webhook = {
  name: string;
  /** The http or https URL that gets the outcomes. */
  url: string;
  /** Commands and prefixes such as build.*; the webhook gets only their outcomes. Absent for all. */
  commands?: string[];
  /** The webhook gets only outcomes with these statuses. Absent for all. */
  statuses?: ("COMPLETED" | "FAILED" | "CANCELLED")[];
  /** A disabled webhook gets nothing; what it would get waits. */
  state: "enabled" | "disabled";
  /** Why the server disabled the webhook. */
  reason?: string;
  /** Only in the answer to the request that gave the webhook this secret. */
  secret?: string;
  /** Until when the secret before signs as well. */
  oldSecretUntil?: string;
  /** Rises with each change. */
  version?: number;
  /** Calls in a row that failed in a way that makes the webhook sick; 5 do. */
  failures?: number;
  /** Since when no call has succeeded; after 24 hours the webhook is disabled. */
  failingSince?: string;
};

export type WebhookTest = {
  /** HTTP status of the answer, 0 without an answer. */
  status: number;
  /** Why there is no answer. */
  problem?: string;
  /** How long it took. */
  ms: number;
};

export type Limits = {
  /** New tasks in a second, on the long run. */
  enqueuesPerSecond?: number;
  /** New tasks at once after a pause. */
  burst?: number;
  /** Tasks that are asked for over HTTP in a second. */
  claimsPerSecond?: number;
  /** Open sessions. */
  sessions?: number;
  /** Tasks that wait. */
  pendingTasks?: number;
  /** Bytes of the payloads of tasks that wait. */
  pendingBytes?: number;
  /** Bytes of the files of tasks. */
  artifactBytes?: number;
  /** Turns that the tenant has when each other tenant has one. */
  weight?: number;
  /** Limits of each subject of the tenant. */
  perCredential?: {
    /** New tasks in a second, on the long run. */
    enqueuesPerSecond?: number;
    /** New tasks at once after a pause. */
    burst?: number;
    /** Tasks that are asked for over HTTP in a second. */
    claimsPerSecond?: number;
    /** Open sessions. */
    sessions?: number;
  };
  /** That of the limits which the request means to change; absent for any. */
  version?: number;
};

export type LimitsFigures = {
  tenantId: string;
  /** New tasks in a second, on the long run. */
  enqueuesPerSecond?: number;
  /** New tasks at once after a pause. */
  burst?: number;
  /** Tasks that are asked for over HTTP in a second. */
  claimsPerSecond?: number;
  /** Open sessions. */
  sessions?: number;
  /** Tasks that wait. */
  pendingTasks?: number;
  /** Bytes of the payloads of tasks that wait. */
  pendingBytes?: number;
  /** Bytes of the files of tasks. */
  artifactBytes?: number;
  /** Turns that the tenant has when each other tenant has one. */
  weight?: number;
  /** Limits of each subject of the tenant. */
  perCredential?: {
    /** New tasks in a second, on the long run. */
    enqueuesPerSecond?: number;
    /** New tasks at once after a pause. */
    burst?: number;
    /** Tasks that are asked for over HTTP in a second. */
    claimsPerSecond?: number;
    /** Open sessions. */
    sessions?: number;
  };
  /** Rises with each change; absent without limits. */
  version?: number;
  /** What is used of four limits. */
  used?: {
    pendingTasks?: number;
    pendingBytes?: number;
    artifactBytes?: number;
    sessions?: number;
  };
  /** What each limit has refused since the start of the server. */
  refused?: {
    enqueuesPerSecond?: number;
    claimsPerSecond?: number;
    pendingTasks?: number;
    pendingBytes?: number;
    artifactBytes?: number;
    sessions?: number;
  };
};

export type Session = {
  sessionId: Id;
  workerId?: string;
  subject: string;
  commands: string[];
  /** The number of unfinished tasks that it can hold. */
  window: number;
  /** The number of tasks that it has. */
  held: number;
  state: "live" | "draining" | "grace";
  connectedAt: Time;
  lastSeenAt: Time;
  /** In state grace, until when the client can resume it. */
  graceUntil?: Time;
  /** The time from the last ping to its pong, rounded up; absent until then. */
  roundTripMs?: number;
  /** The tasks that it ended COMPLETED since it connected; absent if none. */
  completed?: number;
  /** The tasks that it ended FAILED or gave back by nack since it connected; absent if none. */
  failed?: number;
};

export type Error = {
  /** A sentence for people. */
  error: string;
  /** For programs. New codes may be added. */
  code: string;
  /** The same request may succeed later. */
  retryable: boolean;
  /** The first task, with idempotency_conflict. */
  taskId?: Id;
  /** The status of the task, with result_not_found and already_terminal. */
  status?: Status;
  /** The task as it ended, with already_terminal. */
  task?: Task;
  retryAfterSeconds?: number;
};

/** A number of the client, which the answer repeats. */
export type Ref = number;

/** The name that the client gave its subscription. */
export type SubscriptionId = string;

export type TaskId = string;

export type Location = "PENDING_LIST" | "DELAYED_ZSET" | "INPROG_SET" | "DLQ_SET" | "NONE" | "LIMITED";

/** A number for each shard, by the number of the shard. */
export type Positions = Record<string, unknown>;

/** The parameters of GET /admin/tasks. A task that is found has them all. */
export type Search = {
  id?: TaskId;
  /** Labels as name=value. */
  label?: string[];
  /** The name of a queue, or what names begin with and .* behind it. */
  command?: string;
  state?: "ready" | "delayed" | "inProgress" | "dlq" | "done";
  "error~"?: string;
  "payload~"?: string;
  worker?: string;
  /** Such as 90s, 1h30m or 7d. */
  olderThan?: string;
  "attempts>"?: number;
};

/** The slot of a queue and its figures, in the order of docs/reference/events.md. The slot 4294967295 is the total of all queues. */
export type Rows = number[][];

/** Sessions, each as in openapi.yaml. */
export type Sessions = ({
  sessionId: TaskId;
  workerId?: string;
  subject: string;
  commands: string[];
  window: number;
  held: number;
  state: "live" | "draining" | "grace";
  connectedAt: Time;
  lastSeenAt: Time;
  graceUntil?: Time;
  roundTripMs?: number;
  completed?: number;
  failed?: number;
})[];

/** The server at this moment, and what it did in the last second. */
export type Server = {
  version: string;
  durability: string;
  startedAt: Time;
  /** What the server plans with, if somebody set it. */
  memoryBytes?: number;
  /** Open sessions of all tenants. */
  sessions: number;
  /** Clients that watch, of all tenants. */
  subscribers: number;
  /** What the free space allows. */
  diskGuard: "ok" | "no-enqueue" | "no-grant" | "only-delete";
  diskFreeBytes?: number;
  diskReserveBytes?: number;
  /** Batches of shards in the last second. */
  commits: number;
  /** Syncs of the log in the last second; one makes the batches of all shards durable. */
  syncs: number;
  /** The mean length of these syncs in microseconds; 0 without one. */
  syncMicros: number;
  shards?: {
    /** Messages that wait for the shard. */
    messages: number;
    /** Those of them that are new work. */
    newMessages: number;
    /** What these messages keep in memory. */
    bytes: number;
    /** For how long every round has left new work waiting. */
    backlogMs: number;
    /** How many messages the shard took at once last. */
    drained: number;
    /** How long the oldest of these had waited, in microseconds. */
    waitMicros: number;
    /** Messages since the start. */
    accepted: number;
    /** Messages that a full mailbox refused since the start. */
    refused: number;
  }[];
};

/** What a person should look at, the worst first, at most 50. */
export type Needs = ({
  severity: "critical" | "warning" | "notice";
  reason: "no_worker" | "growing" | "slow" | "dead" | "paused" | "set_aside" | "disk";
  /** Only if it is not that of the client. */
  tenant?: string;
  /** Absent if the need is that of the server. */
  command?: string;
  /** The list of tasks that count counts. */
  state?: "ready" | "delayed" | "inProgress" | "dlq" | "done";
  count?: number;
  since?: Time;
  /** A sentence for people. */
  sentence: string;
})[];

/** The first frame; a later one renews the token. */
export type HelloFrame = {
  type: "hello";
  ref?: Ref;
  token?: string;
};

/** Begin a subscription, or replace the one with the same id. */
export type SubscribeFrame = {
  type: "subscribe";
  ref?: Ref;
  id: SubscriptionId;
  kind: "queues" | "task" | "page" | "events" | "workers" | "server";
  /** For queues and events. */
  commands?: string[];
  /** For queues, the least time between two ticks. */
  everyMs?: number;
  /** For queues, how much history comes first. */
  range?: "5m" | "1h" | "24h" | "7d";
  /** For task. */
  taskId?: TaskId;
  /** For page without filter. */
  command?: string;
  /** For page without filter. */
  state?: "ready" | "delayed" | "inProgress" | "dlq" | "done";
  /** For page. */
  limit?: number;
  /** For page, what to search for. */
  filter?: Search;
  /** For page, the cursor of the page before. */
  cursor?: string;
  /** For events. */
  causes?: string[];
  /** For events, the last event of each shard that the client has. */
  from?: Positions;
  /** For events, the database that from is of. */
  creationId?: string;
  /** For events. */
  maxPerSecond?: number;
};

/** End a subscription. */
export type UnsubscribeFrame = {
  type: "unsubscribe";
  ref?: Ref;
  id: SubscriptionId;
};

/** The answer to the first hello. */
export type WelcomeFrame = {
  type: "welcome";
  /** Drawn when the database was made. */
  creationId: string;
  shards: number;
  /** The last event of each shard. */
  positions: Positions;
  /** The oldest event of each shard that the server still has. */
  oldest: Positions;
  serverTime: Time;
  tenantId: string;
  /** Whether the credential may change queues. */
  admin: boolean;
  version: string;
  /** The URL of the node that answers, which leads a cluster; absent without one. */
  leader?: string;
  features: string[];
};

/** The answer to a frame with a ref that succeeded. */
export type OkFrame = {
  type: "ok";
  ref: Ref;
};

/** The answer to a frame that failed. */
export type ErrorFrame = {
  type: "error";
  ref?: Ref;
  id?: SubscriptionId;
  taskId?: TaskId;
  code: string;
  error: string;
  retryable: boolean;
  status?: string;
  retryAfterSeconds?: number;
};

/** Which queue a slot stands for from now on. */
export type NamesFrame = {
  type: "names";
  queues: unknown[][];
};

/** What a subscription shows first. */
export type SnapshotFrame = {
  type: "snapshot";
  id: SubscriptionId;
  /** The last events that the snapshot contains. */
  at?: Positions;
  /** For page, when the list was read, in Unix milliseconds of the server. */
  t?: number;
  /** For page with filter, how many tasks were looked at. */
  scanned?: number;
  /** For page, where the next one begins; absent if there is none. */
  cursor?: string;
  /** The next snapshot of this id continues this one. */
  more?: boolean;
  queues?: Rows;
  task?: Task;
  /** The rows of a page, without payload and history. */
  tasks?: Task[];
  /** For page, how many tasks came before its last row, or at all if it had the whole list; at most its limit. */
  above?: number;
  sessions?: Sessions;
  server?: Server;
  needs?: Needs;
};

/** The history of a queue, or with the slot 4294967295 of all queues. */
export type PointsFrame = {
  type: "points";
  id: SubscriptionId;
  slot: number;
  stepMs: number;
  /** The time in Unix milliseconds, and the figures of a row. */
  points: Rows;
};

/** What changed. */
export type TickFrame = {
  type: "tick";
  id: SubscriptionId;
  /** The time of the server in Unix milliseconds. */
  t: number;
  queues?: Rows;
  /** The rows of a page, without payload and history. */
  tasks?: Task[];
  sessions?: Sessions;
  server?: Server;
  needs?: Needs;
  /** The ids of sessions that are gone, or of tasks that are not in the list of the page any more. */
  left?: string[];
  /** For page, how many tasks came before its last row, or at all if it had the whole list; at most its limit. */
  above?: number;
};

/** One transition of a task. */
export type EventFrame = {
  type: "event";
  id: SubscriptionId;
  shard: number;
  /** Counts the events of the shard without gaps. */
  n: number;
  at: Time;
  task: TaskId;
  /** Only if it is not that of the client. */
  tenant?: string;
  command: string;
  /** Absent for a new task. */
  from?: Location;
  /** Absent for a task that was removed. */
  to?: Location;
  status?: "PENDING" | "IN_PROGRESS" | "COMPLETED" | "FAILED" | "CANCELLED";
  cause: string;
  delivery?: number;
  worker?: string;
  /** How long the task was in from. */
  spentMs: number;
  attempts: number;
};

/** How far the worker of a task says the work is. */
export type ProgressFrame = {
  type: "progress";
  id: SubscriptionId;
  /** Rises with each report of any task, over restarts too. */
  n: number;
  task: TaskId;
  percent?: number;
  note?: string;
  /** Any JSON value. */
  data?: unknown;
  at: Time;
  delivery: number;
};

/** A piece of what the program prints that works on a task. */
export type OutputFrame = {
  type: "output";
  id: SubscriptionId;
  /** Like that of progress. */
  n: number;
  task: TaskId;
  at: Time;
  delivery: number;
  stream: "stdout" | "stderr";
  text: string;
};

/** Events that were not sent, or output that may be gone. */
export type GapFrame = {
  type: "gap";
  id: SubscriptionId;
  shard: number;
  /** The number of the first of them. */
  from: number;
  /** The number of the last of them. */
  to: number;
  reason: "evicted" | "slow" | "sampled" | "restarted";
  /** What is missing if it is no event; then the numbers are 0. */
  of?: "output";
  missed: number;
};

/** Every event up to here was sent. */
export type MarkFrame = {
  type: "mark";
  positions: Positions;
};

/** The server stops. */
export type DrainingFrame = {
  type: "draining";
  reason: string;
  graceSeconds: number;
};

export type ClientFrame = HelloFrame | SubscribeFrame | UnsubscribeFrame;

export type ServerFrame = WelcomeFrame | OkFrame | ErrorFrame | NamesFrame | SnapshotFrame | PointsFrame | TickFrame | EventFrame | ProgressFrame | OutputFrame | GapFrame | MarkFrame | DrainingFrame;

/** What each request is answered with. */
export interface Answers {
  "POST /tasks": Task;
  "POST /tasks/batch": {
    results: ({
      task: Task;
      /** true if an earlier request with the same idempotencyKey made the task. */
      replayed?: boolean;
    } | {
      id: Id;
      /** true if an earlier request with the same idempotencyKey made the task. */
      replayed?: boolean;
    } | Error)[];
  };
  "POST /tasks/claim": Task;
  "POST /tasks/claim/batch": {
    tasks: Task[];
  };
  "POST /tasks/batch/results": {
    results: ({
      taskId: Id;
      result: ResultRecord;
    } | Error)[];
  };
  "POST /tasks/{id}/heartbeat": {
    ok: boolean;
    leaseUntil: Time;
    runUntil?: Time;
  };
  "POST /tasks/{id}/progress": {
    ok: boolean;
  };
  "POST /tasks/{id}/output": {
    ok: boolean;
  };
  "POST /tasks/{id}/nack": {
    status: "requeued" | "dlq" | "expired";
    delaySeconds: number;
  };
  "POST /tasks/{id}/abandon": {
    status: "requeued" | "dlq" | "expired";
  };
  "POST /tasks/{id}/release": {
    status: "requeued" | "dlq" | "expired";
  };
  "GET /tasks/{id}": Task;
  "GET /tasks/{id}/result": {
    task: Task;
    result: ResultRecord;
  };
  "POST /tasks/{id}/result": ResultRecord;
  "GET /tasks/{id}/artifacts": {
    artifacts: Artifact[];
  };
  "GET /tasks/{id}/artifacts/{artifact}": unknown;
  "PUT /tasks/{id}/artifacts/{artifact}": Artifact;
  "POST /tasks/{id}/cancel": Task;
  "GET /admin/queues": {
    queues: Queue[];
  };
  "GET /admin/queues/{command}": Queue;
  "PUT /admin/queues/{command}": Queue;
  "DELETE /admin/queues/{command}": {
    deleted: boolean;
    /** The number of tasks that are left, if the queue is not deleted yet. */
    remaining?: number;
  };
  "POST /admin/queues/{command}/pause": Queue;
  "POST /admin/queues/{command}/resume": Queue;
  "GET /admin/queues/{command}/tasks": {
    tasks: Task[];
    cursor?: string;
  };
  "POST /admin/tasks/{id}/replay": Task;
  "POST /admin/queues/{command}/tasks/cancel": {
    cancelled?: number;
    dryRun?: boolean;
    matched?: number;
    sample?: Task[];
    cursor?: string;
  };
  "POST /admin/queues/{command}/tasks/run": {
    ready?: number;
    dryRun?: boolean;
    matched?: number;
    sample?: Task[];
    cursor?: string;
  };
  "POST /admin/queues/{command}/tasks/move": {
    moved?: number;
    dryRun?: boolean;
    matched?: number;
    sample?: Task[];
    cursor?: string;
  };
  "POST /admin/tasks/{id}/run": Task;
  "POST /admin/tasks/{id}/take-back": Task;
  "POST /admin/tasks/{id}/move": Task;
  "POST /admin/queues/{command}/dlq/replay": {
    replayed?: number;
    dryRun?: boolean;
    matched?: number;
    sample?: Task[];
    remaining?: number;
    /** The number of these with the cause failed; absent if none. */
    remainingFailed?: number;
    cursor?: string;
  };
  "DELETE /admin/queues/{command}/dlq": {
    purged?: number;
    dryRun?: boolean;
    matched?: number;
    sample?: Task[];
    remaining?: number;
    /** The number of these with the cause failed; absent if none. */
    remainingFailed?: number;
    cursor?: string;
  };
  "GET /admin/queues/{command}/dlq/reasons": {
    reasons: {
      error: string;
      example?: string;
      cause: DeadCause;
      count: number;
      newestTaskId: string;
      newestEndedAt: string;
    }[];
    read: number;
    cursor?: string;
  };
  "GET /admin/tasks": {
    tasks: Task[];
    /** The number of tasks that were looked at. */
    scanned: number;
    cursor?: string;
  };
  "POST /admin/tasks/cleanup": {
    deleted: number;
  };
  "GET /admin/limits": {
    limits: LimitsFigures[];
  };
  "GET /admin/limits/{tenant}": LimitsFigures;
  "PUT /admin/limits/{tenant}": LimitsFigures;
  "DELETE /admin/limits/{tenant}": LimitsFigures;
  "GET /admin/sessions": {
    sessions: Session[];
    cursor?: Id;
  };
  "POST /admin/sessions/{session}/drain": Session;
  "POST /admin/sessions/{session}/disconnect": Session;
  "GET /admin/cluster": ClusterStatus;
  "POST /admin/cluster/tokens": {
    token: string;
    expiresInSeconds: number;
  };
  "POST /admin/cluster/transfer": Record<string, unknown>;
  "DELETE /admin/cluster/nodes/{node}": unknown;
  "GET /admin/backup": unknown;
  "GET /workers/subscriptions": {
    subscriptions: Subscription[];
  };
  "POST /workers/subscriptions": Subscribed;
  "DELETE /workers/subscriptions/{subscription}": Subscription;
  "POST /workers/subscriptions/{subscription}/heartbeat": Subscribed;
  "GET /admin/webhooks": {
    webhooks: Webhook[];
  };
  "GET /admin/webhooks/{name}": Webhook;
  "PUT /admin/webhooks/{name}": Webhook;
  "DELETE /admin/webhooks/{name}": Webhook;
  "POST /admin/webhooks/{name}/rotate": Webhook;
  "POST /admin/webhooks/{name}/enable": Webhook;
  "POST /admin/webhooks/{name}/test": WebhookTest;
  "POST /admin/tasks/{id}/redeliver": Task;
  "GET /admin/webhooks/secret": {
    secret: string;
  };
  "GET /admin/config": {
    settings: {
      name: string;
      /** Absent if the setting is not set. */
      value?: string;
      /** The flag, the variable, file and line, "default" or "not set"; "data directory" for shards that nobody set. */
      origin: string;
    }[];
  };
  "GET /login": {
    /** Whether the server asks for tokens. */
    authentication: boolean;
    tenantId: string;
    subject: string;
    scopes: string[];
    /** When the credential ends, if it does. */
    expiresAt?: string;
  };
  "POST /login": {
    /** Whether the server asks for tokens. */
    authentication: boolean;
    tenantId: string;
    subject: string;
    scopes: string[];
    /** When the credential ends, if it does. */
    expiresAt?: string;
  };
  "DELETE /login": unknown;
  "GET /events": unknown;
  "GET /session": unknown;
  "GET /healthz": {
    status: "ok";
  };
  "GET /readyz": {
    status: "ready";
    /** What the server does before it answers. */
    durability: string;
    shards: number;
    /** ok, or no-enqueue while new tasks are refused for lack of space. */
    diskGuard: "ok" | "no-enqueue";
    /** The time by which the server's clock is ahead of the system clock. */
    clockDifferenceMs: number;
  };
  "GET /version": {
    version: string;
    go: string;
  };
  "GET /metrics": unknown;
}

/** What each request has as its body. */
export interface Bodies {
  "POST /tasks": NewTask;
  "POST /tasks/batch": {
    tasks: NewTask[];
  };
  "POST /tasks/claim": Claim;
  "POST /tasks/claim/batch": BatchClaim;
  "POST /tasks/batch/results": {
    results: ({
      taskId: Id;
      leaseToken?: LeaseToken;
      workerId?: string | null;
      status?: "COMPLETED" | "FAILED" | null;
      result?: Record<string, unknown> | null;
      error?: string | null;
      /** The exit code of the program that did the work. */
      exitCode?: number | null;
      /** The signal that ended the program; not together with exitCode. */
      signal?: string | null;
      artifacts?: NewArtifacts;
    })[];
  };
  "POST /tasks/{id}/heartbeat": {
    leaseToken?: LeaseToken;
    workerId?: string | null;
    extendSeconds?: number | null;
  };
  "POST /tasks/{id}/progress": {
    leaseToken?: LeaseToken;
    workerId?: string | null;
    percent?: number | null;
    note?: string | null;
    /** Any JSON value of at most 4,096 bytes. */
    data?: unknown;
  };
  "POST /tasks/{id}/output": {
    leaseToken?: LeaseToken;
    workerId?: string | null;
    stream?: "stdout" | "stderr" | null;
    text: string;
  };
  "POST /tasks/{id}/nack": {
    leaseToken?: LeaseToken;
    workerId?: string | null;
    delaySeconds?: number | null;
    reason?: string | null;
    /** The exit code of the program that did the work. */
    exitCode?: number | null;
    /** The signal that ended the program; not together with exitCode. */
    signal?: string | null;
  };
  "POST /tasks/{id}/abandon": {
    leaseToken?: LeaseToken;
    workerId?: string | null;
  };
  "POST /tasks/{id}/release": {
    leaseToken?: LeaseToken;
    workerId?: string | null;
    /** false when the work never began; such a release does not count towards RELEASED_TOO_OFTEN */
    started?: boolean | null;
    /** true when the worker ends; such a release does not count either */
    stopping?: boolean | null;
  };
  "POST /tasks/{id}/result": {
    leaseToken?: LeaseToken;
    workerId?: string | null;
    status?: "COMPLETED" | "FAILED" | null;
    /** Required when COMPLETED. */
    result?: Record<string, unknown> | null;
    /** Required when FAILED. */
    error?: string | null;
    /** The exit code of the program that did the work. */
    exitCode?: number | null;
    /** The signal that ended the program; not together with exitCode. */
    signal?: string | null;
    artifacts?: NewArtifacts;
  };
  "POST /tasks/{id}/cancel": Record<string, unknown>;
  "PUT /admin/queues/{command}": QueueSettings;
  "POST /admin/queues/{command}/pause": Record<string, unknown>;
  "POST /admin/queues/{command}/resume": Record<string, unknown>;
  "POST /admin/tasks/{id}/replay": Record<string, unknown>;
  "POST /admin/queues/{command}/tasks/cancel": {
    /** The state of the tasks; waiting if left out. */
    state?: "waiting" | "ready" | "delayed" | "inProgress" | "open" | null;
    limit?: number | null;
    /** Count them and do nothing. */
    dryRun?: boolean | null;
    /** The cursor of the answer before. */
    cursor?: string | null;
    /** Only tasks that this worker has, or had last. */
    worker?: string | null;
    /** Only tasks whose error contains this text. */
    error?: string | null;
    /** Only tasks whose idempotency key begins with this text. */
    keyPrefix?: string | null;
    /** Only tasks that were created at that time or later. */
    createdAfter?: string | null;
    /** Only tasks that were created before that time. */
    createdBefore?: string | null;
    /** Only tasks of that priority. */
    priority?: number | null;
    /** Only tasks with so many failed executions, or more. */
    minAttempts?: number | null;
    /** Only tasks whose payload has these members. */
    match?: Record<string, unknown> | null;
  };
  "POST /admin/queues/{command}/tasks/run": {
    limit?: number | null;
    /** Count them and do nothing. */
    dryRun?: boolean | null;
    /** The cursor of the answer before. */
    cursor?: string | null;
    /** Only tasks that this worker has, or had last. */
    worker?: string | null;
    /** Only tasks whose error contains this text. */
    error?: string | null;
    /** Only tasks whose idempotency key begins with this text. */
    keyPrefix?: string | null;
    /** Only tasks that were created at that time or later. */
    createdAfter?: string | null;
    /** Only tasks that were created before that time. */
    createdBefore?: string | null;
    /** Only tasks of that priority. */
    priority?: number | null;
    /** Only tasks with so many failed executions, or more. */
    minAttempts?: number | null;
    /** Only tasks whose payload has these members. */
    match?: Record<string, unknown> | null;
  };
  "POST /admin/queues/{command}/tasks/move": {
    /** The state of the tasks; waiting if left out. */
    state?: "waiting" | "ready" | "delayed" | null;
    toPriority: number;
    limit?: number | null;
    /** Count them and do nothing. */
    dryRun?: boolean | null;
    /** The cursor of the answer before. */
    cursor?: string | null;
    /** Only tasks that this worker has, or had last. */
    worker?: string | null;
    /** Only tasks whose error contains this text. */
    error?: string | null;
    /** Only tasks whose idempotency key begins with this text. */
    keyPrefix?: string | null;
    /** Only tasks that were created at that time or later. */
    createdAfter?: string | null;
    /** Only tasks that were created before that time. */
    createdBefore?: string | null;
    /** Only tasks of that priority. */
    priority?: number | null;
    /** Only tasks with so many failed executions, or more. */
    minAttempts?: number | null;
    /** Only tasks whose payload has these members. */
    match?: Record<string, unknown> | null;
  };
  "POST /admin/tasks/{id}/run": Record<string, unknown>;
  "POST /admin/tasks/{id}/take-back": Record<string, unknown>;
  "POST /admin/tasks/{id}/move": {
    toPriority: number;
  };
  "POST /admin/queues/{command}/dlq/replay": {
    /** Only tasks that ended before it; without it, all that have ended now. */
    before?: string | null;
    /** Only tasks that this worker had last. */
    worker?: string | null;
    /** Only tasks whose error contains this text. */
    error?: string | null;
    /** Only tasks with this cause; without it, exhausted and released_too_often. */
    cause?: "exhausted" | "released_too_often" | "failed" | "all" | null;
    /** Only tasks whose idempotency key begins with this text. */
    keyPrefix?: string | null;
    /** Only tasks that were created at that time or later. */
    createdAfter?: string | null;
    /** Only tasks that were created before that time. */
    createdBefore?: string | null;
    /** Only tasks of that priority. */
    priority?: number | null;
    /** Only tasks with so many failed executions, or more. */
    minAttempts?: number | null;
    /** Only tasks whose payload has these members. */
    match?: Record<string, unknown> | null;
    /** Count them and do nothing. */
    dryRun?: boolean | null;
    limit?: number | null;
    /** The cursor of the answer before. */
    cursor?: string | null;
  };
  "POST /admin/tasks/cleanup": {
    /** Tasks that ended before it; without it, those whose retention is over. */
    before?: string | null;
    /** The most tasks. */
    limit?: number | null;
  };
  "PUT /admin/limits/{tenant}": Limits;
  "POST /admin/sessions/{session}/drain": Record<string, unknown>;
  "POST /admin/sessions/{session}/disconnect": Record<string, unknown>;
  "POST /workers/subscriptions": {
    /** The http or https URL that is called. */
    callbackUrl: string;
    /** Commands, prefixes such as build.*, or *. All that the credential may use if absent. */
    eventTypes?: string[] | null;
    /** Who of the subscribers of a queue is told. */
    deliveryMode?: "fanout" | "group" | "hash" | null;
    /** The name of the group; only with the deliveryMode group, which needs it. */
    groupId?: string | null;
    /** The least time between two calls about one queue. */
    minIntervalSeconds?: number | null;
    /** How long it stays without a heartbeat. */
    ttlSeconds?: number | null;
  };
  "POST /workers/subscriptions/{subscription}/heartbeat": {
    /** As long as before without it. */
    ttlSeconds?: number | null;
  };
  "PUT /admin/webhooks/{name}": WebhookChange;
  "POST /admin/webhooks/{name}/rotate": {
    /** Without it the server makes one. */
    secret?: string;
  };
  "POST /admin/webhooks/{name}/enable": Record<string, unknown>;
  "POST /admin/webhooks/{name}/test": Record<string, unknown>;
  "POST /admin/tasks/{id}/redeliver": Record<string, unknown>;
}
