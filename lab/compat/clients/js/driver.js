// kafkajs behind the runner's protocol (../PROTOCOL.md).
'use strict'

const { createHash } = require('crypto')
const readline = require('readline')
const { Kafka, logLevel, CompressionTypes, CompressionCodecs, PartitionAssigners } = require('kafkajs')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

class Unsupported extends Error {}

const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }
const kafka = new Kafka({ clientId: 'compat', brokers: [process.argv[2]], logLevel: logLevel.NOTHING, retry: { retries: 8, initialRetryTime: 100 } })

let member = null
let lastAdmin = null
// By transactional id.
const producers = {}

const say = message => process.stdout.write(JSON.stringify(message) + '\n')

function payload (spec) {
  if (spec === null || spec === undefined) return null
  if (typeof spec === 'string') return Buffer.from(spec)
  const blocks = []
  for (let i = 0; i * 32 < spec.len; i++) blocks.push(createHash('sha256').update(`${spec.rand}:${i}`).digest())
  return Buffer.concat(blocks).subarray(0, spec.len)
}

function shown (data) {
  if (data === null || data === undefined) return null
  data = Buffer.from(data)
  if (data.length <= 200) {
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(data)
    } catch (e) { /* Shown by its digest below. */ }
  }
  return { sha: createHash('sha256').update(data).digest('hex').slice(0, 16), len: data.length }
}

function headersIn (list) {
  const out = {}
  for (const [name, value] of list || []) {
    const data = payload(value)
    if (data === null) throw new Unsupported('kafkajs cannot send a null header')
    if (name in out) out[name] = [].concat(out[name], [data])
    else out[name] = data
  }
  return out
}

function headersOut (headers) {
  const out = []
  for (const [name, value] of Object.entries(headers || {})) for (const one of [].concat(value)) out.push([name, shown(one)])
  return out
}

async function admin () {
  if (!lastAdmin) {
    lastAdmin = kafka.admin()
    await lastAdmin.connect()
  }
  return lastAdmin
}

const ops = {
  async produce (c) {
    const config = c.config || {}
    const codec = CODECS[config.codec || 'none']
    if (codec === undefined) throw new Unsupported(`kafkajs brings no ${config.codec}`)
    // With idempotence kafkajs wants one request in flight and all acks; both are its own rules.
    const producer = kafka.producer({ idempotent: !!config.idempotent, maxInFlightRequests: 1, retry: { retries: 12, initialRetryTime: 50 } })
    const acks = { all: -1, 1: 1, 0: 0 }[config.acks || 'all']
    await producer.connect()
    const results = []
    try {
      // kafkajs makes one batch for each partition out of one send; the offsets of the others follow from the first.
      const perSend = config.idempotent ? 20 : 200
      for (let from = 0; from < c.records.length; from += perSend) {
        const slice = c.records.slice(from, from + perSend)
        const messages = slice.map(r => ({
          key: payload(r.k), value: payload(r.v), partition: r.p, timestamp: r.t === undefined ? undefined : String(r.t), headers: headersIn(r.h)
        }))
        try {
          const answers = await producer.send({ topic: c.topic, acks, compression: codec, messages, timeout: 10000 })
          const seen = {}
          for (const r of slice) {
            const answer = answers.find(a => r.p === undefined ? answers.length === 1 : a.partition === r.p)
            if (!answer || acks === 0) {
              results.push([r.p === undefined ? -1 : r.p, -1])
              continue
            }
            const nth = seen[answer.partition] = (seen[answer.partition] ?? -1) + 1
            results.push([answer.partition, Number(answer.baseOffset) + nth])
          }
        } catch (e) {
          if (e instanceof Unsupported) throw e
          for (let i = 0; i < slice.length; i++) results.push(name(e))
        }
      }
    } finally {
      await producer.disconnect()
    }
    return { results }
  },

  async txn (c) {
    if (c.init) delete producers[c.txid]
    if (!producers[c.txid]) {
      const producer = kafka.producer({ transactionalId: c.txid, idempotent: true, maxInFlightRequests: 1, transactionTimeout: c.timeout_ms || 60000 })
      await producer.connect()
      producers[c.txid] = { producer, open: null }
    }
    const known = producers[c.txid]
    known.open = known.open || await known.producer.transaction()
    const results = []
    const messages = c.records.map(r => ({ key: payload(r.k), value: payload(r.v), partition: r.p }))
    try {
      const answers = await known.open.send({ topic: c.topic, acks: -1, messages })
      const seen = {}
      for (const r of c.records) {
        const nth = seen[r.p] = (seen[r.p] ?? -1) + 1
        results.push([r.p, Number(answers.find(a => a.partition === r.p).baseOffset) + nth])
      }
      if (c.offsets) {
        const partitions = Object.entries(c.offsets.offsets).map(([partition, offset]) => ({ partition: Number(partition), offset: String(offset) }))
        await known.open.sendOffsets({ consumerGroupId: c.offsets.group, topics: [{ topic: c.offsets.topic, partitions }] })
      }
      if (c.end === 'commit') await known.open.commit()
      if (c.end === 'abort') await known.open.abort()
    } finally {
      if (c.end !== 'open') known.open = null
    }
    return { results }
  },

  async fetch (c) {
    // kafkajs reads through a group only: a group of its own with a seek does what assignment does elsewhere.
    const limit = c.max_bytes || 1048576
    const group = 'compat-read-' + process.pid + '-' + Date.now() + '-' + Math.random().toString(36).slice(2)
    const starts = {}
    const a = await admin()
    for (const entry of (c.from && c.from.ts !== undefined ? await a.fetchTopicOffsetsByTimestamp(c.topic, c.from.ts) : await a.fetchTopicOffsets(c.topic))) {
      starts[entry.partition] = c.from && c.from.ts !== undefined ? entry.offset : c.from && c.from.off !== undefined ? String(c.from.off) : entry.low
    }
    const consumer = kafka.consumer({ groupId: group, maxBytesPerPartition: limit, maxBytes: Math.max(limit, 10485760), maxWaitTimeInMs: 200, sessionTimeout: 10000, readUncommitted: c.isolation !== 'committed' })
    await consumer.connect()
    const recs = []
    try {
      await consumer.subscribe({ topics: [c.topic], fromBeginning: true })
      let enough
      const full = new Promise(resolve => { enough = resolve })
      const failed = new Promise((resolve, reject) => consumer.on(consumer.events.CRASH, e => reject(e.payload.error)))
      await consumer.run({
        autoCommit: false,
        eachMessage: async ({ partition, message: m }) => {
          if (!c.parts.includes(partition) || BigInt(m.offset) < BigInt(starts[partition])) return
          recs.push([partition, Number(m.offset), Number(m.timestamp), shown(m.key), shown(m.value), headersOut(m.headers)])
          if (recs.length >= c.count) enough()
        }
      })
      for (const partition of c.parts) consumer.seek({ topic: c.topic, partition, offset: starts[partition] })
      let timer
      const late = new Promise(resolve => { timer = setTimeout(resolve, c.timeout_ms) })
      await Promise.race([full, late, failed])
      clearTimeout(timer)
    } finally {
      await consumer.disconnect()
    }
    return { recs }
  },

  async digest (c) {
    const group = 'compat-digest-' + process.pid + '-' + Date.now()
    const consumer = kafka.consumer({ groupId: group, maxBytesPerPartition: 4194304, maxWaitTimeInMs: 200 })
    await consumer.connect()
    const digests = {}
    const left = {}
    for (const p of c.parts) {
      digests[p] = { first: -1, last: -1, count: 0, gaps: 0, sum: 0n, whole: createHash('sha256') }
      if (c.ends[p] > 0) left[p] = c.ends[p]
    }
    try {
      await consumer.subscribe({ topics: [c.topic], fromBeginning: true })
      let enough
      const full = new Promise(resolve => { enough = resolve })
      await consumer.run({
        autoCommit: false,
        eachBatch: async ({ batch, heartbeat }) => {
          const d = digests[batch.partition]
          for (const m of batch.messages) {
            const offset = Number(m.offset)
            const value = m.value || Buffer.alloc(0)
            if (d.count === 0) d.first = offset
            else if (offset !== d.last + 1) d.gaps++
            d.last = offset
            d.count++
            d.whole.update(value).update('\n')
            d.sum = BigInt.asUintN(64, d.sum + createHash('sha256').update(value).digest().readBigUInt64BE(0))
          }
          await heartbeat()
          if (d.last + 1 >= left[batch.partition]) delete left[batch.partition]
          if (Object.keys(left).length === 0) enough()
        }
      })
      let timer
      const late = new Promise(resolve => { timer = setTimeout(resolve, c.timeout_ms) })
      if (Object.keys(left).length > 0) await Promise.race([full, late])
      clearTimeout(timer)
    } finally {
      await consumer.disconnect()
    }
    const out = {}
    for (const [p, d] of Object.entries(digests)) out[p] = { ...d, sum: String(d.sum), whole: undefined, sha: d.whole.digest('hex') }
    return out
  },

  async offsets (c) {
    const a = await admin()
    const out = {}
    if (typeof c.at === 'string') {
      for (const e of await a.fetchTopicOffsets(c.topic)) out[e.partition] = Number(c.at === 'earliest' ? e.low : e.high)
      return out
    }
    const ends = await a.fetchTopicOffsets(c.topic)
    // kafkajs puts the end where the broker says that there is none.
    for (const e of await a.fetchTopicOffsetsByTimestamp(c.topic, c.at.ts)) {
      const end = ends.find(x => x.partition === e.partition).high
      out[e.partition] = e.offset === end ? -1 : Number(e.offset)
    }
    return out
  },

  async join (c) {
    if (c.static) throw new Unsupported('kafkajs has no static members')
    if (c.assignor !== 'roundrobin') throw new Unsupported(`kafkajs has no ${c.assignor} assignor`)
    const consumer = kafka.consumer({
      groupId: c.group, sessionTimeout: c.session_ms || 10000, heartbeatInterval: 500, maxWaitTimeInMs: 200, partitionAssigners: [PartitionAssigners.roundRobin]
    })
    await consumer.connect()
    await consumer.subscribe({ topics: c.topics, fromBeginning: true })
    consumer.on(consumer.events.GROUP_JOIN, e => {
      const parts = []
      for (const [topic, numbers] of Object.entries(e.payload.memberAssignment)) for (const p of numbers) parts.push([topic, p])
      say({ ev: 'assign', parts: parts.sort() })
    })
    consumer.on(consumer.events.CRASH, e => say({ ev: 'error', msg: String(e.payload.error) }))
    member = { consumer, position: {} }
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async ({ batch, resolveOffset, heartbeat, isStale, isRunning }) => {
        if (isStale() || !isRunning()) return
        const recs = batch.messages.map(m => [batch.topic, batch.partition, Number(m.offset), shown(m.value)])
        for (const m of batch.messages) resolveOffset(m.offset)
        const next = (BigInt(batch.messages[batch.messages.length - 1].offset) + 1n).toString()
        if (recs.length) say({ ev: 'recs', recs })
        member.position[JSON.stringify([batch.topic, batch.partition])] = next
        if (c.commit !== 'none') await consumer.commitOffsets([{ topic: batch.topic, partition: batch.partition, offset: next }])
        await heartbeat()
      }
    })
  },

  async commit () {
    await member.consumer.commitOffsets(Object.entries(member.position).map(([key, offset]) => {
      const [topic, partition] = JSON.parse(key)
      return { topic, partition, offset }
    }))
  },

  async leave () {
    await member.consumer.disconnect()
    member = null
  },

  async committed (c) {
    const out = {}
    const found = await (await admin()).fetchOffsets({ groupId: c.group, topics: [c.topic] })
    for (const p of c.parts) {
      const entry = found[0].partitions.find(e => e.partition === p)
      out[p] = entry ? Number(entry.offset) : -1
    }
    return out
  },

  async create_topic (c) {
    const configEntries = Object.entries(c.config || {}).map(([name, value]) => ({ name, value }))
    await (await admin()).createTopics({ topics: [{ topic: c.name, numPartitions: c.partitions, replicationFactor: 1, configEntries }], waitForLeaders: true })
      .then(made => { if (!made) throw Object.assign(new Error('exists'), { type: 'TOPIC_ALREADY_EXISTS' }) })
  },
  async create_partitions (c) { await (await admin()).createPartitions({ topicPartitions: [{ topic: c.name, count: c.partitions }] }) },
  async delete_topic (c) { await (await admin()).deleteTopics({ topics: [c.name] }) },
  async list_topics () { return (await (await admin()).listTopics()).sort() },
  async describe_topic (c) {
    const topic = (await (await admin()).fetchTopicMetadata({ topics: [c.name] })).topics[0]
    const parts = topic.partitions.sort((x, y) => x.partitionId - y.partitionId)
    return { partitions: parts.length, leaders: parts.map(p => p.leader), replicas: parts.map(p => p.replicas) }
  },
  async get_config (c) {
    const found = await (await admin()).describeConfigs({ includeSynonyms: false, resources: [{ type: c.type === 'topic' ? 2 : 4, name: c.name }] })
    return Object.fromEntries(found.resources[0].configEntries.map(e => [e.configName, e.configValue]))
  },
  async set_config (c) {
    if (c.delete && c.delete.length) throw new Unsupported('no incrementalAlterConfigs in kafkajs')
    const configEntries = Object.entries(c.set).map(([name, value]) => ({ name, value }))
    await (await admin()).alterConfigs({ validateOnly: false, resources: [{ type: c.type === 'topic' ? 2 : 4, name: c.name, configEntries }] })
  },
  async delete_records (c) {
    const partitions = Object.entries(c.upto).map(([p, offset]) => ({ partition: Number(p), offset: String(offset) }))
    // kafkajs knows a topic's leaders only once it has asked for something else of it.
    await (await admin()).fetchTopicOffsets(c.topic)
    await (await admin()).deleteTopicRecords({ topic: c.topic, partitions })
    return c.upto
  },
  async list_groups () { return (await (await admin()).listGroups()).groups.map(g => g.groupId).sort() },
  async describe_group (c) {
    const group = (await (await admin()).describeGroups([c.group])).groups[0]
    return { state: group.state, members: group.members.length }
  },
  async delete_group (c) { await (await admin()).deleteGroups([c.group]) },
  async cluster () {
    const found = await (await admin()).describeCluster()
    return { brokers: found.brokers.length, controller: found.controller }
  }
}

function name (e) {
  for (let error = e; error; error = error.cause || error.originalError) {
    if (error.type) return error.type
    const inner = error.errors || error.groups || (error.partitions && error.partitions.map(p => p.error))
    if (inner && inner.length) return name(inner[0].error || inner[0])
  }
  return e.name
}

process.on('unhandledRejection', e => say({ ev: 'error', msg: String(e) }))
const lines = readline.createInterface({ input: process.stdin, crlfDelay: Infinity })
let turn = Promise.resolve()
lines.on('line', line => {
  const c = JSON.parse(line)
  turn = turn.then(async () => {
    try {
      if (!ops[c.op]) throw new Unsupported(`no ${c.op} in kafkajs`)
      const ok = await ops[c.op](c)
      say({ id: c.id, ok: ok === undefined ? null : ok })
    } catch (e) {
      if (e instanceof Unsupported) say({ id: c.id, unsupported: e.message })
      else say({ id: c.id, err: name(e), msg: String(e.message) })
    }
  })
})
lines.on('close', () => process.exit(0))
