//! Transactions: requests to the shard that looks after the transactional id, and markers to their partitions' owners.
//!
//! Transaction path 1½ of 5. Before: connection.rs, core/api/src/k26_end_txn.rs. After: coordinator_worker.rs;
//! markers.rs; verification.rs, where a coordinator's word is needed before a transaction begins on a partition.

pub mod verification;

use crate::coordinators::markers::{self, Marker};
use crate::mailbox::{Command, PartitionKey, ToTransactionShard, TransactionAsk, TransactionCommand};
use crate::requests::call::parts::{Coordinator, Gone, Questions};
use crate::requests::call::{Answer, Call, Started};
use crate::requests::groups;
use barnabas_api::groups::ToShard;
use barnabas_api::{
    Plan, k22_init_producer_id, k24_add_partitions_to_txn, k25_add_offsets_to_txn, k26_end_txn,
    k27_write_txn_markers, k28_txn_offset_commit, k65_describe_transactions, k66_list_transactions,
};
use barnabas_base::{ErrorCode, PartitionIndex, ProducerEpoch, ProducerId, TopicPartition, name};
use barnabas_coordinator::{
    AddOffsets, AddPartitions, EndTransaction, Part, Producer, Request, Response, TransactionCaller,
    TransactionRequest, TransactionResponse, TransactionVersion,
};
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, DescribeTransactionsRequest, EndTxnRequest,
    InitProducerIdRequest, ListTransactionsRequest, TxnOffsetCommitRequest, WriteTxnMarkersRequest,
};
use tokio::sync::oneshot;
use verification::{Wish, verify};

type Asked = oneshot::Receiver<TransactionResponse>;

/// Sends a request to a shard, now.
pub(super) async fn send(
    call: &Call,
    shard: PartitionIndex,
    caller: TransactionCaller,
    request: TransactionRequest,
) -> Asked {
    let (reply, answer) = oneshot::channel();
    let node = &call.session.node;
    let topic = node.cluster.image.load().topics.id_of(name::TRANSACTION_STATE);
    match topic {
        Some(topic) => {
            let shard = PartitionKey { topic, partition: shard };
            let what = ToTransactionShard::Request(TransactionAsk { request, caller, reply });
            node.workers.owner(shard).send(Command::Transaction(TransactionCommand { shard, what })).await;
        }
        // Deleted since the plan was made.
        None => drop(reply.send(request.refuse(ErrorCode::NotCoordinator))),
    }
    answer
}

/// The shards of transactions.
struct Transactions;

impl Coordinator for Transactions {
    type Request = TransactionRequest;
    type Response = TransactionResponse;

    async fn send(call: &Call, shard: PartitionIndex, request: TransactionRequest, room: usize) -> Asked {
        let caller = TransactionCaller { room: Some(room), ..producer(call) };
        self::send(call, shard, caller, request).await
    }

    fn refuse(request: &TransactionRequest, code: ErrorCode) -> TransactionResponse {
        request.refuse(code)
    }

    fn parts(response: TransactionResponse) -> Result<Vec<Part<TransactionRequest>>, TransactionResponse> {
        match response {
            TransactionResponse::Parts(parts) => Ok(parts),
            response => Err(response),
        }
    }
}

/// The client itself asks.
fn producer(call: &Call) -> TransactionCaller {
    TransactionCaller { version: call.version, connection: Some(call.session.number), room: None }
}

/// One request, one shard, one answer.
async fn ask<R>(
    call: Call,
    plan: Plan<ToShard<R>, ResponseBody>,
    wrap: impl FnOnce(R) -> TransactionRequest,
    respond: impl FnOnce(TransactionResponse) -> Option<ResponseBody> + 'static,
) -> Started {
    let work = match plan {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let asked = send(&call, work.shard, producer(&call), wrap(work.request)).await;
    Started::wait(async move {
        let answer = asked.await.ok().and_then(respond);
        answer.map_or(Answer::Close, Answer::Reply)
    })
}

fn in_body<R, A: Into<ResponseBody>>(plan: Plan<R, A>) -> Plan<R, ResponseBody> {
    match plan {
        Plan::Answer(response) => Plan::Answer(response.into()),
        Plan::Work(work) => Plan::Work(work),
    }
}

/// The response of one kind; a shard answers a request with its own kind only.
macro_rules! expect {
    ($response:expr, $kind:ident) => {
        match $response {
            TransactionResponse::$kind(response) => Some(response),
            _ => None,
        }
    };
}

pub async fn init_producer_id(call: Call, request: InitProducerIdRequest) -> Started {
    let moment = call.moment();
    let version = call.version;
    let shard = match k22_init_producer_id::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(k22_init_producer_id::Work::Transactional(shard)) => shard,
        Plan::Work(k22_init_producer_id::Work::Fresh) => {
            return Started::wait(async move {
                let node = &call.session.node;
                let id = node.peers.producer_ids.next(node).await;
                Answer::Reply(k22_init_producer_id::respond(id).into())
            });
        }
    };
    let respond = move |response| {
        let response = expect!(response, InitProducerId)?;
        Some(k22_init_producer_id::respond_transactional(response, version).into())
    };
    ask(call, Plan::Work(shard), TransactionRequest::InitProducerId, respond).await
}

pub async fn add_partitions(call: Call, request: AddPartitionsToTxnRequest) -> Started {
    let moment = call.moment();
    let plan = k24_add_partitions_to_txn::plan(request, call.version, &call.context(&moment));
    let work = match plan {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let is_of_broker = call.version >= k24_add_partitions_to_txn::BROKERS_SINCE;
    let caller = if is_of_broker { TransactionCaller::other(call.version) } else { producer(&call) };
    let mut pending = work.pending;
    let mut asked = Vec::with_capacity(work.parts.len());
    for ToShard { shard, request: part } in work.parts {
        let request = TransactionRequest::AddPartitions(AddPartitions {
            transactional_id: part.transactional_id,
            producer_id: part.producer_id,
            producer_epoch: part.producer_epoch,
            verify_only: part.verify_only,
            partitions: part.partitions,
        });
        asked.push((part.place, send(&call, shard, caller, request).await));
    }
    Started::wait(async move {
        for (place, asked) in asked {
            let Ok(TransactionResponse::AddPartitions(result)) = asked.await else { return Answer::Close };
            pending.add(place, result);
        }
        Answer::Reply(pending.respond().into())
    })
}

pub async fn add_offsets(call: Call, request: AddOffsetsToTxnRequest) -> Started {
    let moment = call.moment();
    let version = call.version;
    let plan = in_body(k25_add_offsets_to_txn::plan(&request, &call.context(&moment)));
    let wrap = |work: k25_add_offsets_to_txn::Work| {
        TransactionRequest::AddOffsets(AddOffsets {
            transactional_id: work.transactional_id,
            producer_id: work.producer_id,
            producer_epoch: work.producer_epoch,
            partition: work.partition,
        })
    };
    let respond = move |response| {
        expect!(response, AddOffsets)
            .map(|response| k25_add_offsets_to_txn::respond(response, version).into())
    };
    ask(call, plan, wrap, respond).await
}

pub async fn end_txn(call: Call, request: EndTxnRequest) -> Started {
    let moment = call.moment();
    let version = call.version;
    let plan = in_body(k26_end_txn::plan(request, &call.context(&moment)));
    let respond = move |response| {
        expect!(response, EndTxn).map(|response| k26_end_txn::respond(response, version).into())
    };
    ask(call, plan, TransactionRequest::EndTxn, respond).await
}

pub async fn describe(call: Call, request: DescribeTransactionsRequest) -> Started {
    let moment = call.moment();
    let work = match k65_describe_transactions::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let mut pending = work.pending;
    let parts = work.parts.into_iter();
    let parts = parts.map(|part| ((), part.shard, TransactionRequest::Describe(part.request)));
    let mut questions: Questions<Transactions, ()> = Questions::begin(&call, parts).await;
    Started::wait(async move {
        while let Some(answer) = questions.next().await {
            let Ok(((), TransactionResponse::Describe(response))) = answer else { return Answer::Close };
            pending.add(response, &call.room, &call.access());
        }
        call.room.reply(pending.respond())
    })
}

pub async fn list(call: Call, request: ListTransactionsRequest) -> Started {
    let moment = call.moment();
    let work = match k66_list_transactions::plan(request, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let (mut pending, list) = (work.pending, work.request);
    let parts = work.shards.into_iter().map(|shard| ((), shard, TransactionRequest::List(list.clone())));
    let mut questions: Questions<Transactions, ()> = Questions::begin(&call, parts).await;
    Started::wait(async move {
        while let Some(answer) = questions.next().await {
            let Ok(((), TransactionResponse::List(response))) = answer else { return Answer::Close };
            if !pending.add(response, &call.room, &call.access()) {
                break;
            }
        }
        call.room.reply(pending.respond())
    })
}

pub async fn write_markers(call: Call, request: WriteTxnMarkersRequest) -> Started {
    let moment = call.moment();
    let work = match k27_write_txn_markers::plan(&request, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let k27_write_txn_markers::Work { parts, mut pending } = work;
    let marker = |part: &k27_write_txn_markers::Part| Marker {
        partition: PartitionKey { topic: part.topic.id, partition: part.partition },
        is_of_groups: part.is_of_groups(),
        end: EndTransaction {
            producer: Producer { id: part.producer_id, epoch: part.producer_epoch },
            commit: part.commit,
            coordinator_epoch: part.coordinator_epoch,
            version: TransactionVersion(part.transaction_version),
        },
    };
    let markers: Vec<Marker> = parts.iter().map(marker).collect();
    let sent = markers::send(&call.session.node, &markers).await;
    Started::wait(async move {
        for (part, code) in parts.iter().zip(sent.outcomes().await) {
            pending.add(part, code);
        }
        Answer::Reply(pending.respond().into())
    })
}

/// The offsets go to the group's shard once the transaction's coordinator has said that the group's partition is part
/// of it.
pub async fn commit_offsets(call: Call, request: TxnOffsetCommitRequest) -> Started {
    let moment = call.moment();
    let work = match k28_txn_offset_commit::plan(request, call.version, &call.context(&moment)) {
        Plan::Answer(response) => return Started::reply(response),
        Plan::Work(work) => work,
    };
    let k28_txn_offset_commit::Work { commit: ToShard { shard, request }, pending } = work;
    let wish = Wish {
        transactional_id: request.transactional_id.clone(),
        producer_id: ProducerId(request.producer_id),
        producer_epoch: ProducerEpoch(request.producer_epoch),
        joins: call.version >= k28_txn_offset_commit::JOINS_SINCE,
    };
    let partition = TopicPartition::new(name::CONSUMER_OFFSETS, shard);
    let topic = moment.image.topics.id_of(name::CONSUMER_OFFSETS);
    drop(moment);
    let verified = match topic {
        Some(topic) => {
            let key = PartitionKey { topic, partition: shard };
            let verdicts = verify(&call, &wish, vec![(key, partition)]).await;
            verdicts.into_iter().next().unwrap_or(Err(ErrorCode::NotCoordinator))
        }
        None => Err(ErrorCode::NotCoordinator),
    };
    let request = Request::TxnOffsetCommit(request);
    let answered = |response| match response {
        Response::TxnOffsetCommit(response) => Answer::Reply(pending.respond(response).into()),
        _ => Answer::Close,
    };
    let standing = match verified {
        Ok(standing) => standing,
        Err(code) => {
            let code = k28_txn_offset_commit::unverified(code, call.version);
            return Started::Answer(answered(request.refuse(code)));
        }
    };
    let asked = groups::send_standing(&call, shard, request, standing).await;
    Started::wait(async move {
        match asked.wait().await {
            Ok(response) => answered(response),
            Err(Gone) => Answer::Close,
        }
    })
}
