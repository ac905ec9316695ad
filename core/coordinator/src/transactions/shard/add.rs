//! AddPartitionsToTxn and AddOffsetsToTxn: partitions join the transaction, or are asked about (KIP-890).
//!
//! Before version 2 all transactions of a producer have one epoch. A coordinator that has been replaced, without
//! knowing it, still has the last transaction as open, and takes the first request of the next one for a repetition.
//! If it answered from memory, as Kafka's does, the client would write into partitions whose markers of the last
//! transaction come first, and those would commit half of the next one. So a repetition is written like a first
//! request, which only the leader can.
//!
//! # Source
//! Kafka 4.4 `TransactionCoordinator.handleAddPartitionsToTransaction`, `handleVerifyPartitionsInTransaction`.

use barnabas_base::{ErrorCode, ProducerEpoch, ProducerId, TopicPartition};
use barnabas_wire::Str;
use barnabas_wire::messages::AddOffsetsToTxnResponse;

use super::{No, TransactionShard};
use crate::framework::Ticket;
use crate::transactions::transaction::Transaction;
use crate::transactions::{
    AddOffsets, AddPartitions, TransactionResponse, TransactionState, TransactionVersion,
};

impl TransactionShard {
    pub(super) fn add_partitions(
        &mut self,
        version: i16,
        add: &AddPartitions,
        ticket: Ticket,
    ) -> Result<(), No> {
        let response = TransactionResponse::AddPartitions(add.respond(|_| ErrorCode::None));
        let version = TransactionVersion::of_add_partitions(version);
        let who = (add.producer_id, add.producer_epoch);
        self.add(&add.transactional_id, who, &add.partitions, version, ticket, response)
    }

    /// Clients of version 2 do not ask for this; the coordinator of the group does it for them by adding its partition.
    pub(super) fn add_offsets(&mut self, add: &AddOffsets, ticket: Ticket) -> Result<(), No> {
        let response = TransactionResponse::AddOffsets(AddOffsetsToTxnResponse::default());
        let partitions = std::slice::from_ref(&add.partition);
        let who = (add.producer_id, add.producer_epoch);
        self.add(&add.transactional_id, who, partitions, TransactionVersion::V0, ticket, response)
    }

    fn add(
        &mut self,
        id: &Str,
        who: (ProducerId, ProducerEpoch),
        partitions: &[TopicPartition],
        version: TransactionVersion,
        ticket: Ticket,
        response: TransactionResponse,
    ) -> Result<(), No> {
        if id.is_empty() {
            return Err(ErrorCode::InvalidRequest.into());
        }
        // First of all: a client that goes on under the next epoch, or the next producer id, may be faster than the end
        // of its last transaction, and is not to be fenced by it (KAFKA-18660).
        let known = match self.is_ending(id) {
            Some(ending) if version.bumps_epoch() => ending,
            _ if self.is_busy(id) => return Err(ErrorCode::ConcurrentTransactions.into()),
            _ => self.known(id).ok_or(ErrorCode::InvalidProducerIdMapping)?,
        };
        check_holder(known, who)?;
        let has_all = partitions.iter().all(|partition| known.partitions.contains(partition));
        if known.state == TransactionState::Ongoing && has_all && version.bumps_epoch() {
            self.answer(ticket, response);
            return Ok(());
        }
        let next = known.with_partitions(partitions, version, self.now.wall);
        self.change_if_small(&id.text(), next, ticket, response)
    }

    /// What is on disk counts: a partition that is on its way into the transaction is not in it, and one whose end is
    /// on its way is.
    pub(super) fn verify(&mut self, add: &AddPartitions, ticket: Ticket) -> Result<(), No> {
        if add.transactional_id.is_empty() {
            return Err(ErrorCode::InvalidRequest.into());
        }
        let known = self.known(&add.transactional_id).ok_or(ErrorCode::InvalidProducerIdMapping)?;
        check_holder(known, (add.producer_id, add.producer_epoch))?;
        if known.state.is_prepared() {
            return Err(ErrorCode::ConcurrentTransactions.into());
        }
        let result = add.respond(|partition| {
            if known.partitions.contains(partition) {
                ErrorCode::None
            } else {
                ErrorCode::TransactionAbortable
            }
        });
        self.answer(ticket, TransactionResponse::AddPartitions(result));
        Ok(())
    }
}

fn check_holder(known: &Transaction, (id, epoch): (ProducerId, ProducerEpoch)) -> Result<(), ErrorCode> {
    if known.producer_id != id {
        Err(ErrorCode::InvalidProducerIdMapping)
    } else if known.producer_epoch != epoch {
        Err(ErrorCode::ProducerFenced)
    } else {
        Ok(())
    }
}
