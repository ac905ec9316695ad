// franz-go behind the runner's protocol (../PROTOCOL.md).
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type object = map[string]any

type command struct {
	ID        int               `json:"id"`
	Op        string            `json:"op"`
	Topic     string            `json:"topic"`
	Topics    []string          `json:"topics"`
	Parts     []int32           `json:"parts"`
	Config    json.RawMessage   `json:"config"`
	Records   []record          `json:"records"`
	From      json.RawMessage   `json:"from"`
	At        json.RawMessage   `json:"at"`
	Count     int               `json:"count"`
	TimeoutMs int               `json:"timeout_ms"`
	MaxBytes  int32             `json:"max_bytes"`
	Reset     string            `json:"reset"`
	Group     string            `json:"group"`
	Assignor  string            `json:"assignor"`
	Pattern   string            `json:"pattern"`
	Client    string            `json:"client"`
	Source    string            `json:"source"`
	Mode      string            `json:"mode"`
	Acquire   string            `json:"acquire"`
	Most      string            `json:"most"`
	Words     map[string]string `json:"words"`
	Static    string            `json:"static"`
	SessionMs int               `json:"session_ms"`
	Commit    string            `json:"commit"`
	Name      string            `json:"name"`
	Type      string            `json:"type"`
	Number    int               `json:"partitions"`
	Set       map[string]string `json:"set"`
	Delete    []string          `json:"delete"`
	Ends      map[int32]int64   `json:"ends"`
	Isolation string            `json:"isolation"`
	TxID      string            `json:"txid"`
	Init      bool              `json:"init"`
	End       string            `json:"end"`
	Offsets   *txnOffsets       `json:"offsets"`
	Upto      map[string]int64  `json:"upto"`
}

type txnOffsets struct {
	Group   string           `json:"group"`
	Topic   string           `json:"topic"`
	Offsets map[string]int64 `json:"offsets"`
}

type record struct {
	P *int32               `json:"p"`
	K json.RawMessage      `json:"k"`
	V json.RawMessage      `json:"v"`
	H [][2]json.RawMessage `json:"h"`
	T *int64               `json:"t"`
}

type produceConfig struct {
	Acks       string `json:"acks"`
	Codec      string `json:"codec"`
	Idempotent bool   `json:"idempotent"`
	LingerMs   int    `json:"linger_ms"`
	BatchBytes int32  `json:"batch_bytes"`
	MaxBytes   int32  `json:"max_bytes"`
	DeliveryMs int    `json:"delivery_ms"`
}

type unsupported string

func (u unsupported) Error() string { return string(u) }

var (
	bootstrap string
	ctx       = context.Background()
	out       sync.Mutex
	member    *kgo.Client
	stopPolls context.CancelFunc
	polls     sync.WaitGroup
)

func say(message object) {
	line, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	out.Lock()
	defer out.Unlock()
	os.Stdout.Write(append(line, '\n'))
}

func main() {
	bootstrap = os.Args[1]
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var c command
		if err := json.Unmarshal(line, &c); err != nil {
			panic(err)
		}
		reply := object{"id": c.ID}
		ok, err := run(c)
		var no unsupported
		switch {
		case errors.As(err, &no):
			reply["unsupported"] = string(no)
		case err != nil:
			reply["err"], reply["msg"] = name(err), err.Error()
		default:
			reply["ok"] = ok
		}
		say(reply)
	}
}

func name(err error) string {
	var ke *kerr.Error
	if errors.As(err, &ke) {
		return ke.Message
	}
	return fmt.Sprintf("%T", err)
}

func run(c command) (any, error) {
	switch c.Op {
	case "produce":
		return produce(c)
	case "txn":
		return transact(c)
	case "fetch":
		return fetch(c)
	case "digest":
		return digest(c)
	case "pipe":
		return memberPipe(c)
	case "pipe_end":
		return memberPipeEnd(c)
	case "share_join":
		return nil, shareJoin(c)
	case "share_poll":
		return sharePoll(c)
	case "share_ack":
		return shareAck(c)
	case "share_leave":
		sharer.Close()
		return nil, nil
	case "join":
		return nil, join(c)
	case "commit":
		return nil, member.CommitUncommittedOffsets(ctx)
	case "leave":
		stopPolls()
		polls.Wait()
		member.Close()
		return nil, nil
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	deadline, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return administer(deadline, adm, c)
}

func payload(raw json.RawMessage) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text)
	}
	var spec struct {
		Rand string `json:"rand"`
		Len  int    `json:"len"`
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		panic(err)
	}
	data := make([]byte, 0, spec.Len+32)
	for i := 0; len(data) < spec.Len; i++ {
		block := sha256.Sum256([]byte(spec.Rand + ":" + strconv.Itoa(i)))
		data = append(data, block[:]...)
	}
	return data[:spec.Len]
}

func shown(data []byte) any {
	if data == nil {
		return nil
	}
	if len(data) <= 200 && utf8.Valid(data) {
		return string(data)
	}
	digest := sha256.Sum256(data)
	return object{"sha": hex.EncodeToString(digest[:8]), "len": len(data)}
}

func codec(name string) kgo.CompressionCodec {
	switch name {
	case "gzip":
		return kgo.GzipCompression()
	case "snappy":
		return kgo.SnappyCompression()
	case "lz4":
		return kgo.Lz4Compression()
	case "zstd":
		return kgo.ZstdCompression()
	}
	return kgo.NoCompression()
}

// hashOrGiven sends a record to the partition that it names, any other where franz-go would.
type hashOrGiven struct{ inner kgo.Partitioner }

func (h hashOrGiven) ForTopic(topic string) kgo.TopicPartitioner {
	return topicPartitioner{h.inner.ForTopic(topic)}
}

type topicPartitioner struct{ kgo.TopicPartitioner }

func (t topicPartitioner) Partition(r *kgo.Record, n int) int {
	if given, ok := r.Context.Value("p").(int32); ok {
		return int(given)
	}
	return t.TopicPartitioner.Partition(r, n)
}

func produce(c command) (any, error) {
	cfg := produceConfig{Acks: "all", LingerMs: 5, DeliveryMs: 30000}
	if len(c.Config) > 0 {
		if err := json.Unmarshal(c.Config, &cfg); err != nil {
			return nil, err
		}
	}
	opts := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.ProducerBatchCompression(codec(cfg.Codec)),
		kgo.ProducerLinger(time.Duration(cfg.LingerMs) * time.Millisecond),
		kgo.RecordPartitioner(hashOrGiven{kgo.StickyKeyPartitioner(nil)}), kgo.UnknownTopicRetries(20), kgo.AllowAutoTopicCreation(),
		kgo.MaxBufferedRecords(1000000)}
	if !cfg.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	switch cfg.Acks {
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()))
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()))
	default:
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	}
	// franz-go counts the delivery timeout from a record's own timestamp: one of the past would be late at once.
	if len(c.Records) > 0 && c.Records[0].T == nil {
		opts = append(opts, kgo.RecordDeliveryTimeout(time.Duration(cfg.DeliveryMs)*time.Millisecond))
	}
	if cfg.BatchBytes > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(cfg.BatchBytes))
	}
	if cfg.MaxBytes > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(cfg.MaxBytes))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	results := make([]any, len(c.Records))
	var done sync.WaitGroup
	for i, r := range c.Records {
		rec := &kgo.Record{Topic: c.Topic, Key: payload(r.K), Value: payload(r.V)}
		with := ctx
		if r.P != nil {
			with = context.WithValue(ctx, "p", *r.P)
		}
		rec.Context = with
		if r.T != nil {
			rec.Timestamp = time.UnixMilli(*r.T)
		}
		for _, h := range r.H {
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: string(payload(h[0])), Value: payload(h[1])})
		}
		done.Add(1)
		cl.Produce(with, rec, func(got *kgo.Record, err error) {
			defer done.Done()
			if err != nil {
				results[i] = name(err)
				return
			}
			offset := got.Offset
			if cfg.Acks == "0" {
				offset = -1
			}
			results[i] = []any{got.Partition, offset}
		})
	}
	done.Wait()
	return object{"results": results}, nil
}

var (
	producers = map[string]*kgo.Client{}
	open      = map[string]bool{}
)

func transactional(c command) (*kgo.Client, error) {
	if c.Init {
		delete(producers, c.TxID)
	}
	if cl := producers[c.TxID]; cl != nil {
		return cl, nil
	}
	timeout := c.TimeoutMs
	if timeout == 0 {
		timeout = 60000
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.TransactionalID(c.TxID),
		kgo.TransactionTimeout(time.Duration(timeout)*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return nil, err
	}
	// Its initTransactions: the producer id is fetched before anything is written.
	if _, _, err := cl.ProducerID(ctx); err != nil {
		return nil, err
	}
	producers[c.TxID], open[c.TxID] = cl, false
	return cl, nil
}

var sessions = map[string]*kgo.GroupTransactSession{}

// pipe is a transaction with offsets: franz-go stores how far its own group session has read, here ten records.
func pipe(c command) (any, error) {
	sess := sessions[c.TxID]
	if sess == nil {
		made, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(bootstrap), kgo.TransactionalID(c.TxID),
			kgo.ConsumerGroup(c.Offsets.Group), kgo.ConsumeTopics(c.Offsets.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			return nil, err
		}
		sess, sessions[c.TxID] = made, made
	}
	deadline, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for got := 0; got < 10; {
		fetches := sess.PollRecords(deadline, 10-got)
		if err := fetches.Err0(); err != nil {
			return nil, err
		}
		got += fetches.NumRecords()
	}
	if err := sess.Begin(); err != nil {
		return nil, err
	}
	results := write(c, sess.Produce)
	commit := kgo.TryAbort
	if c.End == "commit" {
		commit = kgo.TryCommit
	}
	committed, err := sess.End(ctx, commit)
	if err != nil {
		return nil, err
	}
	if committed != (c.End == "commit") {
		return nil, errors.New("the session ended its transaction in another way")
	}
	return object{"results": results}, nil
}

func write(c command, produce func(context.Context, *kgo.Record, func(*kgo.Record, error))) []any {
	results := make([]any, len(c.Records))
	var done sync.WaitGroup
	for i, r := range c.Records {
		done.Add(1)
		produce(ctx, &kgo.Record{Topic: c.Topic, Partition: *r.P, Key: payload(r.K), Value: payload(r.V)}, func(got *kgo.Record, err error) {
			defer done.Done()
			results[i] = []any{got.Partition, got.Offset}
			if err != nil {
				results[i] = name(err)
			}
		})
	}
	done.Wait()
	return results
}

func transact(c command) (any, error) {
	if c.Offsets != nil {
		return pipe(c)
	}
	cl, err := transactional(c)
	if err != nil {
		return nil, err
	}
	if !open[c.TxID] {
		if err := cl.BeginTransaction(); err != nil {
			return nil, err
		}
		open[c.TxID] = true
	}
	results := write(c, cl.Produce)
	if c.End != "open" {
		open[c.TxID] = false
		commit := kgo.TryAbort
		if c.End == "commit" {
			commit = kgo.TryCommit
		}
		if err := cl.EndTransaction(ctx, commit); err != nil {
			return nil, err
		}
	}
	return object{"results": results}, nil
}

func fetch(c command) (any, error) {
	var from struct {
		Off *int64 `json:"off"`
		TS  *int64 `json:"ts"`
	}
	start := kgo.NewOffset().AtStart()
	if len(c.From) > 0 && json.Unmarshal(c.From, &from) == nil {
		if from.Off != nil {
			start = kgo.NewOffset().At(*from.Off)
		} else if from.TS != nil {
			start = kgo.NewOffset().AfterMilli(*from.TS)
		}
	}
	assign := map[int32]kgo.Offset{}
	for _, p := range c.Parts {
		assign[p] = start
	}
	limit := c.MaxBytes
	if limit == 0 {
		limit = 1 << 20
	}
	reset := kgo.NoResetOffset()
	if c.Reset == "earliest" {
		reset = kgo.NewOffset().AtStart()
	}
	isolation := kgo.ReadUncommitted()
	if c.Isolation == "committed" {
		isolation = kgo.ReadCommitted()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic: assign}),
		kgo.FetchIsolationLevel(isolation), kgo.ConsumeResetOffset(reset), kgo.FetchMaxPartitionBytes(limit), kgo.FetchMaxWait(200*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	deadline, cancel := context.WithTimeout(ctx, time.Duration(c.TimeoutMs)*time.Millisecond)
	defer cancel()
	recs := []any{}
	for len(recs) < c.Count && deadline.Err() == nil {
		fetches := cl.PollFetches(deadline)
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				return nil, e.Err
			}
		}
		fetches.EachRecord(func(r *kgo.Record) {
			headers := []any{}
			for _, h := range r.Headers {
				headers = append(headers, []any{h.Key, shown(h.Value)})
			}
			recs = append(recs, []any{r.Partition, r.Offset, r.Timestamp.UnixMilli(), shown(r.Key), shown(r.Value), headers})
		})
	}
	return object{"recs": recs}, nil
}

type partitionDigest struct {
	first, last, count, gaps int64
	sum                      uint64
	whole                    hash.Hash
}

func digest(c command) (any, error) {
	assign, digests, left := map[int32]kgo.Offset{}, map[int32]*partitionDigest{}, map[int32]int64{}
	for _, p := range c.Parts {
		assign[p] = kgo.NewOffset().AtStart()
		digests[p] = &partitionDigest{first: -1, last: -1, whole: sha256.New()}
		if c.Ends[p] > 0 {
			left[p] = c.Ends[p]
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic: assign}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(200*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	deadline, cancel := context.WithTimeout(ctx, time.Duration(c.TimeoutMs)*time.Millisecond)
	defer cancel()
	for len(left) > 0 && deadline.Err() == nil {
		fetches := cl.PollFetches(deadline)
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				return nil, e.Err
			}
		}
		fetches.EachRecord(func(r *kgo.Record) {
			d := digests[r.Partition]
			if d.count == 0 {
				d.first = r.Offset
			} else if r.Offset != d.last+1 {
				d.gaps++
			}
			d.last = r.Offset
			d.count++
			d.whole.Write(r.Value)
			d.whole.Write([]byte{'\n'})
			one := sha256.Sum256(r.Value)
			d.sum += binary.BigEndian.Uint64(one[:8])
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	out := map[int32]object{}
	for p, d := range digests {
		out[p] = object{"first": d.first, "last": d.last, "count": d.count, "gaps": d.gaps, "sha": hex.EncodeToString(d.whole.Sum(nil)), "sum": strconv.FormatUint(d.sum, 10)}
	}
	return out, nil
}

func join(c command) error {
	balancers := map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"sticky": kgo.StickyBalancer(), "cooperative": kgo.CooperativeStickyBalancer()}
	if c.SessionMs == 0 {
		c.SessionMs = 10000
	}
	owned := map[string]map[int32]bool{}
	tell := func(change map[string][]int32, has bool) {
		for topic, parts := range change {
			if owned[topic] == nil {
				owned[topic] = map[int32]bool{}
			}
			for _, p := range parts {
				owned[topic][p] = has
			}
		}
		parts := []any{}
		for topic, all := range owned {
			for p, is := range all {
				if is {
					parts = append(parts, []any{topic, p})
				}
			}
		}
		say(object{"ev": "assign", "parts": parts})
	}
	if c.Pattern != "" {
		c.Topics = []string{c.Pattern}
	}
	opts := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(c.Topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.SessionTimeout(time.Duration(c.SessionMs) * time.Millisecond),
		kgo.HeartbeatInterval(500 * time.Millisecond), kgo.FetchMaxWait(200 * time.Millisecond), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { tell(m, true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { tell(m, false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { tell(m, false) })}
	// Where a session is to last, so is a rebalance: nobody is to be put out for being slow.
	if c.SessionMs > 60000 {
		opts = append(opts, kgo.RebalanceTimeout(time.Duration(c.SessionMs)*time.Millisecond))
	}
	if c.Static != "" {
		opts = append(opts, kgo.InstanceID(c.Static))
	}
	if c.Pattern != "" {
		opts = append(opts, kgo.ConsumeRegex())
	}
	if c.Client != "" {
		opts = append(opts, kgo.ClientID(c.Client))
	}
	if os.Getenv("COMPAT_TRACE") != "" {
		opts = append(opts, kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelDebug, nil)))
	}
	if serverSide(c.Assignor) != nil {
		opts = append(opts, serverSide(c.Assignor)...)
	} else {
		opts = append(opts, kgo.Balancers(balancers[c.Assignor]))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	member = cl
	var while context.Context
	while, stopPolls = context.WithCancel(ctx)
	polls.Add(1)
	go func() {
		defer polls.Done()
		for while.Err() == nil {
			fetches := cl.PollRecords(while, 100)
			for _, e := range fetches.Errors() {
				if while.Err() == nil {
					say(object{"ev": "error", "msg": name(e.Err) + ": " + e.Err.Error()})
				}
			}
			recs := []any{}
			fetches.EachRecord(func(r *kgo.Record) { recs = append(recs, []any{r.Topic, r.Partition, r.Offset, shown(r.Value)}) })
			if len(recs) > 0 {
				say(object{"ev": "recs", "recs": recs})
				if c.Commit != "none" {
					if err := cl.CommitUncommittedOffsets(ctx); err != nil {
						say(object{"ev": "error", "msg": err.Error()})
					}
				}
			}
			cl.AllowRebalance()
		}
	}()
	return nil
}

// serverSide is KIP-848, with the coordinator's assignor of that name; nil where the members assign.
func serverSide(assignor string) []kgo.Opt {
	switch assignor {
	case "server-uniform":
		return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}
	case "server-range":
		return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())}
	}
	return nil
}

func administer(ctx context.Context, adm *kadm.Client, c command) (any, error) {
	switch c.Op {
	case "offsets":
		return offsets(ctx, adm, c)
	case "committed":
		found, err := adm.FetchOffsets(ctx, c.Group)
		if err != nil {
			return nil, err
		}
		at := map[int32]int64{}
		for _, p := range c.Parts {
			at[p] = -1
			if o, ok := found.Lookup(c.Topic, p); ok {
				at[p] = o.At
			}
		}
		return at, nil
	case "create_topic":
		configs := map[string]*string{}
		var given map[string]string
		if len(c.Config) > 0 {
			if err := json.Unmarshal(c.Config, &given); err != nil {
				return nil, err
			}
		}
		for k, v := range given {
			configs[k] = &v
		}
		r, err := adm.CreateTopic(ctx, int32(c.Number), 1, configs, c.Name)
		if err == nil {
			err = r.Err
		}
		return nil, err
	case "create_partitions":
		r, err := adm.UpdatePartitions(ctx, c.Number, c.Name)
		if err == nil {
			err = r[c.Name].Err
		}
		return nil, err
	case "delete_topic":
		r, err := adm.DeleteTopics(ctx, c.Name)
		if err == nil {
			err = r[c.Name].Err
		}
		return nil, err
	case "list_topics":
		r, err := adm.ListTopics(ctx)
		return r.Names(), err
	case "describe_topic":
		return describeTopic(ctx, adm, c)
	case "get_config", "set_config":
		return configure(ctx, adm, c)
	case "delete_records":
		wanted := kadm.Offsets{}
		for p, o := range c.Upto {
			n, _ := strconv.Atoi(p)
			wanted.AddOffset(c.Topic, int32(n), o, -1)
		}
		r, err := adm.DeleteRecords(ctx, wanted)
		if err != nil {
			return nil, err
		}
		low := map[int32]int64{}
		for p, d := range r[c.Topic] {
			if d.Err != nil {
				return nil, d.Err
			}
			low[p] = d.LowWatermark
		}
		return low, nil
	case "list_groups":
		r, err := adm.ListGroups(ctx)
		return r.Groups(), err
	case "describe_group":
		r, err := adm.DescribeGroups(ctx, c.Group)
		if err != nil {
			return nil, err
		}
		g := r[c.Group]
		return object{"state": g.State, "members": len(g.Members)}, g.Err
	case "delete_group":
		r, err := adm.DeleteGroups(ctx, c.Group)
		if err == nil {
			err = r[c.Group].Err
		}
		return nil, err
	case "cluster":
		r, err := adm.BrokerMetadata(ctx)
		return object{"brokers": len(r.Brokers), "controller": r.Controller}, err
	}
	return nil, unsupported("no such operation")
}

func describeTopic(ctx context.Context, adm *kadm.Client, c command) (any, error) {
	r, err := adm.ListTopics(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	t := r[c.Name]
	if t.Err != nil {
		return nil, t.Err
	}
	leaders, replicas := []int32{}, [][]int32{}
	for _, p := range t.Partitions.Sorted() {
		leaders, replicas = append(leaders, p.Leader), append(replicas, p.Replicas)
	}
	return object{"partitions": len(leaders), "leaders": leaders, "replicas": replicas}, nil
}

func offsets(ctx context.Context, adm *kadm.Client, c command) (any, error) {
	var r kadm.ListedOffsets
	var err error
	var at struct {
		TS int64 `json:"ts"`
	}
	var word string
	if json.Unmarshal(c.At, &word) == nil {
		if word == "earliest" {
			r, err = adm.ListStartOffsets(ctx, c.Topic)
		} else {
			r, err = adm.ListEndOffsets(ctx, c.Topic)
		}
	} else {
		if err := json.Unmarshal(c.At, &at); err != nil {
			return nil, err
		}
		r, err = adm.ListOffsetsAfterMilli(ctx, at.TS, c.Topic)
	}
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	for _, p := range c.Parts {
		found := r[c.Topic][p]
		if found.Err != nil {
			return nil, found.Err
		}
		out[p] = found.Offset
		if word == "" && found.Timestamp == -1 {
			out[p] = -1
		}
	}
	return out, nil
}

func configure(ctx context.Context, adm *kadm.Client, c command) (any, error) {
	if c.Op == "get_config" {
		var r kadm.ResourceConfigs
		var err error
		if c.Type == "topic" {
			r, err = adm.DescribeTopicConfigs(ctx, c.Name)
		} else {
			id, _ := strconv.Atoi(c.Name)
			r, err = adm.DescribeBrokerConfigs(ctx, int32(id))
		}
		if err != nil {
			return nil, err
		}
		if r[0].Err != nil {
			return nil, r[0].Err
		}
		found := map[string]string{}
		for _, e := range r[0].Configs {
			found[e.Key] = e.MaybeValue()
		}
		return found, nil
	}
	var changes []kadm.AlterConfig
	for k, v := range c.Set {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: k, Value: &v})
	}
	for _, k := range c.Delete {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: k})
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].Name < changes[j].Name })
	var r kadm.AlterConfigsResponses
	var err error
	if c.Type == "topic" {
		r, err = adm.AlterTopicConfigs(ctx, changes, c.Name)
	} else {
		id, _ := strconv.Atoi(c.Name)
		r, err = adm.AlterBrokerConfigs(ctx, changes, int32(id))
	}
	if err == nil {
		err = r[0].Err
	}
	return nil, err
}
