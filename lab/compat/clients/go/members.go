// Read, process, write as a member of a group, and share groups (KIP-932): what a member holds between two commands stays with it.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// memberPipe reads count records as a member, writes each with a "!", and ends the transaction or leaves it open.
func memberPipe(c command) (any, error) {
	sess := sessions[c.TxID]
	if sess == nil {
		opts := append([]kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.TransactionalID(c.TxID), kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(c.Source),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.FetchMaxWait(200 * time.Millisecond)}, serverSide(c.Assignor)...)
		made, err := kgo.NewGroupTransactSession(opts...)
		if err != nil {
			return nil, err
		}
		sess, sessions[c.TxID] = made, made
	}
	deadline, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	read, values := []string{}, []record{}
	for len(read) < c.Count && deadline.Err() == nil {
		fetches := sess.PollRecords(deadline, c.Count-len(read))
		if err := fetches.Err0(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) { read = append(read, string(r.Value)) })
	}
	for i, value := range read {
		p := int32((i + 1) % 2)
		values = append(values, record{P: &p, V: []byte(fmt.Sprintf("%q", value+"!"))})
	}
	if err := sess.Begin(); err != nil {
		return nil, err
	}
	c.Records = values
	for _, told := range write(c, sess.Produce) {
		if refused, is := told.(string); is {
			return nil, errors.New(refused)
		}
	}
	if c.End == "open" {
		return object{"read": read}, nil
	}
	commit := kgo.TryAbort
	if c.End == "commit" {
		commit = kgo.TryCommit
	}
	committed, err := sess.End(ctx, commit)
	if err == nil && committed != (c.End == "commit") {
		err = errors.New("the session ended its transaction in another way")
	}
	return object{"read": read}, err
}

func memberPipeEnd(c command) (any, error) {
	committed, err := sessions[c.TxID].End(ctx, kgo.TryCommit)
	told := "ok"
	if err != nil {
		told = name(err)
	}
	return object{"committed": committed, "told": told}, nil
}

var (
	sharer *kgo.Client
	held   = map[string]*kgo.Record{}
	acked  = map[int32]string{}
)

func shareJoin(c command) error {
	opts := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.ShareGroup(c.Group), kgo.ConsumeTopics(c.Topic), kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			out.Lock()
			defer out.Unlock()
			for _, result := range results {
				acked[result.Partition] = "ok"
				if result.Err != nil {
					acked[result.Partition] = name(result.Err)
				}
			}
		})}
	if most, err := strconv.Atoi(c.Most); err == nil {
		opts = append(opts, kgo.ShareMaxRecords(int32(most)))
	}
	if c.Client != "" {
		opts = append(opts, kgo.ClientID(c.Client))
	}
	if c.Acquire == "record_limit" {
		opts = append(opts, kgo.ShareMaxRecordsStrict())
	}
	cl, err := kgo.NewClient(opts...)
	sharer = cl
	return err
}

// sharePoll: franz-go accepts with each poll what nothing was said about, in both modes.
func sharePoll(c command) (any, error) {
	deadline, cancel := context.WithTimeout(ctx, time.Duration(c.TimeoutMs)*time.Millisecond)
	defer cancel()
	got := []any{}
	clear(held)
	for len(got) == 0 && deadline.Err() == nil {
		fetches := sharer.PollRecords(deadline, 0)
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				return nil, e.Err
			}
		}
		fetches.EachRecord(func(r *kgo.Record) {
			held[fmt.Sprintf("%d:%d", r.Partition, r.Offset)] = r
			got = append(got, []any{r.Partition, r.Offset, r.DeliveryCount(), shown(r.Value)})
		})
	}
	return got, nil
}

var ackWords = map[string]kgo.AckStatus{"accept": kgo.AckAccept, "release": kgo.AckRelease, "reject": kgo.AckReject, "renew": kgo.AckRenew}

func shareAck(c command) (any, error) {
	out.Lock()
	clear(acked)
	out.Unlock()
	for at, word := range c.Words {
		held[at].Ack(ackWords[strings.ToLower(word)])
	}
	flushed, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := sharer.FlushAcks(flushed); err != nil {
		return nil, err
	}
	out.Lock()
	defer out.Unlock()
	told := object{}
	for p, word := range acked {
		told[fmt.Sprint(p)] = word
	}
	return told, nil
}
