// franz-go as one client of a chaos run: writes what it saw as a history (../../README.md). Roles: producer, txn, group.
//
// `stop` on standard input ends it in good order, the end of standard input at once.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

type settings struct {
	Role, Name, Bootstrap, Out, Txid, Group, Iso string
	Seed                                         int64
	Writer                                       uint64
	Rate                                         int
	PerOp                                        int `json:"per_op"`
	InFlight                                     int `json:"in_flight"`
	Topics                                       map[string]int32
}

var (
	args     settings
	out      *os.File
	stopping atomic.Bool
	nextID   atomic.Int64
	random   *rand.Rand
	names    []string
)

// The clock that all clients share: CLOCK_MONOTONIC.
func now() int64 {
	var spec syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&spec)), 0)
	return spec.Nano()
}

var writing sync.Mutex

func say(op, phase, rest string) {
	writing.Lock()
	defer writing.Unlock()
	if _, err := fmt.Fprintf(out, `{"t":%d,"c":"%s","op":"%s","ph":"%s"%s}`+"\n", now(), args.Name, op, phase, rest); err != nil {
		panic(err)
	}
}

func quoted(err error) string {
	text, _ := json.Marshal(fmt.Sprint(err))
	return string(text)
}

func main() {
	if err := json.Unmarshal([]byte(os.Args[1]), &args); err != nil {
		panic(err)
	}
	if args.PerOp == 0 {
		args.PerOp = 10
	}
	random = rand.New(rand.NewSource(args.Seed))
	for name := range args.Topics {
		names = append(names, name)
	}
	sort.Strings(names)
	var err error
	if out, err = os.OpenFile(args.Out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		panic(err)
	}
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			if lines.Text() == "stop" {
				stopping.Store(true)
			}
		}
		os.Exit(3)
	}()
	switch args.Role {
	case "producer":
		produce()
	case "txn":
		transactions()
	case "group":
		for !stopping.Load() {
			member()
		}
	default:
		panic("no such role")
	}
}

// Records

type rec struct {
	topic     string
	partition int32
	value     uint64
	offset    int64
}

func told(records []rec, withOffset bool) string {
	rows := make([]string, len(records))
	for i, r := range records {
		if withOffset {
			rows[i] = fmt.Sprintf(`["%s",%d,%d,%d]`, r.topic, r.partition, r.value, r.offset)
		} else {
			rows[i] = fmt.Sprintf(`["%s",%d,%d]`, r.topic, r.partition, r.value)
		}
	}
	return `,"recs":[` + strings.Join(rows, ",") + "]"
}

var writer, sequence uint64

func records() []rec {
	topic := names[random.Intn(len(names))]
	partitions := args.Topics[topic]
	first := random.Int31n(partitions)
	made := make([]rec, args.PerOp)
	for i := range made {
		made[i] = rec{topic, (first + int32(i%2)) % partitions, writer<<32 | sequence, -1}
		sequence++
	}
	return made
}

// Sends all; an ok line for those that are in, an info line for those of which nobody knows.
func send(client *kgo.Client, made []rec, txn string, done func()) {
	id := nextID.Add(1)
	say("send", "invoke", fmt.Sprintf(`,"id":%d%s%s`, id, txn, told(made, false)))
	var lock sync.Mutex
	var good, open []rec
	var last error
	left := len(made)
	for _, r := range made {
		record := &kgo.Record{Topic: r.topic, Partition: r.partition, Value: []byte(strconv.FormatUint(r.value, 10))}
		client.Produce(context.Background(), record, func(at *kgo.Record, err error) {
			lock.Lock()
			defer lock.Unlock()
			if err == nil {
				r.offset = at.Offset
				good = append(good, r)
			} else {
				open, last = append(open, r), err
			}
			if left--; left > 0 {
				return
			}
			if len(good) > 0 {
				say("send", "ok", fmt.Sprintf(`,"id":%d%s%s`, id, txn, told(good, true)))
			}
			if len(open) > 0 {
				say("send", "info", fmt.Sprintf(`,"id":%d%s%s,"err":%s`, id, txn, told(open, false), quoted(last)))
			}
			done()
		})
	}
}

func producing(more ...kgo.Opt) *kgo.Client {
	options := []kgo.Opt{kgo.SeedBrokers(strings.Split(args.Bootstrap, ",")...), kgo.ClientID(args.Name), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProduceRequestTimeout(5 * time.Second), kgo.RequestTimeoutOverhead(3 * time.Second), kgo.ProducerLinger(5 * time.Millisecond),
		kgo.RetryTimeout(15 * time.Second), kgo.MetadataMaxAge(10 * time.Second), kgo.MetadataMinAge(200 * time.Millisecond), kgo.ConnIdleTimeout(time.Minute)}
	// With idempotence franz-go keeps up to five requests in flight, and no other number can be had: one batch is made at a time.
	if args.InFlight == 1 {
		options = append(options, kgo.ManualFlushing())
	}
	client, err := kgo.NewClient(append(options, more...)...)
	if err != nil {
		panic(err)
	}
	return client
}

func pace(next time.Time, pause time.Duration) time.Time {
	next = next.Add(pause)
	if late := time.Now().Add(-time.Second); next.Before(late) {
		next = late
	}
	time.Sleep(time.Until(next))
	return next
}

func produce() {
	client := producing(kgo.RecordDeliveryTimeout(10 * time.Minute))
	writer = args.Writer + 1
	room := make(chan struct{}, 8)
	next := time.Now()
	for !stopping.Load() {
		room <- struct{}{}
		send(client, records(), "", func() { <-room })
		for args.InFlight == 1 && len(room) > 0 && !stopping.Load() {
			waited, cancel := context.WithTimeout(context.Background(), time.Second)
			client.Flush(waited)
			cancel()
		}
		next = pace(next, time.Second*time.Duration(args.PerOp)/time.Duration(args.Rate))
	}
	waited, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client.Flush(waited)
	time.Sleep(100 * time.Millisecond)
}

func transactions() {
	writer = args.Writer
	number := 0
	next := time.Now()
	for !stopping.Load() {
		// A new producer is a new writer, and fences what the one before left open.
		writer++
		sequence = 0
		client := producing(kgo.TransactionalID(args.Txid), kgo.TransactionTimeout(15*time.Second), kgo.RecordDeliveryTimeout(12*time.Second))
		for well := true; well && !stopping.Load(); {
			number++
			well = transaction(client, fmt.Sprintf(`,"txn":%d`, number), random.Intn(5) != 0)
			next = pace(next, 2*time.Second*time.Duration(args.PerOp)/time.Duration(args.Rate))
		}
		client.Close()
	}
}

func transaction(client *kgo.Client, txn string, commit bool) bool {
	if err := client.BeginTransaction(); err != nil {
		fmt.Fprintln(os.Stderr, "begin:", err)
		time.Sleep(200 * time.Millisecond)
		return false
	}
	say("begin", "invoke", txn)
	waited, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	var failed atomic.Bool
	for ops := 1 + random.Intn(3); ops > 0; ops-- {
		made := records()
		send(client, made, txn, func() {})
	}
	if err := client.Flush(waited); err != nil {
		failed.Store(true)
	}
	// What could not be sent makes the commit fail, or is aborted here.
	if failed.Load() {
		commit = false
		client.AbortBufferedRecords(waited)
	}
	rest := fmt.Sprintf(`%s,"commit":%t`, txn, commit)
	say("end", "invoke", rest)
	err := client.EndTransaction(waited, kgo.TransactionEndTry(commit))
	if err == nil {
		say("end", "ok", rest)
		return true
	}
	say("end", "info", rest+`,"err":`+quoted(err))
	return false
}

// Groups

func assigned(parts map[string][]int32) {
	var rows []string
	for topic, numbers := range parts {
		for _, number := range numbers {
			rows = append(rows, fmt.Sprintf(`["%s",%d]`, topic, number))
		}
	}
	say("assign", "ok", fmt.Sprintf(`,"group":"%s","parts":[%s]`, args.Group, strings.Join(rows, ",")))
}

// One member's life: it polls, writes down, commits; after a while it leaves.
func member() {
	level := kgo.ReadUncommitted()
	if args.Iso == "rc" {
		level = kgo.ReadCommitted()
	}
	changed := func(_ context.Context, _ *kgo.Client, parts map[string][]int32) { assigned(parts) }
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(args.Bootstrap, ",")...), kgo.ClientID(args.Name), kgo.ConsumerGroup(args.Group), kgo.ConsumeTopics(names...),
		kgo.FetchIsolationLevel(level), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(time.Second), kgo.RebalanceTimeout(20*time.Second),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMaxAge(10*time.Second), kgo.RetryTimeout(10*time.Second),
		kgo.OnPartitionsAssigned(changed), kgo.OnPartitionsRevoked(changed), kgo.OnPartitionsLost(changed))
	if err != nil {
		panic(err)
	}
	until := time.Now().Add(time.Duration(20+random.Intn(40)) * time.Second)
	for !stopping.Load() && time.Now().Before(until) {
		turn(client)
	}
	client.AllowRebalance()
	leaving, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client.LeaveGroupContext(leaving)
	client.Close()
	assigned(nil)
}

func turn(client *kgo.Client) {
	waited, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	fetches := client.PollRecords(waited, 200)
	defer client.AllowRebalance()
	for _, failure := range fetches.Errors() {
		if !errors.Is(failure.Err, context.DeadlineExceeded) {
			fmt.Fprintln(os.Stderr, "poll:", failure.Topic, failure.Partition, failure.Err)
		}
	}
	var rows []string
	ends := map[string]map[int32]kgo.EpochOffset{}
	fetches.EachRecord(func(r *kgo.Record) {
		rows = append(rows, fmt.Sprintf(`["%s",%d,%s,%d]`, r.Topic, r.Partition, r.Value, r.Offset))
		if ends[r.Topic] == nil {
			ends[r.Topic] = map[int32]kgo.EpochOffset{}
		}
		ends[r.Topic][r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
	})
	if len(rows) == 0 {
		return
	}
	say("poll", "ok", fmt.Sprintf(`,"group":"%s","iso":"%s","recs":[%s]`, args.Group, args.Iso, strings.Join(rows, ",")))
	commit(client, fetches, ends)
}

func commit(client *kgo.Client, fetches kgo.Fetches, ends map[string]map[int32]kgo.EpochOffset) {
	var offs []string
	for topic, parts := range ends {
		for part, end := range parts {
			offs = append(offs, fmt.Sprintf(`["%s",%d,%d]`, topic, part, end.Offset))
		}
	}
	rest := fmt.Sprintf(`,"id":%d,"group":"%s"`, nextID.Add(1), args.Group)
	say("commit", "invoke", rest)
	limited, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	rest += `,"offs":[` + strings.Join(offs, ",") + "]"
	if err := client.CommitRecords(limited, fetches.Records()...); err != nil {
		say("commit", "info", rest+`,"err":`+quoted(err))
		return
	}
	say("commit", "ok", rest)
}
